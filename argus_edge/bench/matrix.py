"""A matrix of models and boards: the benches that it takes, and the error that counts at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from argus_edge.bench.drive import Connect, Outcome, Prepared, bench, resume
from argus_edge.bench.energy import Meter
from argus_edge.bench.fleet import Result, Task
from argus_edge.bench.watching import Listener
from argus_edge.errors import ArgusError, GateFailedError
from argus_edge.schema.device import DeviceEntry
from argus_edge.store.records import Record, Store

# Of several errors the one whose code comes first here is the command's: Ctrl-C, a failed gate, one that cannot decide,
# no room on the host, then what failed on boards, and boards that were not reached last.
PRECEDENCE = (130, 1, 8, 7, 6, 5, 4, 2, 3)


def matrix(
    prepared: Sequence[Prepared],
    entries: Sequence[DeviceEntry],
    store: Store,
    *,
    meter: Callable[[], Meter] | None = None,
) -> list[Task]:
    """Return the benches of every model on every board, model by model."""

    def action(model: Prepared, entry: DeviceEntry) -> Callable[[Listener, Connect], Outcome]:
        return lambda listener, connect: bench(model, entry, store, listener=listener, meter=meter, connect=connect)

    return [Task(model.model.name, entry, action(model, entry)) for model in prepared for entry in entries]


def come_back_task(record: Record, store: Store, *, meter: Callable[[], Meter] | None = None) -> Task:
    """Return the task of coming back to a run."""
    entry_json, _ = store.documents(record.id)
    return Task(
        record.model,
        DeviceEntry.model_validate_json(entry_json),
        lambda listener, connect: resume(record, store, listener=listener, meter=meter, connect=connect),
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
