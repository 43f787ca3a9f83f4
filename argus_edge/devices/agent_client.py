"""The host's side of the wire protocol: calls the agent on a device and checks everything that it answers."""

from __future__ import annotations

import contextlib
import shlex
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from argus_edge.agents import wire
from argus_edge.artifacts import sha256_file
from argus_edge.devices import container
from argus_edge.devices.transport import Completed, Progress, Transport
from argus_edge.errors import (
    ArgusError,
    BoardFailedError,
    DeviceBusyError,
    DeviceUnreachableError,
    MisfitError,
    RunFailedError,
)
from argus_edge.schema.agent import (
    AgentFault,
    DeviceFacts,
    Event,
    Finding,
    Hash,
    Holder,
    Job,
    Name,
    RunId,
    RunStatus,
    Text,
    Wire,
)
from argus_edge.schema.device import DeviceEntry
from argus_edge.text import clean

M = TypeVar("M", bound=BaseModel)

CALL_S = 30.0
"""A command that only looks something up."""
PROBE_S = 180.0
"""probe imports every runtime once in a process of its own; torch from an SD card takes its time."""
STOP_S = 30.0
COLLECT_S = 180.0
SILENCE_S = 10.0
"""follow gives a heartbeat every 2 s."""
# The answer, and what a login shell or a runtime may print around it.
_ANSWER_BYTES = wire.MAX_LINE_BYTES * 2
MAX_FILES = 4096
LONGEST_HOLD_S = 10 * 366 * 86400.0
"""What a board says beyond this is no time."""
# A run's samples: the mapping of the longest run there is; text and results have the protocol's own limit.
MAX_SAMPLES_BYTES = 1 << 30


class Started(Wire):
    """Answer to ``start``."""

    run: RunId
    pid: int


class RemoteFile(Wire):
    """A file that a run left on the device."""

    name: Name = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    path: Text
    size: int = Field(ge=0)
    sha256: Hash


class Chunk(BaseModel):
    """A piece of a run's journal: its events, and where the next piece begins."""

    model_config = ConfigDict(extra="ignore")

    offset: int = Field(ge=0)
    events: list[Event] = Field(max_length=10_000)


class _Findings(Wire):
    findings: list[Finding] = Field(max_length=200)


class _Runs(Wire):
    runs: list[RunStatus] = Field(max_length=10_000)


class _Files(Wire):
    files: list[RemoteFile] = Field(max_length=MAX_FILES)


class _Held(Wire):
    holder: Holder | None = None


