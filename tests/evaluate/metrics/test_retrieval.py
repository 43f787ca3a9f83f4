"""Ranks of retrieval: against a plain matrix product and sort, on ties, on broken scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from argus_edge.errors import InputError
from argus_edge.evaluate.metrics import (
    RetrievalScores,
    retrieval_chance,
    retrieval_from_embeddings,
    retrieval_from_scores,
)


def plain_ranks(scores: np.ndarray, owners: np.ndarray) -> tuple[list[int], list[int]]:
    """The definition, one query at a time: wrong candidates that score at least as much come first."""
    images, texts = scores.shape
    image_to_text = []
    for image in range(images):
        own = owners == image
        best = scores[image, own].max() if own.any() else None
        image_to_text.append(0 if best is None else 1 + int((scores[image, ~own] >= best).sum()))
    text_to_image = [
        1 + sum(scores[other, text] >= scores[owners[text], text] for other in range(images) if other != owners[text])
        for text in range(texts)
    ]
    return image_to_text, text_to_image


def test_embeddings_give_the_ranks_of_one_product_and_a_sort() -> None:
    rng = np.random.default_rng(0)
    images = rng.standard_normal((300, 64)).astype(np.float32)
    owners = np.repeat(np.arange(300), 5)
    texts = (images[owners] + 4 * rng.standard_normal((1500, 64))).astype(np.float32)
    found = retrieval_from_embeddings(images, texts, owners)
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (images, texts)]
    scores = unit[0] @ unit[1].T
    order = np.argsort(-scores, axis=1)
    assert found.image_to_text.tolist() == (1 + (owners[order] == np.arange(300)[:, None]).argmax(axis=1)).tolist()
    order = np.argsort(-scores, axis=0)
    assert found.text_to_image.tolist() == (1 + (order == owners).argmax(axis=0)).tolist()
    assert 0.1 < found.recall("i2t", 1) < 0.99, "the test has something to tell apart"


@given(
    scores=arrays(np.float64, (6, 14), elements=st.sampled_from([0.0, 0.25, 0.5, 1.0])),
    owners=arrays(np.int64, 14, elements=st.integers(0, 5)),
)
def test_ties_count_against_the_model(scores: np.ndarray, owners: np.ndarray) -> None:
    found = retrieval_from_scores(scores, owners)
    image_to_text, text_to_image = plain_ranks(scores, owners)
    assert found.image_to_text.tolist() == image_to_text
    assert found.text_to_image.tolist() == text_to_image


@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
def test_a_constant_embedding_does_not_score(scale: float) -> None:
    vector = np.random.default_rng(1).standard_normal(384) * scale
    owners = np.repeat(np.arange(40), 5)
    found = retrieval_from_embeddings(np.tile(vector, (40, 1)), np.tile(vector, (200, 1)), owners)
    assert found.headline == 0
    assert set(found.image_to_text) == {196}, "behind all 195 texts of other images"
    assert set(found.text_to_image) == {40}


def test_vectors_equal_but_for_rounding_are_a_tie() -> None:
    rng = np.random.default_rng(2)
    vector = rng.standard_normal(512).astype(np.float32)
    nearly = np.tile(vector, (30, 1)) * (1 + 1e-7 * rng.standard_normal((30, 512)).astype(np.float32))
    assert retrieval_from_embeddings(nearly, np.repeat(nearly, 5, axis=0), np.repeat(np.arange(30), 5)).headline == 0


def test_scores_that_are_no_numbers_count_against_the_model() -> None:
    owners = np.array([0, 1, 2])
    scores = np.eye(3)
    scores[0, 0] = np.nan  # a right one
    scores[1, 2] = np.nan  # a wrong one
    found = retrieval_from_scores(scores, owners)
    assert found.image_to_text.tolist() == [3, 2, 1]
    assert found.text_to_image.tolist() == [3, 1, 2]
    broken = retrieval_from_embeddings(np.full((3, 4), np.nan), np.ones((3, 4)), owners)
    assert broken.headline == 0


def test_zero_vectors_do_not_score() -> None:
    assert retrieval_from_embeddings(np.zeros((5, 8)), np.zeros((5, 8)), np.arange(5)).headline == 0


def test_any_text_of_the_image_counts_and_images_without_texts_do_not_ask() -> None:
    scores = np.array([[0.1, 0.9, 0.5], [0.2, 0.3, 0.4], [0.0, 0.0, 0.0]])
    found = retrieval_from_scores(scores, [0, 0, 1])
    assert found.image_to_text.tolist() == [1, 1, 0]
    assert found.recall("i2t", 1) == 1.0
    assert found.statistics()["i2t_queries"].tolist() == [1, 1, 0]
    assert found.statistics()["t2i_queries"].tolist() == [2, 1, 0]


def test_statistics_add_up_to_the_recalls() -> None:
    rng = np.random.default_rng(3)
    owners = rng.integers(0, 20, 70)
    found = retrieval_from_scores(rng.random((20, 70)) + 0.5 * np.eye(20)[:, owners], owners)
    columns = {name: column.sum() for name, column in found.statistics().items()}
    assert columns["i2t_hits"] / columns["i2t_queries"] == found.recall("i2t", 1)
    assert columns["t2i_hits"] / columns["t2i_queries"] == found.recall("t2i", 1)
    assert found.metrics()["r10_t2i"] == np.mean(found.text_to_image <= 10)
    assert found.metrics()["medr_i2t"] == np.median(found.image_to_text[found.image_to_text > 0])


@pytest.mark.parametrize("direction", ["i2t", "t2i"])
def test_the_interval_of_a_median_rank_covers_it_though_an_images_texts_stand_together(direction: str) -> None:
    rng = np.random.default_rng(5)
    owners = np.repeat(np.arange(100), 5)
    covered = []
    for _ in range(400):
        # The ranks of an image are its own difficulty, drawn from a law with the median 40.
        ranks = np.rint(40 * np.exp(rng.normal(0, 1, 100))).astype(np.int64)
        low, high = RetrievalScores(ranks, ranks[owners], owners).median_rank_interval(direction)
        covered.append(low <= 40 <= high)
    assert np.mean(covered) >= 0.93


def test_a_median_rank_without_a_query_has_no_interval() -> None:
    nobody = RetrievalScores(np.zeros(3, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    assert np.isnan(nobody.median_rank_interval("t2i")).all()


def test_a_random_order_scores_what_chance_says() -> None:
    rng = np.random.default_rng(4)
    owners = np.repeat(np.arange(10), [1, 2, 3, 4, 5, 5, 5, 5, 5, 0])
    heads = [retrieval_from_scores(rng.random((10, len(owners))), owners).headline for _ in range(4000)]
    assert np.mean(heads) == pytest.approx(retrieval_chance(owners, 10), abs=5 * np.std(heads) / 4000**0.5)


@pytest.mark.parametrize(
    ("images", "texts", "owners"),
    [
        (np.ones((2, 3)), np.ones((2, 4)), [0, 1]),
        (np.ones((2, 3)), np.ones((2, 3)), [0, 2]),
        (np.ones((2, 3)), np.ones((2, 3)), [0, -1]),
        (np.ones((2, 3)), np.ones((2, 3)), [0]),
        (np.ones(3), np.ones((2, 3)), [0, 0]),
    ],
)
def test_shapes_that_do_not_go_together_are_an_error(images: np.ndarray, texts: np.ndarray, owners: list[int]) -> None:
    with pytest.raises(InputError):
        retrieval_from_embeddings(images, texts, owners)


def test_nothing_to_retrieve() -> None:
    found = retrieval_from_embeddings(np.ones((3, 4)), np.ones((0, 4)), [])
    assert found.headline == 0
    assert found.statistics()["i2t_queries"].tolist() == [0, 0, 0]
