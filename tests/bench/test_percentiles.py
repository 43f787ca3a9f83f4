"""Percentiles: known answers, the floors of LoadGen's rule, intervals, and what a percentile needs to be shown."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from argus_edge.bench import binomial
from argus_edge.bench.autocorrelation import MOST_POINTS, autocorrelation, integrated_autocorrelation_time
from argus_edge.bench.percentiles import (
    floor_samples,
    interval_ranks,
    nearest_rank,
    percentile,
    samples_needed,
    seconds_needed,
)


@pytest.mark.parametrize(("p", "floor"), [(0.5, 11), (0.9, 64), (0.95, 130), (0.97, 219), (0.99, 662), (0.999, 6636)])
def test_floors_are_those_of_loadgen(p, floor):
    assert floor_samples(p) == floor


@pytest.mark.parametrize(
    ("n", "p", "rank"), [(100, 0.95, 95), (100, 0.5, 50), (101, 0.5, 51), (3, 0.99, 3), (1, 0.5, 1)]
)
def test_nearest_rank(n, p, rank):
    assert nearest_rank(n, p) == rank


@given(st.integers(1, 5000), st.floats(0.001, 0.999))
def test_nearest_rank_is_numpys_inverted_cdf(n, p):
    values = np.arange(1.0, n + 1)
    assert abs(nearest_rank(n, p) - np.quantile(values, p, method="inverted_cdf")) <= (
        1 if abs(p * n - round(p * n)) < 1e-6 else 0
    )


@given(st.integers(1, 20_000), st.floats(0.01, 0.995), st.floats(0.001, 0.999))
def test_binomial_quantiles_are_scipys(n, p, level):
    stats = pytest.importorskip("scipy.stats")
    ours = binomial.quantile(level, n, p)
    assert stats.binom.cdf(ours, n, p) >= level - 1e-9
    assert ours == 0 or stats.binom.cdf(ours - 1, n, p) < level + 1e-9


def test_binomial_quantile_of_a_million():
    # Normal approximation: 990000 - 1.96 * sqrt(9900) = 989805.
    assert abs(binomial.quantile(0.025, 1_000_000, 0.99) - 989_805) <= 1


def test_ranks_of_a_textbook_interval():
    # 95 % interval of a median from 20 samples: the 6th and 15th order statistics (David and Nagaraja, table 7.1).
    assert interval_ranks(20, 20, 0.5) == (6, 15)


def test_ranks_widen_with_correlation_and_scale_to_n():
    low, high = interval_ranks(1000, 1000, 0.9)
    wide_low, wide_high = interval_ranks(1000, 100, 0.9)
    assert wide_low < low < 900 < high < wide_high


def test_a_side_that_cannot_be_bounded_is_open():
    assert interval_ranks(662, 100, 0.99)[1] is None
    estimate = percentile(np.repeat(np.arange(12.0), 60), 0.99)
    assert estimate.value is not None
    assert estimate.high is None


def test_a_withheld_percentile_says_how_long_a_run_it_needs():
    estimate = percentile(np.full(331, 0.01), 0.99, window_s=10.0)
    assert estimate.value is None
    assert estimate.reason == "331 samples; p99 needs 662"
    assert estimate.needed_s == pytest.approx(20.0)


def test_nothing_is_clipped():
    latency = np.concatenate([np.full(9, 1.0), np.full(2, 50.0)])
    assert percentile(latency, 0.5).value == 1.0
    latency = np.concatenate([np.full(600, 1.0), np.full(62, 50.0)])
    assert percentile(latency, 0.99).value == 50.0


def test_a_constant_series_has_an_exact_interval():
    estimate = percentile(np.full(1000, 0.002), 0.5)
    assert (estimate.low, estimate.value, estimate.high) == (0.002, 0.002, 0.002)
    assert estimate.n_eff == 1000


@given(arrays(np.float64, st.integers(662, 800), elements=st.floats(1e-6, 10)), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_the_interval_holds_the_value(latency, p):
    estimate = percentile(latency, p)
    assert estimate.low is None or estimate.low <= estimate.value
    assert estimate.high is None or estimate.high >= estimate.value


def ar1(rng, n, phi):
    noise = rng.standard_normal(n)
    out = np.empty(n)
    out[0] = noise[0]
    for i in range(1, n):
        out[i] = phi * out[i - 1] + math.sqrt(1 - phi * phi) * noise[i]
    return out


@pytest.mark.parametrize(("phi", "tau"), [(0.0, 1.0), (0.5, 3.0), (0.9, 19.0)])
def test_tau_of_an_ar1_process(phi, tau):
    # (1 + phi) / (1 - phi), the closed form.
    found = integrated_autocorrelation_time(ar1(np.random.default_rng(3), 100_000, phi))
    assert found == pytest.approx(tau, rel=0.12)


@pytest.mark.parametrize("phi", [0.99, 0.999])
def test_tau_of_a_long_series_is_had_from_means_of_neighbours(phi):
    noise = np.random.default_rng(4).standard_normal(1_200_000)
    lfilter = pytest.importorskip("scipy.signal").lfilter
    series = lfilter([math.sqrt(1 - phi * phi)], [1, -phi], noise)
    assert len(series) > MOST_POINTS
    assert integrated_autocorrelation_time(series) == pytest.approx((1 + phi) / (1 - phi), rel=0.15)


def test_autocorrelation_is_the_direct_sum():
    x = np.random.default_rng(0).standard_normal(50)
    c = x - x.mean()
    direct = [float((c[: 50 - k] * c[k:]).sum() / (c * c).sum()) for k in range(50)]
    assert autocorrelation(x) == pytest.approx(direct)


@pytest.mark.parametrize("series", [[], [1.0], [2.0] * 100, [0.1] * 100, [0.0, 1.0] * 50])
def test_tau_of_degenerate_series_is_one(series):
    assert integrated_autocorrelation_time(np.array(series)) == 1.0


def test_samples_needed_by_the_formula():
    s, p = 0.995, 0.99
    z = statistics.NormalDist().inv_cdf(0.975)
    expected = ((z * math.sqrt(p * (1 - p)) + 0.84 * math.sqrt(s * (1 - s))) / (s - p)) ** 2
    assert samples_needed(p, s, 1.0) == pytest.approx(expected)
    assert samples_needed(p, s, 3.0) == pytest.approx(3 * expected)
    assert samples_needed(p, p, 1.0) == math.inf


def test_seconds_needed_is_zero_once_decided():
    latency = np.full(2000, 0.01)
    assert seconds_needed(latency, 0.5, 0.02, 20.0) == 0.0
    # 11 samples do not decide a p99: ((1.96 * 0.0995) / 0.01)^2 = 380 samples in all, at one a second.
    assert seconds_needed(latency[:11], 0.99, 0.02, 11.0) == pytest.approx(380.3 - 11, abs=1)
    assert seconds_needed(latency[:0], 0.99, 0.02, 0.0) == math.inf


def test_a_limit_far_away_still_needs_as_many_samples_as_bound_the_percentile():
    latency = np.random.default_rng(5).permutation(np.linspace(0.010, 0.012, 64))
    # 64 samples: the largest is beyond the 95th percentile with probability 1 - .95^64 = 96.2 %, not 97.5 %.
    assert percentile(np.r_[latency, latency, latency], 0.95).high is not None
    more = seconds_needed(latency, 0.95, 1.0, 6.4)
    assert more == pytest.approx((math.log(0.025) / math.log(0.95) - 64) * 0.1, rel=0.8)
    assert more > 0
    assert seconds_needed(latency, 0.95, 1.0, 6.4, level=0.999) > more
