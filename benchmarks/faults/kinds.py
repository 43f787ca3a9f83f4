"""The kinds of faults, in which phases each can strike, and what a right account of it is."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from argus_edge.artifacts import sha256_file
from benchmarks.faults.board import Board, small_disk
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


# ---------------------------------------------------------------- the link


def link_fault(how: str) -> Callable[[Scene], None]:
    """Return the fault of a link that is hung up, reset or swallows everything, for a moment or until the end."""

    def act(scene: Scene) -> None:
        scene.long = scene.chance.random() < 0.5
        brief = scene.chance.uniform(0.5, 4.0)
        scene.facts["long"] = scene.long
        scene.start()
        scene.wait()

        def strike() -> None:
            if how == "black-hole":
                scene.link.black_hole()
            else:
                if scene.long:
                    scene.link.refusing = True
                {"reset": scene.link.reset, "cut": scene.link.hang_up}[how]()

        scene.strike(strike)
        if not scene.long:
            threading.Timer(brief, scene.link.restore).start()
        code = scene.exit_code(0, 3, seconds=120)
        if code == 3:
            scene.noticed()
            scene.says(r"next:")
            if scene.run:
                scene.says(re.escape(f"--resume {scene.run}"))
        elif scene.long and not scene.missed:
            # All of it had been fetched when the link was lost.
            scene.expect(scene.phase == "fetch", "it ended well over a link that was gone")
        scene.link.restore()
        if code == 0 and scene.reports():
            scene.came_well()
            if scene.board.runs():
                # The link went after the fetch: what it left is cleared by hand.
                scene.host.run("runs", "prune", "--device", "board", "--yes")
        else:
            scene.come_back()

    return act


# ---------------------------------------------------------------- the host


def host_killed(scene: Scene) -> None:
    """SIGKILL."""
    scene.start()
    scene.wait()
    scene.strike(lambda: scene.command.signal(signal.SIGKILL))
    code = scene.exit_code(-signal.SIGKILL, 0)
    if code == 0:
        scene.came_well()
    else:
        scene.come_back()


def host_asleep(scene: Scene) -> None:
    """A closed laptop: the process stands still for a while."""
    scene.start()
    scene.wait()

    def sleep() -> None:
        scene.command.signal(signal.SIGSTOP)
        time.sleep(scene.chance.uniform(1.0, 9.0))
        scene.command.signal(signal.SIGCONT)

    scene.strike(sleep)
    scene.exit_code(0)
    scene.came_well()


def interrupted(scene: Scene) -> None:
    """Ctrl-C once: the remote job is ended within 5 s."""
    scene.start()
    scene.wait()
    scene.strike(lambda: scene.command.signal(signal.SIGINT))
    code = scene.exit_code(130, 0, seconds=60)
    took = time.monotonic() - scene.struck_at
    scene.facts["stopped_s"] = round(took, 2)
    if code == 130:
        scene.says("interrupt")
        scene.expect(scene.phase in ("probe", "upload") or took <= 10, f"it took {took:.1f} s")
        if "--resume" in scene.command.messages.rpartition("error:")[2]:
            scene.come_back()  # it had ended when Ctrl-C came, and was not fetched: said so
        else:
            scene.expect(not scene.reports(), "a report was written")
            if scene.phase == "upload":
                scene.anew()


def interrupted_twice(scene: Scene) -> None:
    """Ctrl-C twice: leaves at once and prints how to come back."""
    scene.start()
    scene.wait()

    def press() -> None:
        scene.command.signal(signal.SIGINT)
        if scene.phase in ("run", "steady"):
            scene.command.heard("Ctrl-C again", 10)
        scene.command.signal(signal.SIGINT)

    scene.strike(press)
    code = scene.exit_code(130, 0, seconds=60)
    if code == 130 and scene.run and "was stopped" not in scene.command.messages:
        scene.says(re.escape(f"--resume {scene.run}"))
        stopped, command = scene.host.run("runs", "stop", scene.run)
        scene.expect(
            stopped in (0, 5) or "no such run" in command.messages, f"runs stop: {stopped}: {command.messages[-300:]}"
        )
        scene.host.run("runs", "prune", "--device", "board", "--yes")


def hung_up(scene: Scene) -> None:
    """The terminal is closed: detaches."""
    scene.start()
    scene.wait()
    scene.strike(lambda: scene.command.signal(signal.SIGHUP))
    code = scene.exit_code(-signal.SIGHUP, 129, 0)
    if code == 0:
        scene.came_well()
    else:
        scene.come_back()


LIBFAKETIME = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))


def clock_jumps(scene: Scene) -> None:
    """The host's clock is set by minutes, hours or a year."""
    offset = scene.folder / "offset"
    offset.write_text("+0\n")
    scene.start(
        LD_PRELOAD=str(LIBFAKETIME[0]),
        FAKETIME_TIMESTAMP_FILE=str(offset),
        FAKETIME_NO_CACHE="1",
        FAKETIME_DONT_FAKE_MONOTONIC="1",
    )
    scene.wait()
    jump = scene.chance.choice([-86400 * 365, -7200, -60, 60, 7200, 86400 * 365])
    scene.facts["jump_s"] = jump
    scene.strike(lambda: offset.write_text(f"{jump:+d}\n"))
    scene.exit_code(0)
    scene.came_well()


