"""CIDEr as pycocoevalcap computes it: the paper's CIDEr-D (clipped, with a penalty on length), times ten.

R. Vedantam et al. CIDEr: Consensus-based Image Description Evaluation. CVPR 2015.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from argus_edge.evaluate.metrics.idf import DocumentFrequencies
from argus_edge.evaluate.metrics.ngrams import ORDERS, NgramCounts, NgramIndex, find, pair

__all__ = ["CiderReferences"]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

SIGMA = 6.0
"""Of the Gaussian penalty on a difference in length."""

SCALE = 10.0


class CiderReferences:
    """The tf-idf vectors of all references.

    Parameters
    ----------
    index
        N-grams of the references and of the document frequencies.
    counts
        The references' n-grams, one table for each order.
    image_of_reference
        Shape (references,): index of each reference's image; an image's references lie together.
    frequencies
        Document frequencies.
    """

    def __init__(
        self,
        index: NgramIndex,
        counts: Sequence[NgramCounts],
        image_of_reference: IntArray,
        frequencies: DocumentFrequencies,
    ) -> None:
        self._log_images = float(np.log(float(frequencies.images)))
        self._idf = _weights(index, frequencies, self._log_images)
        self._references = len(image_of_reference)
        self._per_image = np.bincount(image_of_reference)
        self._first = np.concatenate([[0], np.cumsum(self._per_image)])
        self._image = image_of_reference
        self._keys = [table.key for table in counts]
        self._values = [table.count * idf[table.ngram] for table, idf in zip(counts, self._idf, strict=True)]
        self._norms = [
            _norms(table.caption, values, self._references) for table, values in zip(counts, self._values, strict=True)
        ]
        self._lengths = _bigrams(counts, self._references)

    def score(self, counts: Sequence[NgramCounts], images: int) -> FloatArray:
        """Return CIDEr of one caption an image, shape (images,), from the captions' n-gram tables."""
        lengths = _bigrams(counts, images)
        difference = lengths[self._image] - self._lengths
        penalty = np.exp(-(difference**2) / (2 * SIGMA**2))
        total = np.zeros(self._references)
        for own, idf, keys, theirs, norms in zip(counts, self._idf, self._keys, self._values, self._norms, strict=True):
            weights = np.full(max(len(idf), int(own.ngram.max(initial=-1)) + 1), self._log_images)
            weights[: len(idf)] = idf
            values = own.count * weights[own.ngram]
            # Every n-gram of a caption meets every reference of its image.
            meets = self._per_image[own.caption]
            row = np.repeat(np.arange(len(values)), meets)
            reference = np.arange(len(row)) - np.repeat(np.cumsum(meets) - meets - self._first[own.caption], meets)
            place, present = find(keys, pair(reference, own.ngram[row]))
            shared = theirs[place[present]]
            products = np.minimum(values[row[present]], shared) * shared
            dots = _sums(reference[present], products, self._references)
            scale = _norms(own.caption, values, images)[self._image] * norms
            total += np.divide(dots, scale, out=dots, where=scale != 0)
        return np.asarray(SCALE * _sums(self._image, total * penalty, images) / ORDERS / self._per_image)


def _weights(index: NgramIndex, frequencies: DocumentFrequencies, log_images: float) -> list[FloatArray]:
    """Return log(images / document frequency) of every n-gram of the index, one array for each order."""
    weights = [np.full(index.size(order), log_images) for order in range(1, ORDERS + 1)]
    ngrams = [ngram.split(" ") for ngram in frequencies.counts]
    found = np.fromiter(frequencies.counts.values(), np.float64, len(ngrams))
    orders = np.array([len(tokens) for tokens in ngrams], np.int64)
    for order, table in enumerate(index.count(ngrams), start=1):
        # Of a listed n-gram, read as a caption, the n-gram of its own length is itself.
        whole = orders[table.caption] == order
        weights[order - 1][table.ngram[whole]] = log_images - np.log(found[table.caption[whole]])
    return weights


def _norms(caption: IntArray, values: FloatArray, captions: int) -> FloatArray:
    return np.asarray(np.sqrt(_sums(caption, values**2, captions)))


def _bigrams(counts: Sequence[NgramCounts], captions: int) -> FloatArray:
    """Return the length that the penalty compares, which in pycocoevalcap is the number of bigrams."""
    return _sums(counts[1].caption, counts[1].count, captions)


def _sums(group: IntArray, values: IntArray | FloatArray, groups: int) -> FloatArray:
    # Of nothing, bincount gives integers, whatever the weights.
    return np.bincount(group, values, minlength=groups).astype(np.float64)
