"""Text perturbations: the same text in any order, more errors with severity, and bearing any text."""

from __future__ import annotations

from collections import Counter
from difflib import SequenceMatcher
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_edge.errors import UsageError
from argus_edge.evaluate.perturb import SEVERITIES, TEXT_PERTURBATIONS, perturb_text
from argus_edge.evaluate.perturb.text_data import KEYBOARD, OCR, SYNONYMS

CAPTION = "Two big dogs are playing with a small red ball near the street, while a man in a blue coat is watching them."


def similarity(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


@pytest.mark.parametrize("name", TEXT_PERTURBATIONS)
def test_the_item_alone_decides(name: str) -> None:
    first = perturb_text(CAPTION, name, 3, "one", seed=7)
    for other in TEXT_PERTURBATIONS:
        perturb_text("something else", other, 2, "two", seed=7)
    assert perturb_text(CAPTION, name, 3, "one", seed=7) == first
    assert len({perturb_text(CAPTION, name, 3, str(item)) for item in range(8)}) > 1
    assert len({perturb_text(CAPTION, name, 3, "one", seed) for seed in range(8)}) > 1


@pytest.mark.parametrize("name", TEXT_PERTURBATIONS)
def test_a_higher_severity_is_further_from_the_text(name: str) -> None:
    means = [
        sum(similarity(CAPTION, perturb_text(CAPTION, name, severity, str(item))) for item in range(20)) / 20
        for severity in SEVERITIES
    ]
    assert means[0] < 1
    assert means[0] > means[2] > means[4], means


@pytest.mark.parametrize("name", ["keyboard", "case"])
def test_what_a_lower_severity_hits_a_higher_one_hits_too(name: str) -> None:
    hits = []
    for severity in SEVERITIES:
        changed = perturb_text(CAPTION, name, severity, "one")
        hits.append({place for place, (old, new) in enumerate(zip(CAPTION, changed, strict=True)) if old != new})
    assert hits[0]
    assert all(less <= more for less, more in pairwise(hits))


@given(text=st.text(max_size=60), severity=st.integers(1, 5))
def test_any_text_is_borne(text: str, severity: int) -> None:
    for name in TEXT_PERTURBATIONS:
        assert isinstance(perturb_text(text, name, severity, "any"), str)


@pytest.mark.parametrize("name", TEXT_PERTURBATIONS)
@pytest.mark.parametrize("text", ["", " ", "😀", "12 34", "a"])
def test_texts_with_little_to_hit(name: str, text: str) -> None:
    changed = perturb_text(text, name, 5, "x")
    if name in ("word_delete", "word_swap") and len(text.split()) < 2:
        assert changed == text
    assert bool(changed.strip()) == bool(text.strip())


def test_keyboard_hits_a_neighbouring_key_and_keeps_capitals() -> None:
    for item in range(30):
        changed = perturb_text("Hello World", "keyboard", 5, str(item))
        for old, new in zip("Hello World", changed, strict=True):
            assert new == old or (new.lower() in KEYBOARD[old.lower()] and new.isupper() == old.isupper())


def test_the_keys_beside_g() -> None:
    assert sorted(KEYBOARD["g"]) == ["b", "f", "h", "t", "v", "y"]
    assert all(key in KEYBOARD[other] for key, others in KEYBOARD.items() for other in others), "beside is mutual"


def test_letters_are_inserted_deleted_and_transposed() -> None:
    letters = sum(character.isalpha() for character in CAPTION)
    hit = round(0.2 * letters)
    assert len(perturb_text(CAPTION, "insert", 5, "x")) == len(CAPTION) + hit
    assert len(perturb_text(CAPTION, "delete", 5, "x")) == len(CAPTION) - hit
    swapped = perturb_text(CAPTION, "swap", 5, "x")
    assert Counter(swapped) == Counter(CAPTION)
    assert [word[0] for word in swapped.split()] == [word[0] for word in CAPTION.split()], "first letters stay"
    assert perturb_text(CAPTION, "case", 5, "x").lower() == CAPTION.lower()


def test_words_are_left_out_and_transposed() -> None:
    words = CAPTION.split()
    kept = perturb_text(CAPTION, "word_delete", 5, "x").split()
    assert len(kept) == len(words) - round(0.5 * len(words))
    assert [word for word in words if word in kept] == [word for word in words if word in set(kept)]
    assert Counter(perturb_text(CAPTION, "word_swap", 5, "x").split()) == Counter(words)
    assert perturb_text("one two", "word_delete", 5, "x") in ("one", "two"), "never all of them"


def test_synonyms_come_from_the_list_and_keep_the_capital() -> None:
    for item in range(10):
        for old, new in zip(CAPTION.split(), perturb_text(CAPTION, "synonym", 5, str(item)).split(), strict=True):
            bare = old.strip(",.").lower()
            assert new == old or new.strip(",.").lower() in SYNONYMS[bare]
    assert perturb_text("Big", "synonym", 1, "x") == "Large"
    assert perturb_text("xyzzy plugh", "synonym", 5, "x") == "xyzzy plugh"


def test_punctuation_changes_nothing_else() -> None:
    for severity in SEVERITIES:
        changed = perturb_text(CAPTION, "punctuation", severity, "x")
        assert changed != CAPTION
        strip = str.maketrans("", "", ",.!?;:-")
        assert changed.translate(strip) == CAPTION.translate(strip)


def test_the_lists_hold_together() -> None:
    assert all(word not in others for word, others in SYNONYMS.items())
    assert all(word == word.lower() for word in SYNONYMS)
    assert all(character not in options for character, options in OCR.items())


def test_an_unknown_name_or_severity_is_an_error() -> None:
    with pytest.raises(UsageError):
        perturb_text("a dog", "typo", 1, "x")
    with pytest.raises(UsageError):
        perturb_text("a dog", "ocr", 0, "x")
