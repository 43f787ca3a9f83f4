"""Coverage and width of intervals, overall and by parts of the rows, over one or many splits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argus_edge.judge.scale import Intervals
from argus_edge.schema.judge import Breakdown

Array = NDArray[Any]

__all__ = ["Tested", "break_down", "break_down_by"]


@dataclass(frozen=True)
class Tested:
    """Intervals of one split's test rows.

    Attributes
    ----------
    rows
        Their numbers in the table, shape (m,).
    groups
        Their Mondrian groups' names, shape (m,).
    """

    rows: Array
    intervals: Intervals
    labels: Array
    groups: list[str]


def _figures(tested: Tested, rows: Array) -> tuple[float, ...]:
    part, labels = tested.intervals.take(rows), tested.labels[rows]
    return (
        len(rows),
        float(part.covers(labels).mean()),
        float(part.width().mean()),
        float(part.covers(labels, adjusted=True).mean()),
        float(part.width(adjusted=True).mean()),
        float(part.unbounded.mean()),
    )


def _summary(name: str, figures: list[tuple[float, ...]]) -> Breakdown:
    table = np.array(figures)
    mean, spread = table.mean(axis=0), table.std(axis=0)
    several = len(figures) > 1
    return Breakdown(
        name=name,
        rows=float(mean[0]),
        coverage=float(mean[1]),
        width=float(mean[2]),
        coverage_adjusted=float(mean[3]),
        width_adjusted=float(mean[4]),
        coverage_sd=float(spread[1]) if several else None,
        width_sd=float(spread[2]) if several else None,
        coverage_adjusted_sd=float(spread[3]) if several else None,
        width_adjusted_sd=float(spread[4]) if several else None,
        unbounded=float(mean[5]),
    )


def break_down(splits: list[Tested], name: str = "all") -> Breakdown:
    """Return mean and spread over the splits, all rows."""
    return _summary(name, [_figures(tested, np.arange(len(tested.rows))) for tested in splits])


def break_down_by(splits: list[Tested], keys: list[list[str]]) -> list[Breakdown]:
    """Return the same for each value of a key, means over the splits in which it occurs.

    Parameters
    ----------
    keys
        For each split, the key of each of its rows; an empty one leaves the row out.
    """
    figures: dict[str, list[tuple[float, ...]]] = {}
    for tested, names in zip(splits, keys, strict=True):
        array = np.array(names)
        for name in sorted(set(names) - {""}):
            figures.setdefault(name, []).append(_figures(tested, np.flatnonzero(array == name)))
    return [_summary(name, figures[name]) for name in sorted(figures)]
