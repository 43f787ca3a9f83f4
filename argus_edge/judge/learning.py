"""How many labelled examples a wanted interval width takes: widths at several sizes, extrapolated."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

__all__ = ["labels_for", "shared_slope", "sizes_of"]

# Beyond so many times the rows at hand the curve says nothing.
_FARTHEST = 100


def sizes_of(rows: int) -> list[int]:
    """Numbers of training rows to try: an eighth, a quarter, a half, all."""
    return sorted({max(2, rows // part) for part in (8, 4, 2, 1)})


def shared_slope(points: Iterable[Sequence[tuple[int, float]]]) -> float | None:
    """Fit width = a_task + b/n with one b for all tasks, by least squares.

    One task's widths at a few sizes are noise; the tasks together show how width falls with the number of labels.

    Parameters
    ----------
    points
        For each task (labelled rows of the task, mean width) at several sizes.

    Returns
    -------
    float or None
        b, at least 0; ``None`` where no task was seen at two sizes.
    """
    product = square = 0.0
    for task in points:
        if len({count for count, _ in task}) < 2:
            continue
        inverse = np.array([1 / count for count, _ in task])
        width = np.array([value for _, value in task])
        product += float((inverse - inverse.mean()) @ (width - width.mean()))
        square += float((inverse - inverse.mean()) @ (inverse - inverse.mean()))
    return max(product / square, 0.0) if square > 0 else None


def labels_for(width: float, rows: int, slope: float, wanted: float, fewest: int = 2) -> tuple[int | None, str]:
    """Return how many labelled rows of a task bring its mean width down to ``wanted``, and a sentence.

    Parameters
    ----------
    width, rows
        What the rows at hand give.
    slope
        From :func:`shared_slope`.
    fewest
        Labelled rows below which no interval is finite, whatever the curve says.
    """
    level = width - slope / rows
    if width <= wanted:
        few = max(fewest, math.ceil(slope / (wanted - level))) if wanted > level else rows
        return few, f"{wanted:g} is reached: {width:.2f} with {rows} labelled rows (about {few} would do)"
    if wanted <= level or slope / (wanted - level) > _FARTHEST * rows:
        return None, f"no number of labels gets to {wanted:g}: the width ({width:.2f} now) levels off at {level:.2f}"
    needed = max(fewest, math.ceil(slope / (wanted - level)))
    return needed, f"about {needed} labelled rows would bring the width to {wanted:g} ({width:.2f} now, with {rows})"
