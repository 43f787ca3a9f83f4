"""Text from a board or a file never reaches the terminal as anything but text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_edge.text import clean


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;window title\x07board", "board"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jgone", "gone"),
        ("\x1bPdcs string\x1b\\after", "after"),
        ("100%\rnothing", "100% nothing"),
        ("a\nb\tc", "a b c"),
        ("safe\u202egnp.exe", "safegnp.exe"),
        ("\x1b\x1b[[31mnested", "31mnested"),
    ],
)
def test_escape_and_control_sequences_are_gone(raw, shown):
    assert clean(raw) == shown


@given(
    st.text(alphabet=st.one_of(st.characters(), st.sampled_from("\x1b[]\x07\x9b\\;m0")), max_size=300),
    st.integers(1, 50),
)
def test_no_control_character_survives_and_the_length_is_bounded(raw, limit):
    shown = clean(raw, limit=limit)
    assert len(shown) <= limit
    assert not any(unicodedata.category(letter) == "Cc" for letter in shown)


@given(st.text(max_size=200))
def test_lines_keep_their_breaks_and_nothing_else(raw):
    shown = clean(raw, lines=True)
    assert all(letter in "\n\t" or unicodedata.category(letter) != "Cc" for letter in shown)


def test_a_gigantic_text_is_cut_before_it_is_searched():
    assert clean("\x1b]" + "x" * 50_000_000, limit=10) == ""
    assert clean("y" * 50_000_000, limit=10) == "y" * 9 + "…"
