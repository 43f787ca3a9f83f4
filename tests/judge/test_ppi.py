"""Prediction-powered means: the published formulas, coverage, and never much worse than the labels alone."""

import numpy as np
import pytest

from argus_edge.errors import UsageError
from argus_edge.judge.ppi import labels_for_width, powered_mean


def sample(n, unlabelled, correlation, seed):
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal(n + unlabelled)
    judge = correlation * truth + np.sqrt(1 - correlation**2) * rng.standard_normal(n + unlabelled)
    return truth[:n], 3 + judge[:n], 3 + judge[n:]


def test_the_formula_by_hand():
    """λ of one half of the labels serves the other half; θ = λ·mean_N f + mean_n(Y − λf)."""
    y, f, g = sample(120, 400, 0.8, 0)
    found = powered_mean(y, f, g, seed=3)
    fold = np.random.default_rng(3).permutation(120) % 2

    def tuned(k):
        mine = fold != k
        covariance = np.cov(y[mine], f[mine], ddof=1)
        return np.clip(covariance[0, 1] / ((1 + 120 / 400) * covariance[1, 1]), 0, 1)

    weights = np.array([tuned(0), tuned(1)])
    average = weights @ [60, 60] / 120
    rest = y - weights[fold] * f
    assert found.weight == pytest.approx(average)
    assert found.mean == pytest.approx(average * g.mean() + rest.mean())
    spread = (np.var(rest[fold == 0], ddof=1) + np.var(rest[fold == 1], ddof=1)) / 2
    assert found.standard_error**2 == pytest.approx(average**2 * np.var(g, ddof=1) / 400 + spread / 120)
    assert found.degrees_of_freedom == 118


@pytest.mark.parametrize("correlation", [0.0, 0.4, 0.9])
def test_interval_covers_and_tuning_pays(correlation):
    covered, ratio = [], []
    for seed in range(400):
        found = powered_mean(*sample(150, 1000, correlation, seed))
        covered.append(found.lower <= 0 <= found.upper)
        ratio.append(found.width / found.labelled_width)
    # Binomial(400, 0.95): below 0.92 has probability 0.5 %.
    assert np.mean(covered) >= 0.92
    expected = np.sqrt(1 - correlation**2 / (1 + 150 / 1000))
    assert np.mean(ratio) == pytest.approx(expected, abs=0.03)


def test_a_useless_judge_costs_next_to_nothing():
    ratios = [f.width / f.labelled_width for f in (powered_mean(*sample(100, 500, 0, seed)) for seed in range(100))]
    assert np.mean(ratios) < 1.02
    assert powered_mean(np.arange(40.0), np.ones(40), np.ones(50)).weight == 0


def test_below_30_labels_the_judge_is_left_out():
    y, f, g = sample(29, 500, 0.9, 1)
    found = powered_mean(y, f, g)
    assert found.weight == 0
    assert found.mean == pytest.approx(y.mean())
    assert "29 labelled rows" in found.note


def test_below_100_labels_there_is_a_warning():
    assert "trusted from 100" in powered_mean(*sample(99, 500, 0.9, 1)).note
    assert powered_mean(*sample(100, 500, 0.9, 1)).note is None


def test_without_unlabelled_rows_it_is_the_plain_mean():
    y, f, _ = sample(50, 1, 0.5, 2)
    found = powered_mean(y, f, np.array([]))
    assert (found.mean, found.width) == (pytest.approx(y.mean()), pytest.approx(found.labelled_width))


def test_draws_have_the_mean_and_the_spread():
    found = powered_mean(*sample(200, 1000, 0.7, 3))
    draws = found.draws(20_000, np.random.default_rng(0))
    assert draws.mean() == pytest.approx(found.mean, abs=4 * found.standard_error / np.sqrt(20_000) * 1.1)
    assert draws.std() == pytest.approx(found.standard_error, rel=0.05)


@pytest.mark.parametrize(
    ("labels", "predictions", "rest"),
    [([1.0], [1.0], [1.0]), ([1.0, 2.0], [1.0], [1.0]), ([1.0, np.nan], [1.0, 2.0], [1.0])],
)
def test_bad_input_is_named(labels, predictions, rest):
    with pytest.raises(UsageError):
        powered_mean(np.array(labels), np.array(predictions), np.array(rest))


def test_labels_for_a_width():
    y, f, _ = sample(500, 1, 0.8, 4)
    needed = labels_for_width(y, f, 100_000, 0.2)
    alone = labels_for_width(y, f, 0, 0.2)
    assert alone == pytest.approx((2 * 1.96 * np.std(y, ddof=1) / 0.2) ** 2, rel=0.01)
    assert needed == pytest.approx(alone * (1 - np.corrcoef(y, f)[0, 1] ** 2), rel=0.05)
    assert labels_for_width(y, f, 10, 1e-6) is None
