"""Intervals from bootstrap replicates: percentile for P and RR, its hull with a debiased one for CDC and ARGUS."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def percentile(replicates: Array, level: float) -> tuple[float, float]:
    """Return the percentile interval of replicates, shape (replicates,), NaN left out.

    Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13. (nan, nan) where fewer than half of the
    replicates are numbers: the statistic is then undefined too often to have an interval.
    """
    present = replicates[~np.isnan(replicates)]
    if present.size * 2 < replicates.size or not present.size:
        return float("nan"), float("nan")
    low, high = np.quantile(present, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def debiased_basic(estimate: float, replicates: Array, level: float) -> tuple[float, float]:
    """Return the basic interval ``2·estimate - quantile`` around a debiased estimate.

    Parameters
    ----------
    estimate
        The debiased statistic of the data.
    replicates
        The same debiased statistic of each replicate, shape (replicates,).
    level
        Confidence, e.g. 0.95.
    """
    low, high = percentile(replicates, level)
    return 2 * estimate - high, 2 * estimate - low


def hull(first: tuple[float, float], second: tuple[float, float], *, cap: float | None = None) -> tuple[float, float]:
    """Return the smallest interval that holds both; its ends at most ``cap`` and at least 0."""
    low = max(0.0, min(first[0], second[0]))
    high = max(first[1], second[1])
    if cap is not None:
        low, high = min(low, cap), min(high, cap)
    return low, high
