"""Power and energy of a timed window: from the board's own sensors, or from an external meter's log."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from argus_edge.artifacts import read_file
from argus_edge.bench.model_types import GPU_PROVIDERS
from argus_edge.errors import InputError
from argus_edge.schema.agent import PartResult, SeriesPoint
from argus_edge.schema.bench import Energy

MAX_METER_BYTES = 256 << 20
TIME_COLUMNS = ("time", "timestamp", "t", "epoch", "datetime", "date")
POWER_COLUMNS = ("power_w", "power", "watts", "watt", "w")
MILLI_COLUMNS = ("power_mw", "mw", "milliwatts")
# Idle power is the mean over so many seconds before the run was started.
METER_IDLE_S = 10.0
# The year 5138; a larger number counts parts of a second.
LAST_EPOCH = 1e11


def energy(part: PartResult, series: Sequence[SeriesPoint], *, window_s: float, inferences: int) -> Energy | None:
    """Return the energy of a window by the device's own sensors, or None where it has none.

    Parameters
    ----------
    part
        What the agent reported: idle power, and what the sensor is and covers.
    series
        Readings, t in seconds after the window's start.
    window_s
        Length of the window, seconds.
    inferences
        Samples that were done in it.
    """
    said = part.vendor_after.get("energy") or part.vendor_before.get("energy")
    if not isinstance(said, dict):
        return None
    if said.get("sensor") == "nvml" and not set(part.providers_used) & set(GPU_PROVIDERS):
        # The power of a GPU that does nothing says nothing about a model on the CPU.
        return None
    source, coverage = str(said.get("source", "unknown"))[:200], str(said.get("coverage", "unknown"))[:300]
    mean_w = _by_counter(series, window_s) or _by_power(series, window_s)
    if mean_w is None:
        return Energy(source=source, coverage=coverage, reason="fewer than two readings fell into the window")
    return _energy(source, coverage, mean_w, part.idle_power_w, window_s, inferences)


def _energy(
    source: str, coverage: str, mean_w: float, idle_w: float | None, window_s: float, inferences: int
) -> Energy:
    reason = None if idle_w is not None else "idle power is not known: joules include it"
    above = mean_w - (idle_w or 0.0)
    joules = above * window_s / inferences if inferences and above > 0 else None
    if above <= 0:
        reason = "the power was not above that at rest"
    return Energy(
        source=source,
        coverage=coverage,
        mean_w=mean_w,
        idle_w=idle_w,
        joules_per_inference=joules,
        reason=reason,
    )


def _inside(series: Sequence[SeriesPoint], name: str, window_s: float) -> list[tuple[float, float]]:
    return [(point.t, point.values[name]) for point in series if name in point.values and 0 <= point.t <= window_s]


def _by_counter(series: Sequence[SeriesPoint], window_s: float) -> float | None:
    """Return watts from an energy counter: exact between two readings, whatever happened in between."""
    points = _inside(series, "energy_j", window_s)
    if len(points) < 2 or points[-1][0] <= points[0][0]:
        return None
    return (points[-1][1] - points[0][1]) / (points[-1][0] - points[0][0])


def _by_power(series: Sequence[SeriesPoint], window_s: float) -> float | None:
    points = _inside(series, "power_w", window_s)
    if len(points) < 2:
        return None
    return _mean(np.array([t for t, _ in points]), np.array([value for _, value in points]))


def _mean(t: NDArray[np.float64], power: NDArray[np.float64]) -> float:
    """Return the time-weighted mean of power readings (trapezoids between them)."""
    steps = np.diff(t)
    if steps.sum() <= 0:
        return float(power.mean())
    return float(((power[1:] + power[:-1]) / 2 * steps).sum() / steps.sum())


@dataclass(frozen=True)
class Meter:
    """An external meter's log.

    Attributes
    ----------
    name
        The file's name.
    t
        Shape (n,), seconds since the epoch, ascending.
    power
        Shape (n,), watts.
    """

    name: str
    t: NDArray[np.float64]
    power: NDArray[np.float64]

    def energy(self, *, window_wall: float, window_s: float, started_wall: float, inferences: int) -> Energy:
        """Return the energy of a window that began at ``window_wall`` (seconds since the epoch, by the device's clock).

        The two clocks must agree: a meter that is a minute off measures another minute.
        """
        source = f"external meter ({self.name})"
        coverage = "whatever the meter is wired to"
        inside = (self.t >= window_wall) & (self.t <= window_wall + window_s)
        if inside.sum() < 2:
            logged = f"{_clock(self.t[0])} to {_clock(self.t[-1])}" if len(self.t) else "nothing"
            return Energy(
                source=source,
                coverage=coverage,
                reason=f"the log covers {logged}, the window began at {_clock(window_wall)}: do the clocks agree?",
            )
        before = (self.t >= started_wall - METER_IDLE_S) & (self.t < started_wall)
        idle = float(self.power[before].mean()) if before.any() else None
        return _energy(source, coverage, _mean(self.t[inside], self.power[inside]), idle, window_s, inferences)


def _clock(epoch: float) -> str:
    return datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


def read_meter(path: Path) -> Meter:
    """Read an external meter's CSV: a header, a time column (epoch seconds or ISO 8601) and a power column (W or mW).

    Raises
    ------
    InputError
        No such columns, or a line that cannot be read.
    """
    text = read_file(path, limit=MAX_METER_BYTES).decode("utf-8-sig", "replace")
    try:
        return _read_meter(path, text)
    except csv.Error as error:
        raise InputError(f"The meter's log is no CSV: {error}.", where=str(path)) from error


def _read_meter(path: Path, text: str) -> Meter:
    lines = text.splitlines()
    if len(lines) > 1 and not text.endswith(("\n", "\r")):
        lines.pop()  # the meter is still writing it
    rows = csv.reader(lines, delimiter=";" if text.partition("\n")[0].count(";") else ",")
    header = [name.strip().lower() for name in next(rows, [])]
    time_column = next((header.index(name) for name in TIME_COLUMNS if name in header), None)
    named = next((name for name in (*POWER_COLUMNS, *MILLI_COLUMNS) if name in header), None)
    if time_column is None or named is None:
        raise InputError(
            f"The meter's log has no column of time and power; its header is {', '.join(header)[:200]!r}.",
            where=str(path),
            next_step="first line: time,power_w (epoch seconds or ISO 8601; watts)",
        )
    factor = 1e-3 if named in MILLI_COLUMNS else 1.0
    power_column = header.index(named)
    readings = []
    for row in rows:
        if not row:
            continue
        try:
            reading = (_epoch(row[time_column]), float(row[power_column]) * factor)
        except (ValueError, IndexError, OverflowError) as error:
            raise InputError(
                f"Line {rows.line_num} of the meter's log cannot be read: {','.join(row)[:100]!r}.", where=str(path)
            ) from error
        readings.append(reading)
    if not np.isfinite(np.array(readings)).all():
        raise InputError("The meter's log holds values that are no numbers.", where=str(path))
    readings.sort()
    return Meter(path.name, np.array([t for t, _ in readings]), np.array([power for _, power in readings]))


def _epoch(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = datetime.fromisoformat(text.strip().replace("Z", "+00:00")).timestamp()
    # Loggers write milliseconds as often as seconds, some micro- or nanoseconds.
    for _ in range(3):
        value = value / 1e3 if value > LAST_EPOCH else value
    if not 0 <= value <= LAST_EPOCH:
        raise ValueError(text)
    return value
