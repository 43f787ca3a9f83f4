"""The ARGUS formulas on numbers that can be worked out on paper."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from argus_edge.score import formulas

CELLS = [("retrieval", "coco"), ("captioning", "coco"), ("retrieval", "flickr30k"), ("reasoning", "clevr")]
S = np.array([0.6, 0.2, 0.8, 0.5])

unit = arrays(float, 4, elements=st.floats(0, 1))


def test_chance_is_taken_off_and_never_rewards_being_below_it() -> None:
    assert formulas.above_chance(np.array([0.25, 0.1, 1.0, 0.625]), 0.25).tolist() == [0.0, 0.0, 1.0, 0.5]


def test_capability_is_the_mean_over_datasets_not_over_cells() -> None:
    # coco (0.6 + 0.2) / 2 = 0.4; flickr30k 0.8; clevr 0.5
    assert formulas.capability(CELLS, S) == pytest.approx((0.4 + 0.8 + 0.5) / 3)


def test_consistency_by_task_uses_the_population_sd_and_skips_single_dataset_tasks() -> None:
    # Only retrieval has two datasets: mean 0.7, population sd 0.1.
    assert formulas.consistency_by_task(CELLS, S) == pytest.approx(1 - 0.1 / 0.7)


def test_consistency_over_all_datasets_at_once() -> None:
    values = np.array([0.4, 0.8, 0.5])
    assert formulas.consistency_all(CELLS, S) == pytest.approx(1 - values.std() / values.mean())


def test_consistency_is_missing_where_no_task_gives_one() -> None:
    assert np.isnan(formulas.consistency_by_task([("retrieval", "coco")], np.array([0.5])))
    assert np.isnan(formulas.consistency_by_task(CELLS, np.zeros(4)))
    assert np.isnan(formulas.consistency_all([("retrieval", "coco")], np.array([0.5])))


def test_consistency_is_never_below_zero() -> None:
    cells = [("retrieval", name) for name in "abcdef"]
    assert formulas.consistency_by_task(cells, np.array([1.0, 0, 0, 0, 0, 0])) == 0


def test_debiasing_removes_what_noise_alone_explains() -> None:
    cells = [("retrieval", "a"), ("retrieval", "b")]
    s = np.array([0.45, 0.55])  # population variance 0.0025 = half of a squared error of 0.005
    assert formulas.consistency_by_task(cells, s, np.array([0.005, 0.005])) == pytest.approx(1.0)


@given(unit)
def test_equal_scores_are_perfectly_consistent(s: np.ndarray) -> None:
    equal = np.full(4, max(s.max(), 0.01))
    assert formulas.consistency_by_task(CELLS, equal) == pytest.approx(1.0)


@given(unit)
def test_every_part_stays_within_its_range(s: np.ndarray) -> None:
    assert 0 <= formulas.capability(CELLS, s) <= 1
    for reading in (formulas.consistency_by_task, formulas.consistency_all):
        value = reading(CELLS, s)
        assert np.isnan(value) or 0 <= value <= 1


def test_perturbed_is_averaged_over_severities_then_perturbations_then_modalities() -> None:
    grid = {
        ("image", "noise", 1): np.array(0.8),
        ("image", "noise", 5): np.array(0.4),
        ("image", "blur", 1): np.array(0.2),
        ("text", "typo", 1): np.array(0.9),
    }
    # image: (0.6 + 0.2) / 2 = 0.4; text: 0.9
    assert formulas.mean_perturbed(grid) == pytest.approx(0.65)
    assert formulas.mean_perturbed({}) is None


def test_robustness_is_raw_and_missing_at_no_capability() -> None:
    values = formulas.robustness(np.array([0.5, 0.6, 0.1]), np.array([0.5, 0.5, 0.0]))
    assert values[:2].tolist() == [1.0, pytest.approx(1.2)]
    assert np.isnan(values[2])


def test_argus_caps_robustness_and_is_missing_where_a_part_is() -> None:
    quarter = [0.25] * 4
    assert formulas.argus([np.array(0.4), np.array(0.8), np.array(1.2), np.array(0.6)], quarter) == pytest.approx(0.7)
    assert np.isnan(formulas.argus([np.array(0.4), np.array(np.nan), np.array(1.0), np.array(0.6)], quarter))


def test_replicates_are_carried_along() -> None:
    many = np.tile(S, (7, 1))
    assert formulas.capability(CELLS, many).shape == (7,)
    assert formulas.consistency_by_task(CELLS, many) == pytest.approx(1 - 0.1 / 0.7)
