"""Intervals by resampling images: known answers, and their coverage."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from argus_edge.evaluate.metrics import (
    REPLICATES,
    image_weights,
    interval_of_bleu,
    interval_of_mean,
    interval_of_ratio,
)


def test_a_constant_has_no_width() -> None:
    weights = image_weights("coco", 30, REPLICATES, 0)
    assert interval_of_mean(np.full(30, 0.7), weights) == pytest.approx((0.7, 0.7))
    assert interval_of_ratio(np.full(30, 2), np.full(30, 4), weights) == (0.5, 0.5)


def test_the_width_of_a_mean_is_that_of_the_normal_approximation() -> None:
    values = np.random.default_rng(0).normal(size=2000)
    low, high = interval_of_mean(values, image_weights("coco", 2000, REPLICATES, 0))
    assert low < values.mean() < high
    assert high - low == pytest.approx(2 * 1.96 * values.std() / 2000**0.5, rel=0.1)


def test_a_seed_draws_what_it_always_drew() -> None:
    # Scores that are on record do not move.
    weights = image_weights("coco", 300, 50, 3)
    rng = np.random.default_rng([3, zlib.crc32(b"coco")])
    np.testing.assert_array_equal(weights[1:], rng.multinomial(300, np.full(300, 1 / 300), size=50))
    assert (weights[0] == 1).all()
    assert (weights.dtype, weights[1:].sum()) == (np.float64, 50 * 300)


def test_questions_go_with_their_image() -> None:
    # Ten images of a hundred equal questions each: as uncertain as ten questions, not as a thousand.
    hits, questions = np.repeat([0, 100], 5), np.full(10, 100)
    low, high = interval_of_ratio(hits, questions, image_weights("clevr", 10, REPLICATES, 0))
    assert high - low > 0.4


def test_bleu_is_resampled_as_sums_not_as_a_mean_of_images() -> None:
    rng = np.random.default_rng(1)
    totals = rng.integers(8, 15, 200)
    matches = np.stack([rng.binomial(totals - n, 0.6 / (n + 1)) for n in range(4)], axis=1)
    table = np.column_stack([matches, *(totals - n for n in range(4)), totals, totals])
    sums = table.sum(axis=0)
    bleu = float(np.exp(np.log(sums[:4] / sums[4:8]).mean()))
    low, high = interval_of_bleu(table, image_weights("coco", 200, REPLICATES, 0))
    assert low < bleu < high
    assert 0 < high - low < 0.1


def test_images_without_a_query_do_no_harm() -> None:
    weights = image_weights("coco", 4, REPLICATES, 0)
    low, high = interval_of_ratio([1, 0, 0, 0], [1, 0, 0, 0], weights)
    assert (low, high) == (1.0, 1.0)
    assert np.isnan(interval_of_ratio([0, 0, 0, 0], [0, 0, 0, 0], weights)).all()


@pytest.mark.slow
def test_the_interval_of_a_recall_covers_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(2)
    weights = image_weights("coco", 150, REPLICATES, 0)
    covered = 0
    for _ in range(400):
        difficulty = rng.beta(2, 2, 150)
        low, high = interval_of_ratio(rng.binomial(5, difficulty), np.full(150, 5), weights)
        covered += low <= 0.5 <= high
    assert 0.91 <= covered / 400 <= 0.985
