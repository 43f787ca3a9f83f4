"""Caption metrics against references that are prepared once: BLEU-1 to 4, ROUGE-L and CIDEr as in pycocoevalcap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from argus_edge.errors import InputError
from argus_edge.evaluate.metrics.bleu import bleu_from_sums, closest_lengths
from argus_edge.evaluate.metrics.cider import CiderReferences
from argus_edge.evaluate.metrics.idf import DocumentFrequencies
from argus_edge.evaluate.metrics.ngrams import ORDERS, NgramCounts, NgramIndex, find, pair
from argus_edge.evaluate.metrics.rouge import rouge_l
from argus_edge.evaluate.metrics.tokenizer import tokenize, words_of

__all__ = ["CaptionReferences", "CaptionScores"]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CaptionScores:
    """Scores of one caption an image.

    Attributes
    ----------
    bleu
        Shape (images, 10): matches and totals of 1- to 4-grams, hypothesis length, closest reference length.
    rouge
        Shape (images,): ROUGE-L of each caption.
    cider
        Shape (images,): CIDEr of each caption, pycocoevalcap's scale (10 is a perfect match).
    """

    bleu: IntArray
    rouge: FloatArray
    cider: FloatArray

    def metrics(self) -> dict[str, float]:
        """Return the corpus's BLEU-1 to 4, ROUGE-L and CIDEr by name; 0 without an image."""
        bleu = bleu_from_sums(self.bleu.sum(axis=0))
        figures = {f"bleu_{n}": float(bleu[n - 1]) for n in range(1, ORDERS + 1)}
        for name, values in (("rouge_l", self.rouge), ("cider", self.cider)):
            figures[name] = float(values.mean()) if values.size else 0.0
        return figures

    @property
    def headline(self) -> float:
        """The mean of BLEU-4 and CIDEr/1.5, the latter at most 1."""
        figures = self.metrics()
        return (figures["bleu_4"] + min(1.0, figures["cider"] / 1.5)) / 2

    def statistics(self) -> dict[str, IntArray | FloatArray]:
        """Return the columns that a score resamples: ``cider`` (images,) and ``bleu`` (images, 10)."""
        return {"cider": self.cider, "bleu": self.bleu}


class CaptionReferences:
    """The references of a split, tokenised and counted once, to score any number of captions against.

    Parameters
    ----------
    references
        For each image its raw reference captions, one or more.
    frequencies
        Document frequencies for CIDEr; from these very references where not given. For a part of a split give those of
        the whole.

    Raises
    ------
    InputError
        An image without a reference, or too few images for document frequencies of their own.
    """

    def __init__(self, references: Sequence[Sequence[str]], frequencies: DocumentFrequencies | None = None) -> None:
        for row, captions in enumerate(references):
            if not captions:
                raise InputError(f"Image {row} of {len(references)} has no reference caption.")
        self._tokens = [[tokenize(caption) for caption in captions] for captions in references]
        words = [[words_of(tokens) for tokens in captions] for captions in self._tokens]
        self.frequencies = frequencies or DocumentFrequencies.from_words(words)
        flat = [own for captions in words for own in captions]
        image_of_reference = np.repeat(np.arange(len(references)), [len(captions) for captions in references])
        # Frequencies of a larger split hold n-grams of which a candidate may be made and the references not.
        listed = [ngram.split(" ") for ngram in frequencies.counts] if frequencies else []
        index = NgramIndex([*flat, *listed])
        counts = index.count(flat)
        self._index = index
        self._lengths = [np.array([len(own) for own in captions]) for captions in words]
        self._ceilings = [_ceilings(table, image_of_reference) for table in counts]
        self._cider = CiderReferences(index, counts, image_of_reference, self.frequencies)

    def __len__(self) -> int:
        return len(self._tokens)

    def score(self, captions: Sequence[str]) -> CaptionScores:
        """Score one raw caption for each image, in the references' order.

        Raises
        ------
        InputError
            Not one caption an image.
        """
        if len(captions) != len(self):
            raise InputError(f"{len(captions)} captions for {len(self)} images.")
        tokens = [tokenize(caption) for caption in captions]
        words = [words_of(own) for own in tokens]
        counts = self._index.count(words)
        return CaptionScores(
            bleu=self._bleu(words, counts),
            rouge=np.array([rouge_l(own, refs) for own, refs in zip(tokens, self._tokens, strict=True)], np.float64),
            cider=self._cider.score(counts, len(tokens)),
        )

    def _bleu(self, words: Sequence[Sequence[str]], counts: Sequence[NgramCounts]) -> IntArray:
        lengths = np.array([len(own) for own in words], np.int64)
        table = np.zeros((len(words), 10), np.int64)
        for n, (own, (keys, ceiling)) in enumerate(zip(counts, self._ceilings, strict=True)):
            place, present = find(keys, own.key)
            clipped = np.minimum(own.count[present], ceiling[place[present]])
            table[:, n] = np.bincount(own.caption[present], clipped, minlength=len(words))
            table[:, 4 + n] = np.maximum(0, lengths - n)
        table[:, 8] = lengths
        table[:, 9] = closest_lengths(lengths, self._lengths)
        return table


def _ceilings(table: NgramCounts, image_of_reference: IntArray) -> tuple[IntArray, IntArray]:
    """Return the sorted (image, n-gram) keys of the references and the most that one reference holds of each."""
    keys = pair(image_of_reference[table.caption], table.ngram)
    order = np.argsort(keys, kind="stable")
    unique, first = np.unique(keys[order], return_index=True)
    return unique, np.maximum.reduceat(table.count[order], first) if len(first) else np.empty(0, np.int64)
