"""N-grams of captions as integers: exact ids, level by level, so that counting and matching are sorts and searches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, count

import numpy as np
import numpy.typing as npt

__all__ = ["ORDERS", "NgramCounts", "NgramIndex", "find", "low", "pair"]

IntArray = npt.NDArray[np.int64]

ORDERS = 4
"""1- to 4-grams."""

_SHIFT = 31
"""Ids stay below 2**31, so that a pair of them is one exact 62-bit key."""


@dataclass(frozen=True)
class NgramCounts:
    """How often each n-gram of one order occurs in each caption, sorted by caption and id.

    Attributes
    ----------
    caption, ngram, count
        Shape (entries,): the caption's index, the n-gram's id, its occurrences.
    """

    caption: IntArray
    ngram: IntArray
    count: IntArray

    @property
    def key(self) -> IntArray:
        """Caption and n-gram as one sorted key."""
        return pair(self.caption, self.ngram)


def pair(high: IntArray, low: IntArray) -> IntArray:
    """Return two ids below 2**31 as one key whose order is that of the pairs."""
    return (high << _SHIFT) | low


def low(keys: IntArray) -> IntArray:
    """Return the second id of each pair."""
    return keys & ((1 << _SHIFT) - 1)


def find(keys: IntArray, wanted: IntArray) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Return where each wanted value is in the sorted ``keys``, and whether it is there at all."""
    if not len(keys):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return place, keys[place] == wanted


class NgramIndex:
    """The n-grams of a set of captions, numbered for each order from 0.

    Parameters
    ----------
    captions
        Tokenised captions.
    """

    def __init__(self, captions: Iterable[Sequence[str]]) -> None:
        flat, caption, self._words = _flatten(captions, {})
        self._levels: list[IntArray] = []
        ngrams, start = flat, np.arange(len(flat))
        for order in range(2, ORDERS + 1):
            keys, start = _extend(ngrams, start, flat, caption, order)
            level, ngrams = np.unique(keys, return_inverse=True)
            self._levels.append(level)

    def size(self, order: int) -> int:
        """Return how many n-grams of an order the index holds."""
        return len(self._words) if order == 1 else len(self._levels[order - 2])

    def texts(self, order: int, ids: IntArray) -> list[str]:
        """Return n-grams of one order by their ids, the words joined by a space."""
        if order == 1:
            words = list(self._words)
            return [words[place] for place in ids.tolist()]
        keys = self._levels[order - 2][ids]
        heads, tails = self.texts(order - 1, keys >> _SHIFT), self.texts(1, low(keys))
        return [f"{head} {tail}" for head, tail in zip(heads, tails, strict=True)]

    def count(self, captions: Iterable[Sequence[str]]) -> list[NgramCounts]:
        """Count the n-grams of captions, one table for each order from 1 to 4.

        An n-gram that the index does not hold gets an id from the index's size on, the same throughout the call.
        """
        flat, caption, _ = _flatten(captions, self._words)
        ngrams, start = flat, np.arange(len(flat))
        tables = [_tally(caption, ngrams)]
        for order, known in enumerate(self._levels, start=2):
            keys, start = _extend(ngrams, start, flat, caption, order)
            place, present = find(known, keys)
            _, fresh = np.unique(keys[~present], return_inverse=True)
            ngrams = place
            ngrams[~present] = len(known) + fresh
            tables.append(_tally(caption[start], ngrams))
        return tables


def _flatten(captions: Iterable[Sequence[str]], known: dict[str, int]) -> tuple[IntArray, IntArray, dict[str, int]]:
    """Number the words, new ones in the order of their coming; return them in one row, their captions, the numbers."""
    numbers = defaultdict(count(len(known)).__next__, known)
    listed = list(captions)
    lengths = [len(tokens) for tokens in listed]
    flat = np.fromiter(map(numbers.__getitem__, chain.from_iterable(listed)), np.int64, sum(lengths))
    return flat, np.repeat(np.arange(len(lengths)), lengths), dict(numbers)


def _extend(
    ngrams: IntArray, start: IntArray, flat: IntArray, caption: IntArray, order: int
) -> tuple[IntArray, IntArray]:
    """Return the key of each n-gram one word longer, and the position that it starts at."""
    last = start + order - 1
    inside = last < len(flat)
    inside[inside] = caption[start[inside]] == caption[last[inside]]
    return pair(ngrams[inside], flat[last[inside]]), start[inside]


def _tally(caption: IntArray, ngram: IntArray) -> NgramCounts:
    keys, count = np.unique(pair(caption, ngram), return_counts=True)
    return NgramCounts(keys >> _SHIFT, low(keys), count.astype(np.int64))