class AgentClient:
    """Calls one agent.

    Parameters
    ----------
    transport
        The link to the device.
    entry
        The device: its interpreter and its home folder.
    agent
        Path of the agent's zipapp on the device.
    """

    def __init__(self, transport: Transport, entry: DeviceEntry, agent: str) -> None:
        self.transport = transport
        self.entry = entry
        self.agent = agent

    # ------------------------------------------------------------ commands

    def probe(self, *, system_root: str | None = None, runtimes: Sequence[str] | None = None) -> DeviceFacts:
        """Return what the device is; of the runtimes only those named are imported, None: every one."""
        arguments = ["--system-root", system_root] if system_root else []
        arguments += ["--runtimes", ",".join(runtimes)] if runtimes is not None else []
        return self._call(DeviceFacts, wire.PROBE, *arguments, timeout=PROBE_S)

    def check(self) -> list[Finding]:
        """Return what the agent's own checks found."""
        return self._call(_Findings, wire.CHECK, timeout=PROBE_S).findings

    def start(self, job: Job) -> Started:
        """Start a run; it goes on without us.

        Raises
        ------
        DeviceBusyError
            Another run holds the device; the message says whose, since when.
        """
        with tempfile.TemporaryDirectory(prefix="argus-edge-") as folder:
            local = Path(folder, wire.JOB_FILE)
            local.write_text(job.model_dump_json())
            digest = sha256_file(local)
            remote = f"{self.entry.home}/{wire.JOBS_FOLDER}/{job.run}.json"
            self.transport.put(local, remote, sha256=digest)
        try:
            return self._call(Started, wire.START, remote, timeout=CALL_S)
        finally:
            # The run keeps a copy of its own. A link that is lost here has its own error already.
            with contextlib.suppress(DeviceUnreachableError):
                self.transport.run(["rm", "-f", remote], timeout=CALL_S)

    def follow(self, run: str, offset: int = 0) -> Iterator[Chunk]:
        """Yield the journal from an offset on, piece by piece, until the run has ended; an empty piece is a heartbeat.

        Raises
        ------
        DeviceUnreachableError
            The agent was silent for 10 s (its heartbeat comes every 2 s; it has 30 s to start on a busy board), or the
            link failed. The run goes on.
        """
        argv = self._argv(wire.FOLLOW, run, str(offset))
        with self.transport.lines(argv, silence=SILENCE_S, first=CALL_S) as lines:
            heard, allowed = time.monotonic(), CALL_S
            for line in lines:
                document = self._document(line)
                if document is None:
                    # Chatter does not count as a sign of life.
                    if time.monotonic() - heard > allowed:
                        raise DeviceUnreachableError(
                            f"The agent was silent for {allowed:g} s.",
                            where=self.transport.description,
                            next_step="the run goes on; come back to it with --resume",
                        )
                    continue
                heard, allowed = time.monotonic(), SILENCE_S
                if _is_fault(document):
                    self._raise_fault(document["error"])
                if not document:
                    yield Chunk(offset=offset, events=[])
                    continue
                chunk = self._checked(Chunk, document)
                offset = chunk.offset
                yield chunk

    def status(self, run: str) -> RunStatus:
        """Return how a run stands."""
        return self._call(RunStatus, wire.STATUS, run, timeout=CALL_S)

    def list_runs(self) -> list[RunStatus]:
        """Return the runs that the device still has."""
        return self._call(_Runs, wire.LIST, timeout=CALL_S).runs

    def stop(self, run: str) -> RunStatus:
        """End a run; the agent takes at most 5 s."""
        return self._call(RunStatus, wire.STOP, run, timeout=STOP_S)

    def collect(self, run: str) -> list[RemoteFile]:
        """Return the files of a run that has ended; its result is made from what is left if need be."""
        return self._call(_Files, wire.COLLECT, run, timeout=COLLECT_S).files

    def fetch(self, run: str, folder: Path, *, progress: Progress | None = None) -> dict[str, Path]:
        """Collect a run and bring its files into a folder, each whole and with the hash that the agent named.

        Returns
        -------
        dict
            File name to local path.
        """
        fetched: dict[str, Path] = {}
        for file in self.collect(run):
            target = folder / file.name
            limit = MAX_SAMPLES_BYTES if file.name.endswith(".bin") else wire.MAX_RESULT_BYTES
            if file.size > limit:
                raise RunFailedError(
                    f"The file {file.name} has {file.size} bytes: larger than the {limit} a run may leave.",
                    where=f"{self.transport.description}: {run}",
                )
            self.transport.get(file.path, target, limit=file.size, progress=progress)
            if sha256_file(target) != file.sha256:
                target.unlink()
                raise RunFailedError(
                    f"The file {file.name} changed while it was fetched.",
                    where=f"{self.transport.description}: {run}",
                    next_step="try again",
                )
            fetched[file.name] = target
        return fetched

    def remove(self, run: str) -> None:
        """Delete a run's files on the device."""
        self._call(Wire, wire.REMOVE, run, timeout=CALL_S)

    def check_free(self) -> None:
        """Raise where another run holds the device.

        Raises
        ------
        DeviceBusyError
            It says whose, since when.
        """
        held = self._call(_Held, wire.HOLDER, timeout=CALL_S).holder
        if held is not None:
            raise busy_error(held, self.transport.description)

    # ------------------------------------------------------------ the protocol

    def _argv(self, command: str, *arguments: str) -> list[str]:
        return [*container.words(self.entry), self.agent, "--home", self.entry.home, command, *arguments]

    def _call(self, model: type[M], command: str, *arguments: str, timeout: float) -> M:
        done = self.transport.run(self._argv(command, *arguments), timeout=timeout, limit=_ANSWER_BYTES)
        for line in done.stdout.splitlines():
            document = self._document(line)
            if document is None:
                continue
            if _is_fault(document):
                self._raise_fault(document["error"])
            return self._checked(model, document)
        raise no_answer(done, self.entry, self.transport.description)

    def _document(self, line: str) -> dict[str, Any] | None:
        """Return the document of a line of the protocol, None for any other line."""
        # A login shell's prompt or escape sequence may stand before the magic word on the same line.
        at = line.find(wire.MAGIC + " ")
        if at < 0:
            return None
        try:
            document = wire.parse(line[at:])
            sane = _sane(document)
        except (ValueError, RecursionError) as error:
            raise self._nonsense(str(error)) from error
        if not isinstance(document, dict) or not sane:
            raise self._nonsense("not an object" if sane else "numbers or characters that cannot be")
        return document

    def _checked(self, model: type[M], document: dict[str, Any]) -> M:
        try:
            return model.model_validate(document)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            place = clean(".".join(str(part) for part in first["loc"]), limit=80) or "document"
            raise self._nonsense(f"{place}: {first['msg']}") from error

    def _nonsense(self, reason: str) -> RunFailedError:
        return RunFailedError(
            f"The agent's answer cannot be used: {clean(reason, limit=200)}.",
            where=self.transport.description,
            next_step="is something on the device overwriting its files? `argus-edge device doctor` looks",
        )

    def _raise_fault(self, document: Any) -> NoReturn:
        raise fault_error(self._checked(AgentFault, document), self.transport.description)


