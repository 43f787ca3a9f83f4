"""How many labelled examples a wanted interval width takes: widths at several sizes, extrapolated."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

__all__ = ["fit_curve", "labels_for", "sizes_of"]


def sizes_of(rows: int) -> list[int]:
    """Numbers of training rows to try: an eighth, a quarter, a half, all."""
    return sorted({max(2, rows // part) for part in (8, 4, 2, 1)})


def fit_curve(sizes: Array, widths: Array) -> tuple[float, float]:
    """Fit width = a + b/n, b at least 0, by least squares.

    Parameters
    ----------
    sizes, widths
        Labelled rows and mean width, shape (m,), m at least 2.

    Returns
    -------
    tuple
        a, where the width levels off, and b.
    """
    inverse = 1 / np.asarray(sizes, float)
    width = np.asarray(widths, float)
    spread = inverse - inverse.mean()
    slope = float(spread @ (width - width.mean()) / max(float(spread @ spread), 1e-300))
    slope = max(slope, 0.0)
    return float(width.mean() - slope * inverse.mean()), slope


def labels_for(sizes: Array, widths: Array, wanted: float) -> tuple[int | None, str]:
    """Return how many labelled rows a width takes, and a sentence.

    The extrapolation stops at a hundred times the largest size tried: beyond, the curve says nothing.
    """
    level, slope = fit_curve(sizes, widths)
    most = int(max(sizes))
    now = level + slope / most
    if now <= wanted:
        if slope == 0:
            return int(min(sizes)), f"{wanted:g} is reached with {int(min(sizes))} labelled rows or fewer"
        return max(2, math.ceil(slope / (wanted - level))), f"{wanted:g} is reached with the {most} rows at hand"
    if wanted <= level or slope / (wanted - level) > 100 * most:
        return None, f"no number of labels gets to {wanted:g}: the width levels off at {max(level, 0):.2f}"
    needed = math.ceil(slope / (wanted - level))
    return needed, f"about {needed} labelled rows would bring the width to {wanted:g} (now {now:.2f} with {most})"
