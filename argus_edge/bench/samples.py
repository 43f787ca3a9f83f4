"""Samples: reading the agent's file of raw times, and packing arrays into a report."""

from __future__ import annotations

import base64
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from argus_edge.agents import wire
from argus_edge.errors import RunFailedError
from argus_edge.schema.bench import EncodedArray

Dtype = Literal["<u4", "<u8", "<f8"]
Unit = Literal["ns", "us", "s", "tokens"]

MAX_MARKS = 100_000
PER_SECOND = {"ns": 1e9, "us": 1e6, "s": 1.0}


@dataclass(frozen=True)
class Samples:
    """Calls of one timed window, in the order in which they were issued.

    Attributes
    ----------
    start, end
        Shape (n,), seconds of the device's CLOCK_MONOTONIC.
    latency
        Shape (n,), seconds; from the scheduled time where there is a schedule, else from the start.
    marks
        Shape (n, m): moments within each call, on the same clock; 0 where a call did not come to one.
    """

    start: NDArray[np.float64]
    end: NDArray[np.float64]
    latency: NDArray[np.float64]
    marks: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))

    def __len__(self) -> int:
        return len(self.start)


def read_samples(path: Path, *, count: int | None = None) -> Samples:
    """Read a samples file as the agent writes it; see :mod:`argus_edge.agents.wire` for the layout.

    Parameters
    ----------
    path
        The fetched file.
    count
        Number of calls by the result; calls beyond it are not part of the window. None: all that are done.

    Raises
    ------
    RunFailedError
        The file is not a samples file, is cut short, or holds times that cannot be.
    """
    raw = path.read_bytes()
    if len(raw) < wire.SAMPLE_HEADER_BYTES:
        raise RunFailedError(f"The samples file holds only {len(raw)} bytes.", where=path.name)
    _, capacity, columns, _, marks = struct.unpack_from(wire.SAMPLE_HEADER, raw)
    own = columns - marks
    whole = all(0 <= value <= len(raw) and value == int(value) for value in (capacity, columns, marks))
    if own not in (2, 3) or marks > MAX_MARKS or not whole:
        raise RunFailedError("The samples file's header does not hold together.", where=path.name)
    rows = int(capacity)
    if len(raw) < wire.SAMPLE_HEADER_BYTES + 8 * rows * int(columns):
        raise RunFailedError("The samples file is cut short.", where=path.name)
    table = np.frombuffer(raw, "<f8", rows * int(columns), wire.SAMPLE_HEADER_BYTES).reshape(int(columns), rows)
    done = table[1] > 0
    if count is not None:
        done &= np.arange(rows) < count
    start, end = table[0, done], table[1, done]
    latency = end - (table[2, done] if own == 3 else start)
    within = np.ascontiguousarray(table[int(own) :, done].T)
    if not np.isfinite(latency).all() or (latency < 0).any() or not np.isfinite(within).all():
        raise RunFailedError("The samples file holds a call that ends before it begins.", where=path.name)
    return Samples(start=start, end=end, latency=latency, marks=within)


def encode(values: NDArray[Any], unit: Unit) -> EncodedArray:
    """Pack an array of seconds (or tokens) for a report.

    Times are stored as whole ns or us in 32 bits where they fit, else 64; ``"s"`` keeps the floats.
    """
    array = np.asarray(values, dtype=np.float64)
    dtype: Dtype
    if unit == "s":
        dtype = "<f8"
    else:
        array = np.rint(array * PER_SECOND.get(unit, 1.0))
        dtype = "<u4" if len(array) == 0 or array.max() < 2**32 else "<u8"
    data = base64.b64encode(array.astype(dtype).tobytes()).decode("ascii")
    return EncodedArray(dtype=dtype, unit=unit, count=len(array), data=data)


def decode(array: EncodedArray) -> NDArray[np.float64]:
    """Return a packed array as float64: seconds for times, counts for tokens. Shape (count,)."""
    values = np.frombuffer(base64.b64decode(array.data), array.dtype).astype(np.float64)
    return values / PER_SECOND.get(array.unit, 1.0)
