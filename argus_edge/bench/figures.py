"""Figures of one timed window: percentiles, throughput, drift, and what the sensors touched."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from argus_edge.bench.autocorrelation import integrated_autocorrelation_time
from argus_edge.bench.percentiles import LEVEL, floor_samples, percentile
from argus_edge.bench.samples import Samples
from argus_edge.schema.agent import Scenario, SeriesPoint
from argus_edge.schema.bench import Estimate, Figures

Z_95 = 1.96
# A quarter of the window needs enough calls for a median of its own.
DRIFT_CALLS = 4 * floor_samples(0.5)


def window_figures(
    samples: Samples,
    scenario: Scenario,
    *,
    per_call: int = 1,
    series: Sequence[SeriesPoint] = (),
    dropped: int = 0,
    held_qps: float | None = None,
) -> Figures:
    """Return the figures of a timed window.

    Parameters
    ----------
    samples
        The calls in order.
    scenario
        How they were issued.
    per_call
        Samples that one call stands for: the batch, or a query's streams.
    series
        Sensor readings on the same clock as the samples.
    dropped
        paced: frames that were not served at all.
    held_qps
        server: the rate that held the bound.
    """
    latency = samples.latency
    n = len(samples)
    begin = float(samples.start[0] - (latency[0] - (samples.end[0] - samples.start[0]))) if n else 0.0
    window_s = float(samples.end[-1]) - begin if n else 0.0
    quarter = n // 4
    ordered = np.sort(latency)
    cold = float(np.median(latency[:quarter])) if n >= DRIFT_CALLS else None
    hot = float(np.median(latency[n - quarter :])) if n >= DRIFT_CALLS else None
    on_time = None
    if scenario.name == "paced" and n + dropped:
        on_time = float((latency <= 1.0 / scenario.fps).sum()) / (n + dropped)
    return Figures(
        count=n,
        window_s=window_s,
        p50=percentile(latency, 0.50, window_s=window_s, ordered=ordered),
        p90=percentile(latency, 0.90, window_s=window_s, ordered=ordered),
        p95=percentile(latency, 0.95, window_s=window_s, ordered=ordered),
        p99=percentile(latency, 0.99, window_s=window_s, ordered=ordered),
        mean_s=float(latency.mean()) if n else None,
        min_s=float(latency.min()) if n else None,
        max_s=float(latency.max()) if n else None,
        throughput=throughput(samples.end, window_s, per_call),
        drift=hot / cold - 1 if hot is not None and cold else None,
        hot_p50_s=hot,
        cold_p50_s=cold,
        touched_by_sensors=touched(samples, series),
        on_time_share=on_time,
        held_qps=held_qps,
    )


def throughput(end: NDArray[np.float64], window_s: float, per_call: int) -> Estimate:
    """Estimate samples a second from the times at which calls ended.

    The interval is that of the mean time between two ends, normal, widened for autocorrelation: sd sqrt(tau / n).

    Parameters
    ----------
    end
        Shape (n,), seconds, ascending.
    window_s
        Length of the window, seconds.
    per_call
        Samples a call.
    """
    n = len(end)
    if n == 0 or window_s <= 0:
        return Estimate(value=None, n=n, reason="no call was done")
    value = per_call * n / window_s
    method = "calls over window; normal interval of the mean gap, n_eff by its autocorrelation"
    if n < floor_samples(0.5):
        return Estimate(value=value, level=LEVEL, n=n, method=method, reason="too few calls for an interval")
    gaps = np.diff(end)
    tau = integrated_autocorrelation_time(gaps)
    half = Z_95 * float(gaps.std(ddof=1)) * math.sqrt(tau / len(gaps)) / float(gaps.mean())
    return Estimate(
        value=value,
        low=value / (1 + half),
        high=value / (1 - half) if half < 1 else None,
        level=LEVEL,
        n=n,
        n_eff=n / tau,
        method=method,
    )


def touched(samples: Samples, series: Sequence[SeriesPoint]) -> int:
    """Return how many calls a sensor reading overlapped. They are counted and stay in every figure."""
    if not len(samples) or not series:
        return 0
    begin = np.array([point.t for point in series])
    end = begin + np.array([point.took_s for point in series])
    first = np.searchsorted(samples.end, begin, side="right")
    last = np.searchsorted(samples.start, end, side="left")
    marks = np.zeros(len(samples) + 1, dtype=np.int64)
    inside = last > first
    np.add.at(marks, first[inside], 1)
    np.add.at(marks, last[inside], -1)
    return int((np.cumsum(marks[:-1]) > 0).sum())


def spread(values: Sequence[float]) -> Estimate:
    """Summarise one figure over repeats of a run: the median and, from three on, Student's interval of the mean.

    Runs, not samples, are the unit: what differs between two starts of a process is in here.
    """
    runs = np.asarray(values, dtype=np.float64)
    n = len(runs)
    value = float(np.median(runs)) if n else None
    method = "median of runs; Student interval of their mean"
    if n < 3:
        return Estimate(value=value, n=n, method=method, reason="too few runs for an interval (3 are needed)")
    half = student_975(n - 1) * float(runs.std(ddof=1)) / math.sqrt(n)
    mean = float(runs.mean())
    return Estimate(value=value, low=mean - half, high=mean + half, level=LEVEL, n=n, n_eff=float(n), method=method)


def student_975(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's t by a series around the normal quantile (to 3e-3).

    G. W. Hill, Algorithm 396: Student's t-quantiles, CACM 13 (1970).
    """
    exact = {1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764}
    if degrees in exact:
        return exact[degrees]
    z, v = 1.959964, float(degrees)
    return (
        z
        + (z**3 + z) / (4 * v)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
    )
