"""The CSV file that `judge apply` writes: the table as read, with each row's interval."""

from __future__ import annotations

import csv
from typing import IO

import numpy as np

from argus_edge.judge.calibration import Applied
from argus_edge.text import safe_cell

__all__ = ["ADDED_COLUMNS", "write_intervals"]

ADDED_COLUMNS = [
    "lower",
    "upper",
    "lower_adjusted",
    "upper_adjusted",
    "midpoint",
    "group",
    "infinite",
    "reason",
]


def write_intervals(applied: Applied, file: IO[str]) -> None:
    """Write the table's columns and those of the intervals.

    A cell that a spreadsheet would take for a formula is quoted as text. An infinite interval has its ends at -inf and
    inf; its adjusted ends are those of the scale.
    """
    kept = [name for name in applied.table.columns if name not in ADDED_COLUMNS]
    intervals = applied.intervals
    low, high = intervals.adjusted
    midpoint = intervals.midpoint  # once: it is worked out anew each time
    raw_low = np.where(intervals.unbounded, -np.inf, intervals.lower)
    raw_high = np.where(intervals.unbounded, np.inf, intervals.upper)
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*map(safe_cell, kept), *ADDED_COLUMNS])
    for row in range(len(applied.table)):
        unbounded = bool(intervals.unbounded[row])
        writer.writerow(
            [
                *(safe_cell(str(applied.table.columns[name][row])) for name in kept),
                f"{raw_low[row]:.4f}",
                f"{raw_high[row]:.4f}",
                f"{low[row]:.0f}",
                f"{high[row]:.0f}",
                "" if unbounded else f"{midpoint[row]:.4f}",
                safe_cell(str(applied.groups[row])),
                "yes" if unbounded else "no",
                applied.reasons[row],
            ]
        )
