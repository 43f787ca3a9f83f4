"""Candidate against baseline from a few runs a side: the log ratio, Welch's interval, and what it says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, variance

from argus_edge.gate.student import quantile
from argus_edge.schema.comparison import ComparisonOutcome

MARGIN = 0.02
"""A change within 2 % is no difference."""
RESOLUTION = 0.05
"""An interval half as wide as this would have shown what matters."""
FEWEST = 3
MOST_NEEDED = 1000


@dataclass(frozen=True)
class Ratio:
    """The mean log ratio, its interval, and the standard deviation of one run."""

    log_ratio: float
    half_width: float
    sd: float

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the log ratio's interval."""
        return self.log_ratio - self.half_width, self.log_ratio + self.half_width


def unpaired(baseline: Sequence[float], candidate: Sequence[float], level: float = 0.95) -> Ratio:
    """Return Welch's interval of the mean log ratio (B. L. Welch, Biometrika 34, 1947).

    Parameters
    ----------
    baseline, candidate
        One positive value a run; at least two a side.
    """
    a, b = [math.log(value) for value in baseline], [math.log(value) for value in candidate]
    va, vb = variance(a) / len(a), variance(b) / len(b)
    difference = fmean(b) - fmean(a)
    pooled = math.sqrt((variance(a) + variance(b)) / 2)
    if va + vb == 0:
        return Ratio(difference, 0.0, pooled)
    df = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    return Ratio(difference, quantile((1 + level) / 2, df) * math.sqrt(va + vb), pooled)


def paired(baseline: Sequence[float], candidate: Sequence[float], level: float = 0.95) -> Ratio:
    """Return the interval of the mean log ratio over pairs (boards): a board's own speed cancels."""
    ratios = [math.log(after / before) for before, after in zip(baseline, candidate, strict=True)]
    spread = variance(ratios)
    half = quantile((1 + level) / 2, len(ratios) - 1) * math.sqrt(spread / len(ratios))
    return Ratio(fmean(ratios), half, math.sqrt(spread / 2))


def outcome_of(ratio: Ratio, *, lower_is_better: bool) -> ComparisonOutcome:
    """Return what the interval says.

    Wholly beyond the margin: better or worse. Wholly within: no difference. Else, half-width at most the resolution:
    no difference found. Else: too few runs.
    """
    low, high = ratio.interval
    up, down = math.log1p(MARGIN), math.log1p(-MARGIN)
    if low > up or high < down:
        return "better" if (high < down) == lower_is_better else "worse"
    if low >= down and high <= up:
        return "no difference"
    return "no difference found" if ratio.half_width <= math.log1p(RESOLUTION) else "too few runs"


def runs_needed(sd: float, level: float = 0.95) -> int | None:
    """Return how many runs a side make the half-width at most the resolution; None beyond a thousand."""
    # The normal quantile is below every t quantile, so fewer runs than it asks for cannot do.
    first = math.floor(2 * (NormalDist().inv_cdf((1 + level) / 2) * sd / math.log1p(RESOLUTION)) ** 2)
    for count in range(max(FEWEST, first), MOST_NEEDED + 1):
        if quantile((1 + level) / 2, 2 * count - 2) * sd * math.sqrt(2 / count) <= math.log1p(RESOLUTION):
            return count
    return None
