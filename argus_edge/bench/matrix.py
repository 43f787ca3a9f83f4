"""A matrix of models and boards: the benches that it takes, how it is taken up again, and how it ended."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any

from pydantic import BaseModel

from argus_edge.artifacts import sha256_file
from argus_edge.bench.drive import Connect, Outcome, bench, resume
from argus_edge.bench.energy import Meter
from argus_edge.bench.fleet import Result, Task
from argus_edge.bench.prepare import Prepared
from argus_edge.bench.quarantine import Quarantine
from argus_edge.bench.waiting import Queue
from argus_edge.bench.watching import Listener
from argus_edge.devices import power
from argus_edge.errors import (
    ArgusError,
    DeviceUnreachableError,
    GateFailedError,
    RunFailedError,
)
from argus_edge.schema.device import DeviceEntry
from argus_edge.store.records import UNFINISHED, Cell, Record, Store

# Of several errors the one whose code comes first here is the command's: Ctrl-C, a failed gate, one that cannot decide,
# no room on the host, then what failed on boards, and boards that were not reached last.
PRECEDENCE = (130, 1, 8, 7, 6, 5, 4, 2, 3)


@dataclass(frozen=True)
class Means:
    """What every bench of a matrix shares.

    Attributes
    ----------
    store
        Where runs are recorded.
    meter
        Reads an external meter's log.
    queue
        Waits for busy boards.
    quarantine
        Leaves out boards that fail; None: none is.
    power_cycle
        Switch a board that does not answer off and on, once, where its entry says how.
    """

    store: Store
    meter: Callable[[], Meter] | None = None
    queue: Queue | None = None
    quarantine: Quarantine | None = None
    power_cycle: bool = False


def matrix(
    prepared: Sequence[Prepared], entries: Sequence[DeviceEntry], means: Means, *, again: bool = False
) -> list[Task]:
    """Return the benches of every model on every board, model by model.

    Parameters
    ----------
    prepared, entries
        Models and boards.
    means
        What they share.
    again
        Take up the last matrix that had one of these cells: what was measured is not measured again, what goes on is
        come back to, and the rest is run.
    """
    keys = {(id(model), entry.name): cell_key(model, entry) for model in prepared for entry in entries}
    before = means.store.last_batch(list(keys.values())) if again else {}
    batch = next((record.batch for record in before.values() if record.batch), None) or new_batch()
    tasks = []
    for model in prepared:
        for entry in entries:
            key = keys[id(model), entry.name]
            action = _Bench(model, entry, Cell(batch, key), before.get(key), means)
            tasks.append(Task(model.model.name, entry, action))
    return tasks


def new_batch() -> str:
    """Return an id for a matrix that sorts by time."""
    return f"{datetime.now(timezone.utc):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def cell_key(prepared: Prepared, entry: DeviceEntry) -> str:
    """Return the hash of what is benched, how and where; labels and the wording of the command are no part of it."""
    request = prepared.request
    document = {
        "model": prepared.model.sha256 or prepared.model.name,
        "options": {name: value for name, value in asdict(request.options).items() if name != "labels"},
        "shapes": asdict(request.shapes),
        "inputs": sha256_file(request.input_file) if request.input_file else None,
        "device": [entry.name, entry.host],
    }
    return hashlib.sha256(json.dumps(document, sort_keys=True, default=_plain).encode()).hexdigest()


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else str(value)


@dataclass(frozen=True)
class _Bench:
    """One cell: measured before, gone on, or to be run."""

    prepared: Prepared
    entry: DeviceEntry
    cell: Cell
    before: Record | None
    means: Means

    def __call__(self, listener: Listener, connect: Connect) -> Outcome:
        store, before = self.means.store, self.before
        if before is not None and before.state == "done" and before.has_report:
            listener.say(f"{before.model} was measured {before.created.astimezone():%Y-%m-%d %H:%M} (run {before.id})")
            return Outcome(store.report(before.id))
        quarantine = self.means.quarantine
        if quarantine is not None:
            quarantine.check(self.entry)
        try:
            outcome = self._measure(listener, connect)
        except ArgusError as error:
            # Ctrl-C closes the link, which is no fault of the board's: then this raises.
            listener.pause(0.0)
            self._count(error, listener)
            raise self._with_remedy(error) from error
        self._count(outcome.error, listener)
        return outcome

    def _measure(self, listener: Listener, connect: Connect) -> Outcome:
        if self.means.power_cycle and self.entry.power_cycle:
            self._revive(listener, connect)
        if self.before is not None and self.before.state in UNFINISHED:
            outcome = self._come_back(self.before, listener, connect)
            if outcome is not None:
                return outcome
        return bench(
            self.prepared,
            self.entry,
            self.means.store,
            listener=listener,
            meter=self.means.meter,
            connect=connect,
            queue=self.means.queue,
            cell=self.cell,
        )

    def _come_back(self, record: Record, listener: Listener, connect: Connect) -> Outcome | None:
        """Follow a run that went on without us; None where it came to no good end, and is to be run again."""
        try:
            outcome = resume(record, self.means.store, listener=listener, meter=self.means.meter, connect=connect)
        except RunFailedError as error:
            self.means.store.set_state(record.id, "lost", error=error.what)
            failed: ArgusError = error
        else:
            if outcome.error is None:
                return outcome
            failed = outcome.error
        listener.say(f"note: the run {record.id} came to nothing, and is run again: {failed.what}")
        return None

    def _revive(self, listener: Listener, connect: Connect) -> None:
        if power.answers(self.entry, connect):
            return
        listener.say(f"note: {self.entry.name} does not answer; switching it off and on")
        power.power_cycle(self.entry)
        seconds = power.wait_until_up(self.entry, connect=connect, pause=listener.pause)
        listener.say(f"note: {self.entry.name} answers again after {seconds:.0f} s")

    def _count(self, error: ArgusError | None, listener: Listener) -> None:
        note = self.means.quarantine.count(self.entry, error) if self.means.quarantine else None
        if note:
            listener.say(f"note: {note}")

    def _with_remedy(self, error: ArgusError) -> ArgusError:
        """Return the error; of a board that does not answer, and can be switched off and on, with that as a remedy."""
        run_goes_on = "--resume" in (error.next_step or "")
        if not isinstance(error, DeviceUnreachableError) or not self.entry.power_cycle or run_goes_on:
            return error
        remedy = f"argus-edge device power-cycle {self.entry.name}, or add --power-cycle"
        step = f"{error.next_step}; or {remedy}" if error.next_step else remedy
        return DeviceUnreachableError(error.what, where=error.where, next_step=step)


def come_back_task(record: Record, means: Means) -> Task:
    """Return the task of coming back to a run."""
    entry_json, _ = means.store.documents(record.id)
    return Task(
        record.model,
        DeviceEntry.model_validate_json(entry_json),
        lambda listener, connect: resume(record, means.store, listener=listener, meter=means.meter, connect=connect),
    )


def worst(results: Sequence[Result], *, strict: bool) -> Exception | None:
    """Return the error to end with, None where all is well.

    Parameters
    ----------
    results
        Of all benches.
    strict
        A run that is not valid is a failed gate.
    """
    errors: list[ArgusError] = []
    for result in results:
        error = error_of(result)
        if error is not None and not isinstance(error, ArgusError):
            return error
        if error is not None:
            errors.append(error)
        elif strict and result.outcome and result.outcome.report.validity.valid is not True:
            errors.append(_not_valid(result.outcome))
    return min(errors, key=lambda error: PRECEDENCE.index(error.exit_code), default=None)


def error_of(result: Result) -> Exception | None:
    """Return why a bench has no good report, None where it has one."""
    return result.error or (result.outcome.error if result.outcome else None)


def missing(results: Sequence[Result]) -> list[str]:
    """Return a line for each bench without a good report: which, why, and what would mend it."""
    lines = []
    for result in results:
        error = error_of(result)
        if error is not None:
            what = error.what if isinstance(error, ArgusError) else f"{type(error).__name__}: {error}"
            step = error.next_step if isinstance(error, ArgusError) else None
            remedy = f" ({step})" if step else ""
            lines.append(f"{result.task.model} on {result.task.entry.name}: {what}{remedy}")
    return lines


def _not_valid(outcome: Outcome) -> GateFailedError:
    causes = ", ".join(dict.fromkeys(cause.code for cause in outcome.report.validity.causes))
    return GateFailedError(
        f"The run is not valid: {causes}.",
        where=outcome.report.run,
        next_step=f"argus-edge runs show {outcome.report.run}",
    )
