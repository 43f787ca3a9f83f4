"""Errors of letters: typing, optical recognition, insertion, deletion, transposition, case."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from argus_edge.evaluate.perturb.text_data import KEYBOARD, OCR

__all__ = ["case", "delete", "insert", "keyboard", "ocr", "swap"]

SHARES = (0.03, 0.06, 0.10, 0.15, 0.20)
"""Of the letters that are hit, at severities 1 to 5; at least one where there is any."""

_ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def choose(count: int, severity: int, rng: np.random.Generator, shares: tuple[float, ...] = SHARES) -> list[int]:
    """Return which of ``count`` places are hit: a growing part of one random order, so that severities are nested."""
    order = rng.permutation(count)
    return [int(place) for place in order[: max(1, round(count * shares[severity - 1]))]] if count else []


def _edit(
    text: str,
    severity: int,
    rng: np.random.Generator,
    applies: Callable[[str], bool],
    change: Callable[[str, float], str],
) -> str:
    """Change a share of the characters that the error applies to; ``change`` gets one and a number in [0, 1)."""
    places = [index for index, character in enumerate(text) if applies(character)]
    draws = rng.random(len(places))
    characters = list(text)
    for chosen in choose(len(places), severity, rng):
        place = places[chosen]
        characters[place] = change(characters[place], float(draws[chosen]))
    return "".join(characters)


def _pick(options: str | tuple[str, ...], draw: float) -> str:
    return options[int(draw * len(options))]


def keyboard(text: str, severity: int, rng: np.random.Generator) -> str:
    """Replace letters by their neighbours on a QWERTY keyboard."""

    def change(letter: str, draw: float) -> str:
        hit = _pick(KEYBOARD[letter.lower()], draw)
        return hit.upper() if letter.isupper() else hit

    return _edit(text, severity, rng, lambda character: character.lower() in KEYBOARD, change)


def ocr(text: str, severity: int, rng: np.random.Generator) -> str:
    """Replace characters by what optical recognition takes them for."""
    return _edit(text, severity, rng, OCR.__contains__, lambda character, draw: _pick(OCR[character], draw))


def insert(text: str, severity: int, rng: np.random.Generator) -> str:
    """Insert a random letter behind letters."""
    return _edit(text, severity, rng, str.isalpha, lambda letter, draw: letter + _pick(_ALPHABET, draw))


def delete(text: str, severity: int, rng: np.random.Generator) -> str:
    """Leave letters out, never all that there is."""
    left = _edit(text, severity, rng, str.isalpha, lambda letter, draw: "")
    return left if left.strip() else text


def case(text: str, severity: int, rng: np.random.Generator) -> str:
    """Turn small letters into capitals and the reverse."""
    return _edit(
        text, severity, rng, lambda letter: letter != letter.swapcase(), lambda letter, draw: letter.swapcase()
    )


def swap(text: str, severity: int, rng: np.random.Generator) -> str:
    """Transpose two neighbouring letters of a word, the first letter left in its place."""
    places = [
        index
        for index in range(1, len(text) - 1)
        if text[index - 1 : index + 2].isalpha() and text[index] != text[index + 1]
    ]
    characters = list(text)
    taken: set[int] = set()
    for chosen in choose(len(places), severity, rng):
        place = places[chosen]
        if not taken & {place, place + 1}:
            taken |= {place, place + 1}
            characters[place], characters[place + 1] = characters[place + 1], characters[place]
    return "".join(characters)
