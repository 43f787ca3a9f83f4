"""Errors of words: deletion, changed order, synonyms, punctuation."""

from __future__ import annotations

import re

import numpy as np

from argus_edge.evaluate.perturb.characters import choose
from argus_edge.evaluate.perturb.text_data import SYNONYMS

__all__ = ["punctuation", "synonym", "word_delete", "word_swap"]

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5)
"""Of the words that are hit, at severities 1 to 5; at least one where there is any."""

_WORD = re.compile(r"[^\W\d_]+")
_MARKS = (",", ".", "!", "?", ";", ":", "-", "...")


def word_delete(text: str, severity: int, rng: np.random.Generator) -> str:
    """Leave words out, never all of them."""
    words = text.split()
    if len(words) < 2:
        return text
    gone = set(choose(len(words), severity, rng, SHARES)[: len(words) - 1])
    return " ".join(word for index, word in enumerate(words) if index not in gone)


def word_swap(text: str, severity: int, rng: np.random.Generator) -> str:
    """Transpose neighbouring words."""
    words = text.split()
    taken: set[int] = set()
    for place in choose(len(words) - 1, severity, rng, SHARES) if len(words) > 1 else []:
        if not taken & {place, place + 1}:
            taken |= {place, place + 1}
            words[place], words[place + 1] = words[place + 1], words[place]
    return " ".join(words) if taken else text


def synonym(text: str, severity: int, rng: np.random.Generator) -> str:
    """Replace words by a synonym of the project's own list."""
    known = [match for match in _WORD.finditer(text) if match[0].lower() in SYNONYMS]
    draws = rng.random(len(known))
    chosen = sorted(choose(len(known), severity, rng, SHARES), reverse=True)
    for index in chosen:
        match = known[index]
        options = SYNONYMS[match[0].lower()]
        word = options[int(draws[index] * len(options))]
        text = text[: match.start()] + (word.capitalize() if match[0][0].isupper() else word) + text[match.end() :]
    return text


def punctuation(text: str, severity: int, rng: np.random.Generator) -> str:
    """Put a mark behind words, or take one away where the word ends in one."""
    words = text.split()
    draws = rng.random(len(words))
    for index in choose(len(words), severity, rng, SHARES):
        bare = words[index].rstrip(",.!?;:-")
        words[index] = bare if bare != words[index] and bare else words[index] + _MARKS[int(draws[index] * len(_MARKS))]
    return " ".join(words)
