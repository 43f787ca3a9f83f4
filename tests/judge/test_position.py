"""Finding the score in an answer: `Score:`, then score or rating with a digit near it, then the last digit."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_edge.judge.asking.position import find_score, rating_logprobs


def tokens(text):
    """Words, digits and signs one by one, a space at the front of what follows it."""
    return re.findall(r"\s?(?:[A-Za-z]+|\d|[^\w\s])|\s", text)


def found(text, levels=5):
    answer = find_score(tokens(text), levels)
    assert answer.index is None or tokens(text)[answer.index].strip() == str(answer.score)
    return answer.score, answer.how


@pytest.mark.parametrize(
    ("text", "score", "how"),
    [
        ("There are 5 charts. Score: 2", 2, "anchor"),
        ("Score: 2 of the two is low.\nScore: 4", 4, "anchor"),
        ("Score: **3**", 3, "anchor"),
        ("Score:\n4", 4, "anchor"),
        ("Score: 4/5", 4, "anchor"),
        ("Step 2. I give a rating of 3 here. See figure 5", 3, "keyword"),
        ("The final score is 4 out of 5.", 4, "keyword"),
        ("Overall RATING 1", 1, "keyword"),
        ("It deserves a 4", 4, "last digit"),
        ("I see 3 dogs. I would say 2/5", 2, "last digit"),
    ],
)
def test_where_the_score_is(text, score, how):
    assert found(text) == (score, how)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("I cannot judge this.", "no rating"),
        ("", "no rating"),
        ("Score: 7", "wrote 7"),
        ("Score: 3.5", "wrote 3.5"),
        ("Score: 12. There are 3 dogs", "wrote 12"),
        ("Score: 0", "wrote 0"),
        ("There are 12 dogs", "no rating"),
    ],
)
def test_what_cannot_be_read_is_not_guessed(text, why):
    score, how = found(text)
    assert score is None
    assert why in how


@pytest.mark.parametrize("spelling", ["4", " 4", "▁4", "Ġ4", "\n4"])
def test_marks_of_tokenisers_count(spelling):
    answer = find_score(["Score", ":", spelling], 5)
    assert (answer.index, answer.score) == (2, 4)


def test_a_rating_inside_a_larger_token_cannot_be_read():
    answer = find_score(["Score", ": 4"], 5)
    assert answer.index is None
    assert "not a token of its own" in answer.how


def test_scales_other_than_five():
    assert found("Score: 7", levels=7) == (7, "anchor")
    assert found("Score: 4", levels=3)[0] is None


def test_spellings_are_added_and_absent_ratings_are_minus_infinity():
    logs = rating_logprobs({"4": math.log(0.5), " 4": math.log(0.25), "▁2": math.log(0.1), "Yes": -0.1}, 5)
    assert logs[3] == pytest.approx(math.log(0.75))
    assert logs[1] == pytest.approx(math.log(0.1))
    assert [logs[0], logs[2], logs[4]] == [-math.inf] * 3


def test_nan_stays_nan():
    assert math.isnan(rating_logprobs({"1": math.nan}, 2)[0])


@given(st.lists(st.text(max_size=6), max_size=30), st.integers(2, 9))
def test_any_answer_is_read_or_said_to_be_unreadable(pieces, levels):
    answer = find_score(pieces, levels)
    assert (answer.index is None) == (answer.score is None)
    if answer.index is not None:
        assert 1 <= answer.score <= levels
