"""Drives the agent directly, without the host part: one run, its result, its latencies. For the scripts beside it.

On a machine that others use as well, `chrt -r 10 python …` (root) puts both sides before everything else.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from argus_edge.agents import wire
from argus_edge.devices.zipapp import build_agent

HERE = Path(__file__).parent


class Timed(NamedTuple):
    """What a run gave: the part's result, and each call's start and end in seconds."""

    part: dict[str, Any]
    starts: Sequence[float]
    ends: Sequence[float]

    @property
    def latencies(self) -> list[float]:
        return [end - start for start, end in zip(self.starts, self.ends, strict=True)]


class Device:
    """This machine, with an agent's home in a folder of its own."""

    def __init__(self, folder: Path, python: str = sys.executable) -> None:
        self.folder = folder
        self.python = python
        self.archive = build_agent(folder)
        self._runs = 0

    def call(self, *arguments: str) -> dict[str, Any]:
        argv = [self.python, str(self.archive.path), "--home", str(self.folder / "home"), *arguments]
        done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True)
        return [document for document in map(wire.parse, done.stdout.splitlines()) if document][-1]

    def start(self, part: dict[str, Any]) -> tuple[str, int]:
        self._runs += 1
        run = f"run-{self._runs}"
        job = self.folder / "job.json"
        job.write_text(json.dumps({"wire": wire.WIRE_VERSION, "run": run, "parts": [part]}))
        return run, self.call("start", str(job))["pid"]

    def finish(self, run: str) -> Timed:
        """Wait for a run's end."""
        self.call("follow", run, "0")
        files = {file["name"]: Path(file["path"]) for file in self.call("collect", run)["files"]}
        part = json.loads(files[wire.RESULT_FILE].read_text())["parts"][0]
        if part["state"] != "done":
            raise SystemExit(f"the run failed: {part['error']}")
        data = files[wire.SAMPLES_FILE % 0].read_bytes()
        count = part["samples_count"]
        values = struct.unpack_from(f"<{2 * count}d", data, wire.SAMPLE_HEADER_BYTES)
        self.call("remove", run)
        return Timed(part, values[:count], values[count:])

    def run(self, part: dict[str, Any]) -> Timed:
        return self.finish(self.start(part)[0])


def percentile(latencies: list[float], share: float) -> float:
    """Nearest rank."""
    ranked = sorted(latencies)
    return ranked[max(0, -int(-share * len(ranked) // 1) - 1)]


def machine() -> dict[str, Any]:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
    versions = {}
    for name in ("onnxruntime", "numpy"):
        try:
            versions[name] = __import__(name).__version__
        except ImportError:
            continue
    return {
        "cpu": model or platform.processor(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_1m": round(os.getloadavg()[0], 2),
        "real_time": os.sched_getscheduler(0) in (os.SCHED_RR, os.SCHED_FIFO),
        **versions,
    }


def light_model(name: str) -> Path:
    """One of the onnx wheel's real architectures with constant weights."""
    import onnx

    return Path(onnx.__file__).parent / "backend/test/data/light" / f"light_{name}.onnx"


def make_inputs(model: Path, target: Path) -> Path:
    """Write random images for a model's inputs."""
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(1)
    np.savez(target, **{value.name: rng.random(value.shape, dtype=np.float32) for value in session.get_inputs()})
    return target


def onnx_part(model: Path, inputs: Path, threads: int, seconds: float) -> dict[str, Any]:
    return {
        "name": model.stem,
        "runtime": "onnxruntime",
        "format": "onnx",
        "model": str(model),
        "inputs": str(inputs),
        "threads": threads,
        "scenario": {"duration_s": seconds, "min_calls": 20},
        "warmup": {"max_s": 1.0},
    }


def record(name: str, content: dict[str, Any]) -> None:
    """Write a script's figures beside it."""
    path = HERE / f"{name}.json"
    path.write_text(json.dumps({"machine": machine(), **content}, indent=1) + "\n")
    sys.stdout.write(path.read_text())


def median(values: list[float]) -> float:
    return statistics.median(values)


def scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="argus-edge-harness-")
