"""The binomial distribution's quantiles and tails, without scipy, which the base install does not bring."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

# Beyond so many standard deviations the mass is below 1e-30.
REACH = 12.0


def _window(n: int, p: float) -> tuple[int, NDArray[np.float64]]:
    """Return the first k and the probabilities of k, k + 1, … around the mean, of Binomial(n, p) with 0 < p < 1."""
    spread = REACH * math.sqrt(n * p * (1 - p)) + REACH
    low = max(0, math.floor(n * p - spread))
    high = min(n, math.ceil(n * p + spread))
    k = np.arange(low, high, dtype=np.float64)
    steps = np.log(n - k) - np.log(k + 1) + math.log(p) - math.log1p(-p)
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    weights = np.exp(logs - logs.max())
    return low, weights / weights.sum()


def quantile(level: float, n: int, p: float) -> int:
    """Return the smallest k with P(Binomial(n, p) <= k) >= level.

    Parameters
    ----------
    level, p
        Probabilities strictly between 0 and 1.
    n
        Number of trials, at least 0.
    """
    if n == 0:
        return 0
    low, weights = _window(n, p)
    cumulative = np.cumsum(weights)
    # Sums that differ from the level by rounding alone count as reaching it.
    return low + min(int(np.searchsorted(cumulative, level * (1 - 1e-12))), len(weights) - 1)


def at_most_one(n: int, p: float) -> float:
    """Return P(Binomial(n, p) <= 1)."""
    return (1 - p) ** n + n * p * (1 - p) ** (n - 1)
