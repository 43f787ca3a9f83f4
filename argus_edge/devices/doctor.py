"""What is missing or wrong on a device: the host's own checks in order, then the agent's, each with what mends it."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from argus_edge.devices.agent_client import CALL_S, AgentClient
from argus_edge.devices.deploy import deploy_agent, free_bytes
from argus_edge.devices.remote_files import new_mark
from argus_edge.devices.transport import Completed, Transport
from argus_edge.errors import ArgusError, DeviceError
from argus_edge.schema.agent import Finding
from argus_edge.schema.device import DeviceEntry
from argus_edge.text import clean

OLDEST_PYTHON = (3, 6)
ROOM_BYTES = 500 << 20
CLOCK_SKEW_S = 60.0
COMMAND_S = 1800.0
"""A command that mends something may install packages over a slow line."""


@dataclass(frozen=True)
class Diagnosis:
    """One finding, and what its remedy is.

    Attributes
    ----------
    finding
        As the agent gives them; the host's own have the same form.
    error
        The error behind a failed host check, whose exit code counts; its next step is the remedy.
    """

    finding: Finding
    error: ArgusError | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong here."""
        return self.finding.ok

    @property
    def runnable(self) -> bool:
        """Whether `device setup` can run the remedy on the device."""
        command = self.finding.command or ""
        # What is run is what was shown: nothing that a terminal would have hidden.
        return not self.ok and bool(command) and clean(command, limit=1000) == command


def diagnose(entry: DeviceEntry, connect: Callable[[DeviceEntry], Transport]) -> Iterator[Diagnosis]:
    """Yield the findings as they come; a failed check that the next ones need ends the list.

    Parameters
    ----------
    entry
        The device.
    connect
        Makes its transport; closed at the end.
    """
    try:
        transport = connect(entry)
    except ArgusError as error:
        yield _failed("address", error)
        return
    try:
        yield from _diagnose(transport, entry)
    finally:
        transport.close()


def _diagnose(transport: Transport, entry: DeviceEntry) -> Iterator[Diagnosis]:
    mark = new_mark()
    try:
        started = time.time()
        done = transport.run(["/bin/sh", "-c", 'echo "$0 $(date +%s)"', mark], timeout=CALL_S)
        ended = time.time()
    except ArgusError as error:
        yield _failed("login", error)
        return
    if mark not in done.stdout:
        yield _wrong(
            "shell", f"commands do not run as they should: {clean(done.stdout + done.stderr, limit=200) or 'no answer'}"
        )
        return
    yield _good("login", f"{transport.description} answers in {1000 * (ended - started):.0f} ms")
    noise = done.stdout.partition(mark)[0]
    if noise.strip():
        detail = f"the login prints {len(noise)} characters before every command ({clean(noise, limit=60)!r}): harmless"
        yield Diagnosis(Finding(check="shell", ok=True, severity="info", detail=detail))
    yield from _clock(done, mark, started, ended)
    # What is in order here, the agent tells in more detail.
    python = None if entry.container else _python(transport, entry)
    missing = [diagnosis for diagnosis in (python, _room(transport, entry)) if diagnosis is not None]
    yield from missing
    if missing:
        return
    try:
        agent: AgentClient = deploy_agent(transport, entry)
        findings = agent.check()
    except ArgusError as error:
        yield _failed("agent", error)
        return
    yield _good("agent", "sent, and it answers")
    yield from (Diagnosis(finding) for finding in findings)


def _clock(done: Completed, mark: str, started: float, ended: float) -> Iterator[Diagnosis]:
    text = done.stdout.partition(mark)[2].split()
    if not text or not text[0].isdecimal():
        return
    skew = float(text[0][:12]) - (started + ended) / 2
    if abs(skew) <= CLOCK_SKEW_S + (ended - started):
        return
    yield Diagnosis(
        Finding(
            check="clock",
            ok=False,
            severity="warning",
            detail=f"the device's clock is {abs(skew):.0f} s {'ahead' if skew > 0 else 'behind'}: "
            "an external meter's file cannot be joined, and certificates may fail",
            command="sudo timedatectl set-ntp true",
            privileged=True,
        )
    )


def _python(transport: Transport, entry: DeviceEntry) -> Diagnosis | None:
    mark = new_mark()
    program = f"import sys; print('{mark}', '%d %d %d' % sys.version_info[:3])"
    try:
        done = transport.run([entry.python, "-c", program], timeout=CALL_S)
    except ArgusError as error:
        return _failed("python", error)
    words = done.stdout.partition(mark)[2].split()[:3]
    python = clean(entry.python, limit=100)
    if len(words) < 3 or not all(word.isdecimal() for word in words):
        said = clean(done.stderr, limit=120) or f"status {done.status}"
        default = entry.python == "python3"
        return _wrong(
            "python",
            f"{python} does not run there ({said})"
            + (
                ""
                if default
                else f"; name another: argus-edge device add {shlex.quote(entry.name)} --python PATH --replace"
            ),
            command="sudo apt-get install -y python3" if default else None,
        )
    version = tuple(int(word[:4]) for word in words)
    if version < OLDEST_PYTHON:
        return _wrong(
            "python",
            f"{python} is {'.'.join(words)}; the agent needs 3.6 or newer: "
            f"argus-edge device add {shlex.quote(entry.name)} --python PATH --replace",
        )
    return None


def _room(transport: Transport, entry: DeviceEntry) -> Diagnosis | None:
    try:
        free = free_bytes(transport, entry.home, entry.home)
    except ArgusError as error:
        return _failed("room", error)
    if free >= ROOM_BYTES:
        return None
    text = f"{free / 1e6:.0f} MB are free at {clean(entry.home, limit=100)}: too little for most models"
    return _wrong("room", text, command="sudo apt-get clean")


def _good(check: str, detail: str) -> Diagnosis:
    return Diagnosis(Finding(check=check, ok=True, severity="info", detail=detail))


def _wrong(check: str, detail: str, *, command: str | None = None) -> Diagnosis:
    privileged = bool(command and command.startswith("sudo "))
    return Diagnosis(Finding(check=check, ok=False, detail=detail[:2000], command=command, privileged=privileged))


def _failed(check: str, error: ArgusError) -> Diagnosis:
    return Diagnosis(Finding(check=check, ok=False, detail=error.what[:2000]), error)


def exit_code(diagnoses: list[Diagnosis]) -> int:
    """Return the command's exit code: 0 where nothing is wrong, 3 not reachable or not trusted, else 4."""
    failed = [diagnosis for diagnosis in diagnoses if not diagnosis.ok and diagnosis.finding.severity == "error"]
    if not failed:
        return 0
    return 3 if any(isinstance(diagnosis.error, DeviceError) for diagnosis in failed) else 4


def mend(transport: Transport, command: str) -> Completed:
    """Run a finding's command on the device it was found on, without a terminal (sudo cannot ask for a password)."""
    return transport.run(["/bin/sh", "-c", command], timeout=COMMAND_S)
