"""The kinds of faults, in which phases each can strike, and what a right account of it is."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from argus_edge.artifacts import sha256_file
from benchmarks.faults.board import small_disk
from benchmarks.faults.host import Host
from benchmarks.faults.scene import Scene

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
            scene.failed_report(samples=1 if scene.phase == "steady" else 0)
        else:
            scene.expect(scene.missed or scene.phase != "steady", "it ended well")
            scene.came_well()

    return act


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
            scene.failed_report(samples=samples)

    return act


def kernel_kills(scene: Scene) -> None:
    """The worker grows until the kernel kills it, under a real limit."""
    scene.board.set_environment({"FAKE_FAULT": "memory-run"})
    scene.start()
    scene.exit_code(5)
    scene.says("Out of memory")
    scene.failed_report(samples=1)


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
            scene.failed_report(samples=1 if scene.phase == "steady" else 0)
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
