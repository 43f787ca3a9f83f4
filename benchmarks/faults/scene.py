"""One fault as it goes: the moment at which it strikes, what was seen of it, and whether that is a right account."""

from __future__ import annotations

import hashlib
import json
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from argus_edge.artifacts import sha256_file
from benchmarks.faults.board import Board
from benchmarks.faults.host import Command, Host
from tests.support.chaos import Chaos

DURATION_S = 4.0
# Sensors are read once a second: trouble that begins in the middle wants some readings on either side.
PLANTED_DURATION_S = 10.0
WEIGHT_BYTES = 8 << 20
# The link to the board, so that an upload takes some seconds.
RATE = 5e6
FETCH_RATE = 40e3
NOTICED_S = 10.0
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
LOST = r"lost|closed|heard|No answer|refused|silent|speaks no SSH|cut off|in time|cannot connect"


@dataclass
class Scene:
    """Everything that a fault can touch, and what was seen."""

    chance: random.Random
    folder: Path
    board: Board
    link: Chaos
    host: Host
    phase: str
    model: Path
    command: Command | None = None
    run: str | None = None
    struck_at: float | None = None
    missed: bool = False
    long: bool = False
    problems: list[str] = field(default_factory=list)
    facts: dict = field(default_factory=dict)

    def start(self, *more: str, **environment: str) -> Command:
        """Start the bench."""
        self.command = self.host.start(*self.argv(), *more, **environment)
        return self.command

    def argv(self) -> list[str]:
        """Return the bench's words."""
        seconds = PLANTED_DURATION_S if self.board.tree else DURATION_S
        return ["bench", str(self.model), "--device", "board", "--duration", f"{seconds:g}s", "--warmup", "3"]

    # ------------------------------------------------------------ the moment

    def wait(self) -> None:
        """Wait for the phase, and in it for a moment that is drawn."""
        assert self.command
        if self.phase == "probe":
            self.command.heard("looking at")
            time.sleep(self.chance.uniform(0.0, 1.5))
        elif self.phase == "upload":
            self.link.rate = RATE
            part = self._wait_for(lambda: next(self.board.home.glob("*/.weights.bin*.part"), None))
            wanted = self.chance.uniform(0.02, 0.98) * WEIGHT_BYTES
            if part:
                self._wait_for(lambda: not part.exists() or part.stat().st_size >= wanted)
        elif self.phase == "run":
            self._run_id()
            time.sleep(self.chance.uniform(0.0, DURATION_S))
        elif self.phase == "steady":
            self._run_id()
            self._wait_for(lambda: any(re.search('"done": [1-9]', text) for text in self._journals()))
            time.sleep(self.chance.uniform(0.0, 0.6 * DURATION_S))
        elif self.phase == "fetch":
            self._run_id()
            self._wait_for(lambda: any((run / "result.json").exists() for run in self.board.runs()))
            self.link.rate = FETCH_RATE
            time.sleep(self.chance.uniform(0.0, 0.5))
        self.missed = not self.command.running

    def _journals(self) -> list[str]:
        return [(run / "journal.jsonl").read_text() for run in self.board.runs() if (run / "journal.jsonl").exists()]

    def _run_id(self) -> None:
        assert self.command
        found = self.command.heard(r"^run (\S+) \(")
        self.run = found[1] if found else None

    def _wait_for(self, condition: Callable[[], object], seconds: float = 60.0):
        assert self.command
        deadline = time.monotonic() + seconds
        while self.command.running and time.monotonic() < deadline:
            found = condition()
            if found:
                return found
            time.sleep(0.01)
        return None

    def strike(self, action: Callable[[], object]) -> None:
        """Do it, and remember when."""
        self.struck_at = time.monotonic()
        action()

    # ------------------------------------------------------------ the account

    def expect(self, holds: object, otherwise: str) -> None:
        """Note a problem where something does not hold."""
        if not holds:
            self.problems.append(otherwise)

    def exit_code(self, *allowed: int, seconds: float = 150.0) -> int | None:
        """Wait for the command's end and check its code."""
        assert self.command
        code = self.command.end(seconds)
        self.facts["exit_code"] = code
        self.expect(code in allowed, f"exit code {code}, not one of {allowed}: {self.command.messages[-600:]}")
        return code

    def says(self, pattern: str) -> None:
        """Check that the messages say something."""
        assert self.command
        self.expect(
            re.search(pattern, self.command.messages, re.IGNORECASE),
            f"no word of {pattern!r} in: {self.command.messages[-600:]}",
        )

    def noticed(self) -> None:
        """Check that a lost link was noticed in time."""
        assert self.command
        assert self.struck_at is not None
        times = [said.at for said in self.command.said if said.at >= self.struck_at and re.search(LOST, said.text)]
        if not times:
            self.says(LOST)
            return
        self.facts["noticed_s"] = round(times[0] - self.struck_at, 2)
        self.expect(times[0] - self.struck_at <= NOTICED_S, f"noticed after {times[0] - self.struck_at:.1f} s")

    def records(self):
        """Return what the host's store has."""
        from argus_edge.store.records import Store

        path = self.host.folder / ".local" / "share" / "argus-edge" / "argus-edge.db"
        if not path.exists():
            return []
        store = Store(f"sqlite:///{path}")
        try:
            return store.list()
        finally:
            store.close()

    def reports(self) -> list[Path]:
        """Return the reports that lie in the user's folder."""
        return sorted(self.host.work.glob("*.json"))

    def check_report(self, path: Path, *, state: str | None = "done", samples: int = 1) -> dict:
        """Check a report's file and return its document."""
        from argus_edge.artifacts import read_artifact
        from argus_edge.bench.samples import decode
        from argus_edge.schema.bench import BenchReport

        report = read_artifact(path, BenchReport)
        measured = report.measurements[0] if report.measurements else None
        count = len(decode(measured.latency)) if measured and measured.latency else 0
        self.facts["samples"] = count
        self.expect(count >= samples, f"{count} samples were kept, not {samples}")
        if state:
            self.expect(measured and measured.state == state, f"the measurement is {measured and measured.state}")
        return json.loads(path.read_text())

    def came_well(self) -> None:
        """Check a bench that ended with 0: one report, in order, with the calls of the whole window."""
        reports = self.reports()
        self.expect(len(reports) == 1, f"{len(reports)} reports")
        if reports:
            self.check_report(reports[0], samples=50)

    def failed_report(self, *, samples: int) -> None:
        """Check the report of a run that failed: it is there, with what was measured, and not called valid."""
        reports = self.reports()
        self.expect(len(reports) == 1, f"{len(reports)} reports")
        if reports:
            document = self.check_report(reports[0], state=None, samples=samples)
            self.expect(document["validity"]["valid"] is not True, "a failed run is called valid")

    def come_back(self) -> None:
        """Come back to what was left: ``--resume`` gets the run's own samples, twice the same file; or run anew."""
        records = self.records()
        if records and records[0].state not in ("stopped",):
            run = records[0].id
            folder = self.board.home / "runs" / run
            deadline = time.monotonic() + 60
            while folder.exists() and not (folder / "result.json").exists() and time.monotonic() < deadline:
                if not self.board.pids():
                    break
                time.sleep(0.1)
            kept = (
                {path.name: path.read_bytes() for path in folder.glob("*") if path.is_file()} if folder.exists() else {}
            )
            code, command = self.host.run("bench", "--resume", run)
            if not kept and not records[0].has_report:
                # It had not been started when the link was lost: the account is that there is no such run.
                self.expect(code in (0, 5), f"resume of a run that never began: {code}: {command.messages[-400:]}")
                self.expect(
                    re.search("no run|no such run|did not start|never", command.messages) or code == 0, command.messages
                )
                self.anew()
                return
            self.expect(code == 0, f"resume ended with {code}: {command.messages[-600:]}")
            report = self.host.work / f"{run}.json"
            self.expect(report.exists(), "resume left no report")
            if not report.exists():
                return
            first = report.read_bytes()
            document = self.check_report(report, samples=50)
            if "samples-0.bin" in kept:
                self.expect(same_samples(document, kept["samples-0.bin"]), "the report's samples are not the run's")
            report.unlink()
            code, command = self.host.run("bench", "--resume", run)
            self.expect(code == 0 and report.exists(), f"a second resume ended with {code}: {command.messages[-400:]}")
            self.expect(report.exists() and report.read_bytes() == first, "a second resume gives another file")
        else:
            self.anew()

    def anew(self) -> None:
        code, command = self.host.run(*self.argv())
        self.expect(code == 0, f"run anew it ended with {code}: {command.messages[-600:]}")

    def all_clear(self) -> None:
        """Check that nothing runs on the board, nothing of a run is left there, and no file is torn on either side."""
        deadline = time.monotonic() + 8
        while (left := self.board.pids()) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.expect(not left, f"still running on the board: {left}")
        runs = [path.name for path in self.board.runs()]
        self.expect(not runs, f"left on the board: {runs}")
        torn = [str(path) for path in self.host.folder.rglob("*.part")]
        self.expect(not torn, f"torn on the host: {torn}")
        # What was sent before Ctrl-C stays for the next time, under a name of its own.
        parts = [str(path) for path in self.board.home.rglob("*.part")]
        self.expect(not parts or self.facts.get("exit_code") == 130, f"torn on the board: {parts}")
        for folder in self.board.home.glob("?" * 64):
            if any(folder.iterdir()) and not list(folder.rglob("*.part")):
                self.expect(folder.name == content_key(folder), f"{folder.name} holds something else")
        for command in filter(None, [self.command]):
            self.expect("Traceback" not in command.messages, f"a traceback: {command.messages[-800:]}")
            self.expect(
                not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", command.messages), "a control character in a message"
            )
        for report in self.reports():
            json.loads(report.read_text())


def content_key(folder: Path) -> str:
    """Return the name that a folder of files ought to have; see ``deploy.content_key``."""
    files = {path.relative_to(folder).as_posix(): sha256_file(path) for path in folder.rglob("*") if path.is_file()}
    if len(files) == 1:
        return next(iter(files.values()))
    return hashlib.sha256("".join(f"{digest}  {name}\n" for name, digest in sorted(files.items())).encode()).hexdigest()


def same_samples(document: dict, raw: bytes) -> bool:
    """Tell whether a report has exactly the calls of a samples file, to the nanosecond."""
    import tempfile

    import numpy as np

    from argus_edge.bench.samples import decode, read_samples
    from argus_edge.schema.bench import EncodedArray

    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(raw)
        file.flush()
        latency = read_samples(Path(file.name)).latency
    told = decode(EncodedArray.model_validate(document["measurements"][0]["latency"]))
    return len(told) <= len(latency) and np.allclose(told, latency[: len(told)], rtol=0, atol=1e-9)
