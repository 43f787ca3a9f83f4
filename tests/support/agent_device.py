"""The real agent: its zipapp, in processes of its own, under whichever interpreters this machine has."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from argus_edge.agents import wire
from argus_edge.schema.agent import Event, Job, RunResult, RunStatus


class AgentError(Exception):
    """The agent answered with a fault."""

    def __init__(self, fault: dict[str, Any]) -> None:
        super().__init__(f"{fault['kind']}: {fault['message']}")
        self.kind = fault["kind"]
        self.message = fault["message"]
        self.detail = fault["detail"]


class Agent:
    """One device: an agent with a home of its own."""

    def __init__(self, archive: Path, home: Path, python: str = sys.executable) -> None:
        self.archive = archive
        self.home = home
        self.python = python
        self.environment: dict[str, str] = {}

    def argv(self, *arguments: str) -> list[str]:
        return [self.python, str(self.archive), "--home", str(self.home), *arguments]

    def spawn(self, *arguments: str) -> subprocess.Popen[str]:
        environment = {**os.environ, **self.environment}
        return subprocess.Popen(
            self.argv(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )

    def call(self, *arguments: str) -> dict[str, Any]:
        """Run a command and return its one answer."""
        process = self.spawn(*arguments)
        out, err = process.communicate(timeout=120)
        answers = [document for document in map(wire.parse, out.splitlines()) if document is not None]
        assert len(answers) == 1, out + err
        assert process.returncode == (1 if "error" in answers[0] and "run" not in answers[0] else 0), out + err
        if process.returncode:
            raise AgentError(answers[0]["error"])
        return answers[0]

    def start(self, *parts: dict[str, Any], run: str = "run-1", **job: Any) -> dict[str, Any]:
        document = {"wire": wire.WIRE_VERSION, "run": run, "parts": list(parts), **job}
        Job.model_validate(document)
        self.home.mkdir(parents=True, exist_ok=True)
        path = self.home / f"{run}.job.json"
        path.write_text(json.dumps(document))
        return self.call("start", str(path))

    def follow(self, run: str = "run-1", offset: int = 0) -> list[dict[str, Any]]:
        """Follow a run to its end and return all its events, each checked against the schema."""
        process = self.spawn("follow", run, str(offset))
        out, err = process.communicate(timeout=240)
        assert process.returncode == 0, out + err
        frames = [frame for frame in map(wire.parse, out.splitlines()) if frame]
        events = [event for frame in frames for event in frame["events"]]
        for event in events:
            Event.model_validate(event)
        return events

    def status(self, run: str = "run-1") -> RunStatus:
        return RunStatus.model_validate(self.call("status", run))

    def stop(self, run: str = "run-1") -> RunStatus:
        return RunStatus.model_validate(self.call("stop", run))

    def files(self, run: str = "run-1") -> dict[str, Path]:
        return {file["name"]: Path(file["path"]) for file in self.call("collect", run)["files"]}

    def result(self, run: str = "run-1") -> RunResult:
        return RunResult.model_validate_json(self.files(run)[wire.RESULT_FILE].read_text())

    def run(self, *parts: dict[str, Any], run: str = "run-1", **job: Any) -> RunResult:
        """Start, follow, collect."""
        self.start(*parts, run=run, **job)
        self.follow(run)
        return self.result(run)

    def wait_for(self, wanted: Any, run: str = "run-1") -> dict[str, Any]:
        """Follow a run until an event for which ``wanted`` is true, and return that; the run goes on."""
        process = self.spawn("follow", run, "0")
        assert process.stdout
        seen = []
        try:
            for line in process.stdout:
                for event in (wire.parse(line) or {}).get("events", []):
                    seen.append(event)
                    if wanted(event):
                        return event
        finally:
            process.kill()
            process.communicate()
        raise AssertionError(f"the run ended without the event: {seen[-3:]}")

    def wait_for_phase(self, phase: str, run: str = "run-1") -> dict[str, Any]:
        return self.wait_for(lambda event: event["event"] == "phase" and event["phase"] == phase, run)


def leftovers(home: Path) -> list[str]:
    """Shared memory that belongs to a run of this home."""
    from argus_edge.agents import samples

    runs = home / wire.RUNS_FOLDER
    names = {p.name for run in (runs.iterdir() if runs.is_dir() else []) for p in map(Path, samples.candidates(run, 0))}
    return [name for name in os.listdir("/dev/shm") if name in names]


def null_part(work_s: float = 0.002, **scenario: Any) -> dict[str, Any]:
    """A part of the null runtime whose calls sleep."""
    return {
        "name": "null",
        "runtime": "null",
        "options": {"work_s": work_s},
        "scenario": {"duration_s": 0.3, "min_calls": 10, **scenario},
        "warmup": {"fixed_calls": 3},
    }


def onnx_part(model: Path | str, **more: Any) -> dict[str, Any]:
    """A part of onnxruntime."""
    return {
        "name": "model",
        "runtime": "onnxruntime",
        "format": "onnx",
        "model": str(model),
        "scenario": {"duration_s": 0.3, "min_calls": 10},
        "warmup": {"fixed_calls": 3},
        **more,
    }


def interpreters() -> list[str]:
    """The Pythons of this machine that the agent must run under, oldest first."""
    found = {}
    for minor in range(6, 15):
        name = f"python3.{minor}"
        candidates = [shutil.which(name), *map(str, Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python"))]
        for candidate in filter(None, candidates):
            try:
                version = subprocess.run([candidate, "-V"], capture_output=True, text=True, timeout=30, check=True)
            except (OSError, subprocess.SubprocessError):
                continue
            if version.stdout.startswith(f"Python 3.{minor}."):
                found[name] = candidate
                break
    return list(found.values()) or [sys.executable]