# ---------------------------------------------------------------- the board


def killed(who: str, number: int, code: int, said: str) -> Callable[[Scene], None]:
    """Return the fault of a process of the agent's that dies of a signal."""

    def act(scene: Scene) -> None:
        scene.start()
        scene.wait()
        pid = getattr(scene.board, who)()
        if pid is None:
            scene.missed = True
        else:
            scene.strike(lambda: os.kill(pid, number))
        ended = scene.exit_code(code, 0)
        if ended == code:
            scene.says(said)
            scene.says("next:")
            _failed_report(scene, samples=1 if scene.phase == "steady" else 0)
        else:
            scene.expect(scene.missed or scene.phase != "steady", "it ended well")
            scene.came_well()

    return act


def _failed_report(scene: Scene, *, samples: int) -> None:
    reports = scene.reports()
    scene.expect(len(reports) == 1, f"{len(reports)} reports")
    if reports:
        document = scene.check_report(reports[0], state=None, samples=samples)
        scene.expect(document["validity"]["valid"] is not True, "a failed run is called valid")


def supervisor_hangs(scene: Scene) -> None:
    """The supervisor stands still for a while: swapped out, or stopped by a debugger."""
    scene.start()
    scene.wait()
    pid = scene.board.supervisor()
    if pid is not None:

        def pause() -> None:
            os.kill(pid, signal.SIGSTOP)
            time.sleep(scene.chance.uniform(0.5, 6.0))
            os.kill(pid, signal.SIGCONT)

        scene.strike(pause)
    scene.exit_code(0)
    scene.came_well()


def rebooted(scene: Scene) -> None:
    """The plug is pulled, and the board comes back after a while."""
    scene.start()
    scene.wait()
    before = {run.name for run in scene.board.runs() if (run / "result.json").exists()}
    scene.strike(scene.board.crash)
    time.sleep(scene.chance.uniform(0.0, 3.0))
    scene.board.boot()
    code = scene.exit_code(0, 3, 5)
    if code == 3:
        code, scene.command = scene.host.run(*(["bench", "--resume", scene.run] if scene.run else scene.argv()))
        scene.expect(code in (0, 5), f"afterwards: {code}: {scene.command.messages[-500:]}")
    if code == 5:
        scene.says("reboot|no run|did not start")
        scene.says("run it again|again")
    else:
        scene.expect(scene.phase in ("probe", "upload") or before or scene.missed, "a run survived the reboot")


def session_ended(scene: Scene) -> None:
    """The login session is ended on the board, as its init system does when it lets detached processes be."""
    scene.start()
    scene.wait()

    def end() -> None:
        for pid in scene.board.sessions():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    scene.strike(end)
    code = scene.exit_code(0, 3)
    if code == 0:
        scene.came_well()
    else:
        scene.expect(not scene.run, "the run was not gone on with")
        scene.come_back()


def runtime_fault(what: str, code: int, said: str, samples: int = 0) -> Callable[[Scene], None]:
    """Return the fault of a runtime that misbehaves by itself."""

    def act(scene: Scene) -> None:
        scene.board.set_environment({"FAKE_FAULT": what, "FAKE_CHILD": str(scene.folder / "child")})
        scene.start()
        if what.startswith("hang"):
            scene._run_id()
            scene._wait_for(
                lambda: any(
                    f'"phase": "{"load" if "load" in what else "steady"}"' in text for text in scene._journals()
                )
            )
            time.sleep(scene.chance.uniform(1.0, 4.0))
            scene.strike(lambda: scene.command.signal(signal.SIGINT))
        ended = scene.exit_code(code)
        if said:
            scene.says(said)
        if ended == 0:
            scene.came_well()
        elif ended != 130:
            scene.says("next:")
            _failed_report(scene, samples=samples)

    return act


def kernel_kills(scene: Scene) -> None:
    """The worker grows until the kernel kills it, under a real limit."""
    scene.board.set_environment({"FAKE_FAULT": "memory-run"})
    scene.start()
    scene.exit_code(5)
    scene.says("Out of memory")
    _failed_report(scene, samples=1)


