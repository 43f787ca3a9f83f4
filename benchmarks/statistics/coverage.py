"""Coverage of the percentile intervals on independent and autocorrelated series, against two simpler intervals.

python benchmarks/statistics/coverage.py [--repeats 400] [--write]

A Gaussian AR(1) series with coefficient phi stands for latencies whose neighbours resemble each other. Its true
percentile is known. An interval of 95 % should cover it in about 95 of 100 series. Beside ours: plain order statistics
(which take samples for independent) and a moving-block bootstrap with blocks of the length n^(1/3).
"""

from __future__ import annotations

import argparse
import math
import platform
import statistics
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from argus_edge.bench.percentiles import interval_ranks, percentile
from tests.support.series import ar1

SAMPLES = 4000
PHIS = (0.0, 0.5, 0.9)
PERCENTILES = (0.5, 0.9, 0.95, 0.99)
RESAMPLES = 200


def plain(series: np.ndarray, p: float) -> tuple[float, float]:
    """Order statistics as if the samples were independent."""
    ordered = np.sort(series)
    low, high = interval_ranks(len(series), len(series), p)
    return (-math.inf if low is None else ordered[low - 1]), (math.inf if high is None else ordered[high - 1])


def block_bootstrap(series: np.ndarray, p: float, rng: np.random.Generator) -> tuple[float, float]:
    """Percentile interval over moving blocks."""
    n = len(series)
    length = round(n ** (1 / 3))
    starts = rng.integers(0, n - length + 1, (RESAMPLES, math.ceil(n / length)))
    index = (starts[:, :, None] + np.arange(length)).reshape(RESAMPLES, -1)[:, :n]
    values = np.quantile(series[index], p, axis=1, method="inverted_cdf")
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def ours(series: np.ndarray, p: float) -> tuple[float, float]:
    """The tool's interval; an open side reaches to infinity."""
    estimate = percentile(series, p)
    return (
        -math.inf if estimate.low is None else estimate.low,
        math.inf if estimate.high is None else estimate.high,
    )


def coverage(phi: float, p: float, repeats: int, *, seed: int = 1, n: int = SAMPLES) -> dict[str, float]:
    """Return the share of series whose true percentile lies within the interval, by method."""
    truth = statistics.NormalDist().inv_cdf(p)
    rng = np.random.default_rng([seed, round(phi * 100), round(p * 1000)])
    hits = {"ours": 0, "plain": 0, "bootstrap": 0}
    for _ in range(repeats):
        series = ar1(rng, n, phi)
        for name, (low, high) in (
            ("ours", ours(series, p)),
            ("plain", plain(series, p)),
            ("bootstrap", block_bootstrap(series, p, rng)),
        ):
            hits[name] += low <= truth <= high
    return {name: count / repeats for name, count in hits.items()}


def main() -> None:
    """Print the table, and write it beside this script."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--write", action="store_true", help="write coverage.md beside this script")
    arguments = parser.parse_args()
    begun = time.perf_counter()
    error = 1.96 * math.sqrt(0.95 * 0.05 / arguments.repeats)
    lines = [
        "# Coverage of 95 % intervals of percentiles",
        "",
        f"{SAMPLES:,} samples a series, {arguments.repeats} series a cell: a true 95 % shows within ±{error:.1%}. "
        f"numpy {np.__version__}, Python {platform.python_version()}. Made by `coverage.py`.",
        "",
        "| AR(1) phi | percentile | ours | plain order statistics | block bootstrap |",
        "|---|---|---|---|---|",
    ]
    for phi in PHIS:
        for p in PERCENTILES:
            found = coverage(phi, p, arguments.repeats)
            row = f"| {phi:g} | p{p * 100:g} | {found['ours']:.1%} | {found['plain']:.1%} | {found['bootstrap']:.1%} |"
            lines.append(row)
            print(row, flush=True)
    print(f"{time.perf_counter() - begun:.0f} s")
    if arguments.write:
        Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
