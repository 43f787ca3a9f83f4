"""The tokeniser: Stanford's own answers (fixtures/ptb_tokens.json, from benchmarks/metrics), and what it must bear."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_edge.evaluate.metrics import tokenize
from argus_edge.evaluate.metrics.tokenizer import PUNCTUATION

ANSWERS = json.loads((Path(__file__).parent / "fixtures" / "ptb_tokens.json").read_text(encoding="utf-8"))


def test_the_tokens_are_stanfords() -> None:
    different = [
        (text, tokens, " ".join(tokenize(text))) for text, tokens in ANSWERS if " ".join(tokenize(text)) != tokens
    ]
    assert len(ANSWERS) > 1600
    assert not different, different[:5]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("A man can't hold the dogs' leash.", "a man ca n't hold the dogs leash"),
        ("It’s a “smart” T-shirt – 50% off", "it 's a smart t-shirt 50 % off"),
        ("Mr. Smith at 5 p.m. in the U.S. (New York)", "mr. smith at 5 p.m. in the u.s. -lrb- new york -rrb-"),
        ("A cat 😀 and a 🐶.", "a cat and a"),
        ("Meet at No. 5, no. Not there", "meet at no. 5 no not there"),
        ("", ""),
        ("  \n\t ", ""),
    ],
)
def test_what_a_reader_would_check(text: str, tokens: str) -> None:
    assert " ".join(tokenize(text)) == tokens


def test_a_line_break_is_white_space() -> None:
    for mark in "\n\r\v\f\x85\u2028\u2029":
        assert tokenize(f"a dog{mark}runs") == ["a", "dog", "runs"]


@given(st.text(max_size=60))
def test_any_text_gives_tokens_in_lower_case_without_blanks_or_punctuation(text: str) -> None:
    for token in tokenize(text):
        assert token
        assert " " not in token
        assert token not in PUNCTUATION


@given(st.lists(st.sampled_from(["a", "dog", "man", "runs", "t-shirt", "don't", "the"]), min_size=1, max_size=8))
def test_captions_are_independent_of_what_was_seen_before(words: list[str]) -> None:
    whole = tokenize(" ".join(words))
    assert whole == [token for word in words for token in tokenize(word)]


@pytest.mark.parametrize("part", ["a", "'", "a.b", "<a ", "1 1/2 ", "a-", ".", "a@", "www.", "(1", "&amp;A"])
def test_long_hostile_texts_end(part: str) -> None:
    tokenize(part * 5_000)