TROUBLES = {
    "under-voltage": ("/sys/class/hwmon/hwmon1/in0_lcrit_alarm", 1),
    "overheated": ("/sys/class/thermal/thermal_zone0/temp", 86_200),
    "clock-limited": ("/sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq", 600_000),
}


def trouble(code: str) -> Callable[[Scene], None]:
    """Return the trouble of a board that begins in the middle: planted files that change."""

    def act(scene: Scene) -> None:
        path, value = TROUBLES[code]
        scene.start()
        scene.wait()

        def change() -> None:
            scene.board.tree[path] = value
            for other in scene.board.tree.root.glob("sys/devices/system/cpu/cpu*/cpufreq/scaling_cur_freq"):
                if code.startswith("clock"):
                    other.write_text(f"{value}\n")

        scene.strike(change)
        scene.exit_code(0)
        reports = scene.reports()
        scene.expect(len(reports) == 1, f"{len(reports)} reports")
        if not reports:
            return
        document = scene.check_report(reports[0], samples=50)
        causes = {cause["code"]: cause for cause in document["validity"]["causes"]}
        scene.expect(document["validity"]["valid"] is False, f"it is called {document['validity']['valid']}")
        scene.expect(code in causes, f"causes: {sorted(causes)}")
        if code in causes:
            scene.expect((causes[code].get("from_s") or 0) > 0, "the series does not show where it began")
        budget = scene.folder / "budget.yaml"
        budget.write_text("budget: 1\nname: any\nlimits:\n  latency_p50: 10 s\n")
        ended, command = scene.host.run("validate", str(reports[0]), "--budget", str(budget))
        scene.expect(ended in (1, 8), f"the gate let it pass ({ended}): {command.messages[-300:]} {command.out[-300:]}")

    return act


def disk_full(where: str) -> Callable[[Scene], None]:
    """Return the fault of a disk that is full in the upload, at the journal, or where the report goes."""

    def act(scene: Scene) -> None:
        if where == "report":
            with small_disk(scene.host.work, "1m"):
                scene.start()
                scene.wait()

                def fill() -> None:
                    try:
                        with open(scene.host.work / "ballast", "ab", buffering=0) as file:
                            while True:
                                file.write(bytes(4096))
                    except OSError:
                        return

                scene.strike(fill)
                code = scene.exit_code(7, 0)
                if code == 7:
                    scene.says("disk is full")
                    scene.expect(not list(scene.host.work.glob("*.json")), "a torn report")
                    scene.expect(not list(scene.host.work.glob(".*.part")), "a torn report")
                (scene.host.work / "ballast").unlink()
                if code == 7:
                    scene.says("--resume")
                    scene.come_back()
                for path in scene.host.work.iterdir():
                    (scene.folder / path.name).write_bytes(path.read_bytes())
            return
        scene.start()
        scene.wait()
        scene.strike(scene.board.fill)
        code = scene.exit_code(4, 0)
        if code == 4:
            scene.says("no room|not enough room")
            scene.says("free some space")
        elif scene.phase == "upload":
            scene.expect(scene.missed, "the upload ended well on a full disk")
        scene.board.clear()
        if code == 4 and where == "journal":
            _failed_report(scene, samples=1 if scene.phase == "steady" else 0)
        elif code == 4:
            scene.anew()

    return act


def two_hosts(scene: Scene) -> None:
    """Another user wants the board meanwhile."""
    scene.start()
    scene.wait()
    other = Host(scene.folder / "other")
    other.knows(scene.board, scene.board.port)
    scene.strike(lambda: None)
    busy = bool(scene.board.pids())
    code, command = other.run(*scene.argv())
    if code == 3:
        scene.expect(re.search(r"busy: \S+@\S+ holds it since", command.messages), command.messages[-400:])
    else:
        scene.expect(
            code == 0 and not (busy and scene.command.running), f"the other: {code}: {command.messages[-400:]}"
        )
    # The other may have had the board when this one came to start.
    mine = scene.exit_code(0, 3)
    scene.expect(0 in (mine, code), "neither of them ran")
    if mine == 0:
        scene.came_well()
    else:
        scene.says("busy")


