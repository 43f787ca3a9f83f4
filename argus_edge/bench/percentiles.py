"""Percentiles of latency: intervals that hold under autocorrelation, floors below which none is shown, time needed."""

from __future__ import annotations

import functools
import math
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argus_edge.bench import binomial
from argus_edge.bench.autocorrelation import integrated_autocorrelation_time
from argus_edge.schema.bench import Estimate

LEVEL = 0.95
METHOD = "nearest rank; order-statistic interval, n_eff by the indicator's autocorrelation (Sokal window)"

# MLPerf LoadGen's early stopping asks for 99 % confidence.
EARLY_STOPPING_RISK = 0.01
# 80 % power.
Z_POWER = 0.84


def nearest_rank(n: int, p: float) -> int:
    """Return the 1-based rank of the p-quantile among n sorted samples: ceil(p * n), at least 1.

    A product such as 0.95 * 100 = 95.00000000000001 in other bases must not move the rank: rounding noise is taken off.
    """
    return max(1, math.ceil(p * n - 1e-9 * n))


@functools.cache
def floor_samples(p: float) -> int:
    """Return the fewest samples for which the p-quantile is shown.

    The smallest n with P(Binomial(n, 1 - p) <= 1) <= 1 %: 11 for p50, 64 for p90, 130 for p95, 662 for p99 (MLPerf
    LoadGen's early stopping, which discards the largest sample and so wants at least two beyond the percentile).
    """
    n = 1
    while binomial.at_most_one(n, 1 - p) > EARLY_STOPPING_RISK:
        n += 1
    return n


def interval_ranks(n: int, n_eff: float, p: float, level: float = LEVEL) -> tuple[int | None, int | None]:
    """Return the 1-based ranks whose samples enclose the p-quantile with the given confidence.

    Ranks l < u with P(l <= Binomial(n_eff, p) < u) >= level, tail by tail, scaled from n_eff to n and rounded outwards
    (H. A. David and H. N. Nagaraja, Order Statistics, 2003, section 7.1). None where no sample is far enough out: so
    few effective samples cannot bound that side.
    """
    trials = max(1, math.floor(n_eff))
    tail = (1 - level) / 2
    low = binomial.quantile(tail, trials, p)
    high = binomial.quantile(1 - tail, trials, p) + 1
    scale = n / trials
    return (
        None if low < 1 else max(1, math.floor(low * scale)),
        None if high > trials else min(n, math.ceil(high * scale)),
    )


def percentile(
    latency: NDArray[Any],
    p: float,
    *,
    window_s: float | None = None,
    level: float = LEVEL,
    ordered: NDArray[Any] | None = None,
) -> Estimate:
    """Estimate a percentile of a series of latencies in the order in which they were measured.

    Parameters
    ----------
    latency
        Shape (n,), seconds. Nothing is clipped.
    p
        0.5 for the median, 0.99 for p99.
    window_s
        Length of the timed window in seconds, for the time that would be needed where the figure is withheld.
    level
        Confidence of the interval.
    ordered
        The same latencies sorted, where the caller has them; sorting is most of the work.

    Returns
    -------
    Estimate
        Withheld, with a reason and the time needed, below :func:`floor_samples`. A side of the interval that the sample
        cannot bound is None.
    """
    n = len(latency)
    floor = floor_samples(p)
    if n < floor:
        needed = None if window_s is None or n == 0 else window_s * floor / n
        return Estimate(
            value=None,
            level=level,
            n=n,
            method=METHOD,
            reason=f"{n} samples; p{p * 100:g} needs {floor}",
            needed_s=needed,
        )
    ordered = np.sort(latency) if ordered is None else ordered
    value = float(ordered[nearest_rank(n, p) - 1])
    within = np.asarray(latency) <= value
    # Where the percentile is the maximum, its ties still tell whether the largest samples come in a row.
    n_eff = n / integrated_autocorrelation_time(within if not within.all() else np.asarray(latency) < value)
    low, high = interval_ranks(n, n_eff, p, level)
    return Estimate(
        value=value,
        low=None if low is None else float(ordered[low - 1]),
        high=None if high is None else float(ordered[high - 1]),
        level=level,
        n=n,
        n_eff=n_eff,
        method=METHOD,
    )


def samples_needed(p: float, share_within: float, tau: float, level: float = LEVEL) -> float:
    """Return how many samples decide whether the p-quantile is within a limit, with 80 % power.

    Parameters
    ----------
    p
        The percentile that the limit is on, 0.99 for p99.
    share_within
        Share of the samples seen so far that are within the limit.
    tau
        Integrated autocorrelation time of that indicator, samples.
    level
        Confidence of the interval that decides.

    Returns
    -------
    float
        [(z sqrt(p (1 - p)) + 0.84 sqrt(s (1 - s))) / (s - p)]^2 * tau, z = 1.96 at 95 %; infinite where s = p: no
        length decides.
    """
    gap = share_within - p
    if gap == 0:
        return math.inf
    z = NormalDist().inv_cdf((1 + level) / 2)
    spread = z * math.sqrt(p * (1 - p)) + Z_POWER * math.sqrt(share_within * (1 - share_within))
    return (spread / gap) ** 2 * tau


def seconds_needed(latency: NDArray[Any], p: float, limit_s: float, window_s: float, level: float = LEVEL) -> float:
    """Return how many more seconds of measuring decide whether the p-quantile is within ``limit_s``.

    0 where the samples at hand are enough; infinite where no practical length decides. What ``--until-decided`` asks
    between runs. Enough is what :func:`samples_needed` says, and as many as bound the interval on the limit's side at
    all: the largest of m samples is beyond the p-quantile with probability 1 - p^m.
    """
    n = len(latency)
    if n == 0:
        return math.inf
    within = np.asarray(latency) <= limit_s
    share = float(within.mean())
    needed = samples_needed(p, share, integrated_autocorrelation_time(within), level)
    tau = n / (percentile(latency, p).n_eff or n)
    bounding = math.log((1 - level) / 2) / math.log(p if share > p else 1 - p)
    return max(0.0, needed - n, bounding * tau - n) * window_s / n