def _is_fault(document: dict[str, Any]) -> bool:
    """Tell the answer of a command that failed from that of one about a run that failed, which has an ``error`` too."""
    return set(document) == {"error"}


def _sane(value: Any) -> bool:
    """Tell whether a document holds only what can be computed with and written: 64-bit integers, Unicode text."""
    if isinstance(value, dict):
        return all(_sane(key) and _sane(item) for key, item in value.items())
    if isinstance(value, list):
        return all(map(_sane, value))
    if isinstance(value, str):
        return not any("\ud800" <= letter <= "\udfff" for letter in value)
    return not isinstance(value, int) or abs(value) < 1 << 63


def fault_error(fault: AgentFault, device: str) -> ArgusError:
    """Return the error for a fault that the agent names (wire.ERROR_KINDS), with the next step."""
    message = clean(fault.message, limit=400)
    if fault.kind == "busy":
        try:
            held = Holder.model_validate(fault.detail)
        except ValidationError:
            held = Holder()
        return busy_error(held, device)
    if fault.kind == "no-space":
        return MisfitError(
            f"There is no room left on the device. {message}".strip(), where=device, next_step="free some space there"
        )
    if fault.kind in ("runtime-missing", "model-rejected", "input-rejected"):
        return MisfitError(
            f"{fault.kind.replace('-', ' ').capitalize()}: {message}",
            where=device,
            next_step="`argus-edge device doctor` says what to install" if fault.kind == "runtime-missing" else None,
        )
    kind = BoardFailedError if fault.kind in ("rebooted", "supervisor-died") else RunFailedError
    return kind(
        f"{clean(fault.kind, limit=40).replace('-', ' ').capitalize()}: {message or 'no message'}", where=device
    )


def busy_error(held: Holder, device: str, *, now: datetime | None = None) -> DeviceBusyError:
    """Return the error for a device that another run holds: whose, since when on the clock of whoever reads it."""
    since = ""
    if held.held_s is not None and held.held_s < LONGEST_HOLD_S:
        moment = now or datetime.now().astimezone()
        begun = moment - timedelta(seconds=held.held_s)
        since = f" since {begun:%H:%M}" if begun.date() == moment.date() else f" since {begun:%Y-%m-%d %H:%M}"
    which = f" (run {held.run})" if held.run else ""
    return DeviceBusyError(
        f"The device is busy: {clean(held.holder or '', limit=128) or 'somebody'} holds it{since}{which}.",
        where=device,
        next_step="add --wait to queue for it"
        + (f"; if that run is yours: argus-edge runs stop {held.run}" if held.run else ""),
        run=held.run,
    )


def no_answer(done: Completed, entry: DeviceEntry, device: str) -> ArgusError:
    """Return the error for an agent that did not answer at all: most often Python is missing or too old."""
    said = clean((done.stderr.strip().splitlines() or done.stdout.strip().splitlines() or [""])[-1], limit=300)
    python = clean(entry.python, limit=100)
    if done.status in (126, 127) or ("no such file" in said.lower() and python in said):
        return MisfitError(
            f"There is no Python on the device: {python} cannot be run ({said or f'status {done.status}'}).",
            where=device,
            next_step="sudo apt install python3 there, or name one: "
            f"argus-edge device add {shlex.quote(entry.name)} --python PATH --replace",
        )
    if "SyntaxError" in done.stderr or "can't find '__main__'" in done.stderr or "ImportError" in done.stderr:
        return MisfitError(
            f"The device's {python} cannot run the agent, which needs Python 3.6 or newer ({said}).",
            where=device,
            next_step=f"name a newer one: argus-edge device add {shlex.quote(entry.name)} --python PATH --replace",
        )
    return RunFailedError(
        f"The agent did not answer (status {done.status}): {said or 'no message'}.",
        where=device,
        next_step="`argus-edge device doctor` looks at what is wrong",
    )