def agent_replaced(how: str) -> Callable[[Scene], None]:
    """Return the fault of an agent on the board that is another one than ours."""

    def act(scene: Scene) -> None:
        from argus_edge.devices.zipapp import build_agent

        agent = build_agent(scene.folder / "agent")
        place = scene.board.home / agent.sha256 / "agent.pyz"
        raw = agent.path.read_bytes()
        other = {
            "torn": raw[: scene.chance.randrange(1, len(raw))],
            "newer": raw + b"\n# newer",
            "nonsense": b"#!/bin/sh\necho hello\n",
        }[how]
        if scene.phase == "before":
            place.parent.mkdir(parents=True)
            place.write_bytes(other)
            scene.start()
            scene.exit_code(0)
            scene.came_well()
        else:
            scene.start()
            scene.wait()
            # As an update would: another file under the name; what runs keeps its own.
            spare = place.with_name("spare")
            spare.write_bytes(other)
            scene.strike(lambda: spare.replace(place))
            if scene.exit_code(0, 5) == 5:
                scene.says("agent")
                scene.come_back()
            else:
                scene.came_well()
        code, _ = scene.host.run("device", "probe", "board")
        scene.expect(code == 0, "the board cannot be probed afterwards")
        scene.expect(sha256_file(place) == agent.sha256, "another agent is still there")

    return act


@dataclass(frozen=True)
class Kind:
    """A kind of fault.

    Attributes
    ----------
    act
        Does it, waits for the end, and checks the account.
    phases
        In which it can strike.
    board
        How the board is made.
    needs
        Whether it can be done here.
    """

    act: Callable[[Scene], None]
    phases: tuple[str, ...]
    board: dict = field(default_factory=dict)
    needs: Callable[[], bool] = lambda: True


EVERYWHERE = ("probe", "upload", "run", "fetch")
KINDS: dict[str, Kind] = {
    "link cut": Kind(link_fault("cut"), EVERYWHERE),
    "link reset": Kind(link_fault("reset"), EVERYWHERE),
    "link black-holed": Kind(link_fault("black-hole"), EVERYWHERE),
    "host killed": Kind(host_killed, EVERYWHERE),
    "host asleep": Kind(host_asleep, EVERYWHERE),
    "host's clock jumps": Kind(clock_jumps, EVERYWHERE, needs=lambda: bool(LIBFAKETIME)),
    "Ctrl-C": Kind(interrupted, EVERYWHERE),
    "Ctrl-C twice": Kind(interrupted_twice, EVERYWHERE),
    "terminal closed": Kind(hung_up, EVERYWHERE),
    "supervisor killed": Kind(killed("supervisor", signal.SIGKILL, 5, "Supervisor died"), ("run", "steady")),
    "supervisor hangs": Kind(supervisor_hangs, ("run", "steady")),
    "worker killed": Kind(killed("worker", signal.SIGKILL, 5, r"Crashed: .*SIGKILL"), ("run", "steady")),
    "worker segfaults": Kind(killed("worker", signal.SIGSEGV, 5, r"Crashed: .*SIGSEGV"), ("steady",)),
    "worker out of memory": Kind(kernel_kills, ("run",), {"memory": True}, needs=lambda: sys.platform == "linux"),
    "board reboots": Kind(rebooted, EVERYWHERE),
    "login session ended": Kind(session_ended, EVERYWHERE),
    "runtime segfaults": Kind(runtime_fault("segfault-run", 5, "Crashed: .*SIGSEGV", 1), ("run",)),
    "runtime segfaults at load": Kind(runtime_fault("segfault-load", 5, "Crashed: .*SIGSEGV"), ("run",)),
    "runtime exits": Kind(runtime_fault("exit-run", 5, "exit status 3", 1), ("run",)),
    "runtime raises": Kind(runtime_fault("raise-run", 5, "runtime is unhappy", 1), ("run",)),
    "runtime refuses the model": Kind(runtime_fault("raise-load", 4, "Model rejected"), ("run",)),
    "runtime hangs": Kind(runtime_fault("hang-run", 130, "was stopped"), ("run",)),
    "runtime hangs at load": Kind(runtime_fault("hang-load", 130, "was stopped"), ("run",)),
    "runtime prints megabytes": Kind(runtime_fault("print-load", 0, ""), ("run",)),
    "runtime writes to stdout": Kind(runtime_fault("speak-load", 0, ""), ("run",)),
    "runtime leaves a child": Kind(runtime_fault("child-load", 5, "Crashed"), ("run",)),
    "under-voltage begins": Kind(trouble("under-voltage"), ("steady",), {"planted": True}),
    "throttling begins": Kind(trouble("overheated"), ("steady",), {"planted": True}),
    "clock cap begins": Kind(trouble("clock-limited"), ("steady",), {"planted": True}),
    "disk full at upload": Kind(disk_full("upload"), ("upload",)),
    "disk full at the journal": Kind(disk_full("journal"), ("run", "steady")),
    "disk full at the report": Kind(disk_full("report"), ("run", "upload")),
    "two hosts": Kind(two_hosts, EVERYWHERE),
    "agent torn": Kind(agent_replaced("torn"), ("before", "run")),
    "agent newer": Kind(agent_replaced("newer"), ("before", "run")),
    "agent nonsense": Kind(agent_replaced("nonsense"), ("before", "run")),
}
