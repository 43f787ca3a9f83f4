"""What a run left on the device, checked: its result, and why it failed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from argus_edge.agents import wire
from argus_edge.artifacts import read_file
from argus_edge.bench.context import Context
from argus_edge.devices.agent_client import fault_error
from argus_edge.errors import ArgusError, RunFailedError
from argus_edge.schema.agent import RunResult
from argus_edge.text import clean

# Faults of the board or of chance, not of the model: the same command may well succeed.
AGAIN = ("rebooted", "supervisor-died", "crashed", "no-space", "timeout")
TAIL_BYTES = 4096
TAIL_CHARACTERS = 300


def read_result(files: Mapping[str, Path], run: str) -> RunResult:
    """Read the agent's result, which is untrusted.

    Raises
    ------
    RunFailedError
        It is missing or not a result.
    """
    if wire.RESULT_FILE not in files:
        raise RunFailedError("The run left no result on the device.", where=run)
    try:
        result = RunResult.model_validate_json(read_file(files[wire.RESULT_FILE], limit=wire.MAX_RESULT_BYTES))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "document"
        raise RunFailedError(
            f"The device's result cannot be used: {clean(place, limit=80)}: {first['msg']}.", where=run
        ) from error
    if result.run != run:
        raise RunFailedError("The device gave another run's result.", where=run)
    return result


def failure(result: RunResult, files: Mapping[str, Path], context: Context, device: str) -> ArgusError | None:
    """Return the error of a run that failed, with the runtime's last words, or None where it was done."""
    if result.state == "done" and all(part.state == "done" for part in result.parts):
        return None
    index, part = next(
        ((i, part) for i, part in enumerate(result.parts) if part.state != "done"),
        (None, None),
    )
    fault = (part.error if part else None) or result.error
    if fault is None:
        return RunFailedError(f"The run ended as {result.state}.", where=device, next_step=_next_step(result, context))
    error = fault_error(fault, device)
    where = f"{part.name} on {device}" if part else device
    words = _last_words(files.get(wire.OUTPUT_FILE % index)) if index is not None else ""
    said = f"{error.what} (last words: {words})" if words and fault.kind in ("crashed", "runtime-error") else error.what
    return type(error)(said, where=where, next_step=error.next_step or _next_step(result, context))


def _next_step(result: RunResult, context: Context) -> str:
    done = sum(part.state == "done" for part in result.parts)
    kept = f"{done} of {len(context.job.parts)} parts were measured; " if done else ""
    kind = result.error.kind if result.error else ""
    again = f", and this runs it again: {context.setup.command}" if kind in AGAIN and context.setup.command else ""
    return f"{kept}argus-edge runs show {context.run} has what is left of it{again}"


def _last_words(path: Path | None) -> str:
    """Return the end of what the runtime wrote."""
    if path is None:
        return ""
    lines = [line for line in path.read_bytes()[-TAIL_BYTES:].decode("utf-8", "replace").splitlines() if line.strip()]
    return clean(lines[-1], limit=TAIL_CHARACTERS) if lines else ""
