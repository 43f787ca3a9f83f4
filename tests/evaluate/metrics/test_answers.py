"""Answers: one normaliser for both sides, CLEVR's closed set, accuracy by type, VCR's three modes, chance levels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_edge.evaluate.datasets.clevr import ANSWERS
from argus_edge.evaluate.metrics import (
    answers_match,
    choice_chance,
    choose_answer,
    constant_answer_chance,
    normalize_answer,
    score_answers,
    score_vcr,
    vcr_chance,
)


@pytest.mark.parametrize(
    ("prediction", "answer"),
    [
        ("Black.", "black"),
        (" the Dog ", "dog"),
        ("Two", "2"),
        ("t-shirt", "T shirt"),
        ("1,000", "1000"),
        ("2.5", "2.5."),
        ("It's", "its"),
        ("ＦＵＬＬ width", "full width"),
        ("yes!", "Yes"),
        ("a", "A"),
    ],
)
def test_answers_that_mean_the_same_match(prediction: str, answer: str) -> None:
    assert answers_match(prediction, [answer])
    assert answers_match(answer, [prediction]), "one normaliser for both sides"


@pytest.mark.parametrize(
    ("prediction", "answer"), [("2.5", "25"), ("cat", "cats"), ("", "no"), ("-5", "6"), ("1.000", "1000")]
)
def test_answers_that_differ_do_not_match(prediction: str, answer: str) -> None:
    assert not answers_match(prediction, [answer])


@given(st.text(max_size=40))
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert normalize_answer(normalize_answer(text)) == normalize_answer(text)


@pytest.mark.parametrize("answer", ANSWERS)
def test_every_answer_of_clevr_is_chosen_from_itself_and_from_a_sentence(answer: str) -> None:
    assert choose_answer(answer, ANSWERS) == answer
    assert choose_answer(f"{answer.upper()}.", ANSWERS) == answer
    assert choose_answer(f"The answer is {answer}.", ANSWERS) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Yes, there is a red cube.", "yes"),
        ("It is a shiny thing", "metal"),
        ("three", "3"),
        ("There are three of them.", "3"),
        ("one", "1"),
        ("the blue one", "blue"),
        ("grey", "gray"),
        ("a ball", "sphere"),
        ("red or blue", None),
        ("I do not know", None),
        ("", None),
        ("eleven", None),
        ("cubes", None),
    ],
)
def test_free_texts_are_brought_to_the_closed_set(text: str, answer: str | None) -> None:
    assert choose_answer(text, ANSWERS) == answer


def test_accuracy_by_type_and_statistics() -> None:
    found = score_answers([1, 0, 1, 1], [0, 0, 2, 2], 3, ["count", "exist", "count", "exist"])
    assert found.accuracy == 0.75
    assert found.by_type() == {"count": 1.0, "exist": 0.5}
    assert found.statistics()["hits"].tolist() == [1, 0, 2]
    assert found.statistics()["questions"].tolist() == [2, 0, 2]


def test_vcr_needs_both_right_on_the_same_item() -> None:
    found = score_vcr([1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 1, 1], 2)
    assert found.metrics() == {"q_a": 0.5, "qa_r": 0.5, "q_ar": 0.25}
    assert found.q_ar.statistics()["hits"].tolist() == [1, 0]
    other = score_vcr([1, 1, 0, 0], [1, 1, 0, 0], [0, 1, 1, 1], 2)
    assert other.metrics()["q_ar"] == 0.5, "not the product of the two"


def test_lengths_that_differ_are_an_error() -> None:
    with pytest.raises(ValueError, match="2 types"):
        score_answers([1], [0], 1, ["a", "b"])


def test_chance_levels() -> None:
    assert constant_answer_chance(["yes", "yes", "no", "3"], ["exist", "exist", "exist", "count"]) == 0.75
    assert constant_answer_chance([]) == 0
    assert [vcr_chance(mode) for mode in ("q_a", "qa_r", "q_ar")] == [0.25, 0.25, 0.0625]
    assert choice_chance([4, 2]) == pytest.approx(0.375)


def test_the_best_constant_answer_reaches_its_chance() -> None:
    rng = np.random.default_rng(0)
    types = rng.choice(["a", "b"], 500)
    answers = [f"{kind}{value}" for kind, value in zip(types, rng.integers(0, 3, 500), strict=True)]
    best = {kind: max(set(own), key=own.count) for kind in ("a", "b") if (own := [a for a in answers if a[0] == kind])}
    assert np.mean([answer == best[answer[0]] for answer in answers]) == constant_answer_chance(answers, list(types))
