"""Point figures, the ranking-scoring gap, advice with its reason, and how many labels a width takes."""

import numpy as np
import pytest

from argus_edge.judge import tasks
from argus_edge.judge.learning import labels_for, shared_slope, sizes_of
from argus_edge.judge.points import confidence, correlation, midpoint_figures, point_figures, spearman_interval
from argus_edge.judge.scale import Intervals, Scale
from argus_edge.judge.tasks import Demands, advise, gap_interval, ranking_scoring_gap


def test_point_figures_by_hand():
    judge = np.array([1.0, 3, 5, np.nan, 2])
    human = np.array([1.0, 2, 5, 4, 4])
    found = point_figures(judge, human)
    assert (found.rows, found.left_out) == (4, 1)
    assert (found.exact, found.within_one, found.mae, found.bias) == (0.5, 0.75, 0.75, -0.25)
    assert found.bias_by_level == {"1": 0, "2": 1, "4": -2, "5": 0}


def test_no_readable_score_gives_no_figures():
    assert point_figures(np.full(3, np.nan), np.arange(3.0)) is None


def test_a_constant_has_no_correlation():
    assert correlation(np.ones(9), np.arange(9.0)) is None


def test_confidence():
    found = confidence(np.array([[0.995, 0.005], [0.4, 0.6]]), np.array([2, 2]))
    assert (found.over_99, found.over_999, found.exact) == (0.5, 0, 0.5)
    assert found.over_confidence == pytest.approx(0.7975 - 0.5)


def test_midpoints_beside_the_judges_own():
    intervals = Intervals.build(np.array([1.0, 2]), np.array([3.0, 4]), Scale(5))
    found = midpoint_figures(intervals, np.array([5.0, np.nan]), np.array([2.0, 4]))
    assert (found.mae, found.bias, found.judge_mae) == (0.5, -0.5, 3)


def test_gap_is_correlation_less_informativeness():
    # ChartQA as published: Pearson .507, width 3.08.
    assert ranking_scoring_gap(0.507, 3.08, 4) == pytest.approx(0.277)


def test_gap_interval_holds_the_gap_and_shrinks():
    rng = np.random.default_rng(0)
    widths = []
    for n in (100, 1600):
        human = rng.integers(1, 6, n).astype(float)
        judge = human + rng.standard_normal(n)
        width = np.full(n, 3.0)
        low, high = gap_interval(judge, human, width, 4)
        assert low < ranking_scoring_gap(np.corrcoef(judge, human)[0, 1], 3.0, 4) < high
        widths.append(high - low)
    assert widths[1] == pytest.approx(widths[0] / 4, rel=0.4)
    assert gap_interval(np.ones(10), np.arange(10.0), np.ones(10), 4) is None


def test_above_the_bootstraps_rows_the_gaps_interval_is_the_bootstraps(monkeypatch):
    rng = np.random.default_rng(1)
    human = rng.integers(1, 6, 2000).astype(float)
    judge = human + rng.standard_normal(2000)
    width = rng.uniform(1, 4, 2000)
    resampled = gap_interval(judge, human, width, 4)
    monkeypatch.setattr(tasks, "_MOST_RESAMPLED", 1000)
    assert gap_interval(judge, human, width, 4) == pytest.approx(resampled, abs=0.1 * (resampled[1] - resampled[0]))


def test_the_gaps_bootstrap_is_the_same_in_blocks(monkeypatch):
    rng = np.random.default_rng(2)
    human, judge, width = rng.integers(1, 6, 50).astype(float), rng.standard_normal(50), rng.uniform(1, 4, 50)
    whole = gap_interval(judge, human, width, 4)
    monkeypatch.setattr(tasks, "_BLOCK", 350)
    assert gap_interval(judge, human, width, 4) == pytest.approx(whole)


def advice(rows=200, coverage=0.9, width=1.5, spearman=0.5):
    interval = spearman_interval(spearman, rows) if spearman is not None else None
    return advise(rows, coverage, width, spearman, interval, alpha=0.1, span=4, demands=Demands(2.0, 0.3))


@pytest.mark.parametrize(
    ("situation", "wanted", "why"),
    [
        ({}, "score", "1.50 wide on a scale of 4"),
        ({"width": 3.0}, "rank only", "3.00 wide"),
        ({"width": 3.0, "spearman": 0.2}, "do not use", "below 0.3"),
        ({"spearman": 0.05}, "do not use", "may be none at all"),
        ({"spearman": 0.2}, "do not use", "human scores hardly vary"),
        ({"coverage": 0.7}, "rank only", "cover only 70%"),
        ({"rows": 3}, "do not use", "only 3 labelled rows"),
        ({"spearman": None}, "do not use", "same score"),
    ],
)
def test_advice_has_its_reason(situation, wanted, why):
    found, reason = advice(**situation)
    assert found == wanted
    assert why in reason


def test_labels_needed_follow_the_curve():
    points = [[(n, level + 40 / n) for n in (25, 50, 100, 200)] for level in (1.0, 2.0)]
    assert shared_slope(points) == pytest.approx(40)
    assert labels_for(1.2, 200, 40, 1.1)[0] == 400
    needed, note = labels_for(1.2, 200, 40, 2.0)
    assert needed == 40
    assert "reached" in note
    needed, note = labels_for(2.2, 200, 40, 1.5)
    assert needed is None
    assert "levels off at 2.00" in note


def test_no_fewer_labels_than_a_finite_interval_takes():
    assert labels_for(1.0, 200, 0.0, 2.0, fewest=18)[0] == 18
    assert labels_for(2.2, 200, 1.0, 2.1999, fewest=400)[0] == 400


def test_a_width_that_does_not_fall_needs_no_extrapolation():
    assert shared_slope([[(10, 1.0), (20, 1.5)]]) == 0
    assert shared_slope([[(10, 1.0)]]) is None
    assert sizes_of(10) == [2, 5, 10]


def test_a_task_is_decoupled_only_where_ranking_is_what_remains():
    from argus_edge.judge.tasks import TaskRows, task_report

    rng = np.random.default_rng(1)
    human = rng.integers(1, 6, 400).astype(float)
    judge = human + 0.5 * rng.standard_normal(400)

    def report(width):
        widths = np.full(400, width)
        rows = TaskRows("t", human, judge, widths, widths, np.ones(400), widths)
        return task_report(rows, alpha=0.1, span=4, demands=Demands(2.0))

    wide, narrow = report(3.5), report(1.0)
    assert (wide.advice, wide.decoupled) == ("rank only", True)
    assert (narrow.advice, narrow.decoupled) == ("score", False)
    assert narrow.gap > 0  # it ranks better still, but it scores well enough
