"""Calibration: ranks, groups, infinite thresholds, and the exact law of coverage."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_edge.judge.conformal import (
    beta_binomial_band,
    conformal_quantile,
    group_thresholds,
    min_rows,
    thresholds_of_rows,
)


def test_quantile_is_the_ceil_n_plus_1_th_smallest():
    assert conformal_quantile(np.arange(1, 20.0), 0.1) == 18  # ceil(20 · 0.9)
    assert conformal_quantile(np.arange(1, 10.0), 0.1) == 9  # ceil(10 · 0.9), no float error


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.2, 0.25, 0.5])
def test_one_row_too_few_is_infinite(alpha):
    n = min_rows(alpha)
    assert math.isfinite(conformal_quantile(np.zeros(n), alpha))
    assert math.isinf(conformal_quantile(np.zeros(n - 1), alpha))


@given(st.lists(st.floats(-10, 10), min_size=9, max_size=60), st.sampled_from([0.1, 0.2, 0.3]))
def test_at_most_the_allowed_share_lies_above(scores, alpha):
    values = np.array(scores)
    above = (values > conformal_quantile(values, alpha)).sum()
    assert above <= alpha * (len(values) + 1) + 1e-9


@given(st.integers(0, 1000), st.sampled_from([0.05, 0.1, 0.3]))
def test_groups_have_crepes_thresholds(seed, alpha):
    pytest.importorskip("crepes")
    from argus_edge.judge.methods.naive import crepes_thresholds

    rng = np.random.default_rng(seed)
    scores, groups = rng.exponential(size=80), rng.integers(0, 4, 80)
    ours = group_thresholds(scores, groups, alpha, 4)
    assert crepes_thresholds(scores, groups, alpha, 4) == pytest.approx(ours)


def test_nine_rows_suffice_for_crepes_too():
    pytest.importorskip("crepes")
    from argus_edge.judge.methods.naive import crepes_thresholds

    scores = np.arange(9.0)
    assert crepes_thresholds(scores, np.zeros(9, int), 0.1, 1) == pytest.approx([8.0])


def test_an_unknown_group_has_an_infinite_threshold():
    assert thresholds_of_rows(np.array([1.0, 2.0]), np.array([1, -1])).tolist() == [2.0, math.inf]


def test_band_of_coverage_by_simulation():
    rng = np.random.default_rng(0)
    n, m, alpha, repeats = 50, 40, 0.1, 4000
    coverage = [np.mean(rng.random(m) <= conformal_quantile(rng.random(n), alpha)) for _ in range(repeats)]
    low, high = beta_binomial_band(n, m, alpha, level=0.9)
    inside = np.mean([low <= value <= high for value in coverage])
    assert 0.88 <= inside <= 0.98  # the law is discrete: at least 0.9 but for the simulation's own noise


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", ["integer", "naive", "ordinal-aps"])
def test_coverage_on_exchangeable_data_is_within_the_exact_band(name):
    """200 repeats: as many outside the 99 % band as chance allows, and a mean within the band of the mean."""
    from judge_simulation import simulate

    from argus_edge.judge.methods import METHODS
    from argus_edge.judge.methods.base import Rows
    from argus_edge.judge.scale import Scale

    fit_rows, test_rows, alpha, repeats = 200, 200, 0.1, 200
    outside_low, coverages = 0, []
    for seed in range(repeats):
        logs, _, human, _ = simulate(fit_rows + test_rows, seed)
        rows = Rows(logs, np.zeros(len(logs), int))
        known, new = np.arange(fit_rows), np.arange(fit_rows, fit_rows + test_rows)
        method = METHODS[name](Scale(5), alpha).fit(rows.take(known), human[known], seed)
        low, high = beta_binomial_band(int(method.group_rows.sum()), test_rows, alpha, level=0.99)
        covered = method.predict(rows.take(new)).covers(human[new]).mean()
        coverages.append(covered)
        outside_low += covered < low
        if name == "naive":  # continuous scores: the band holds from above as well
            assert covered <= high + 0.02
    # Binomial(200, 0.005): more than 6 below the band has probability 1e-4.
    assert outside_low <= 6
    n = int(method.group_rows.sum())
    spread = math.sqrt((alpha * (1 - alpha)) * (1 / n + 1 / test_rows) / repeats)
    assert np.mean(coverages) >= 1 - alpha - 3 * spread
