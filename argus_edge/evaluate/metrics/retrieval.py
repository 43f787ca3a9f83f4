"""Image-text retrieval: ranks both ways, any of an image's texts counts, ties count against the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from argus_edge.errors import InputError

__all__ = ["RetrievalScores", "retrieval_from_embeddings", "retrieval_from_scores"]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]

COSINE_ROUNDING = 1e-6
"""Cosines in float32 that differ by less are a tie: their order is the matrix product's rounding (8 units in the last
place of 1), and would change with the library, the block size and the batch that a vector was computed in."""

BLOCK_BYTES = 1 << 25
"""Of scores held at a time."""

MAX_BLOCK_ROWS = 255
"""So that a column's count fits one byte, which is what makes counting as fast as reading."""


@dataclass(frozen=True)
class RetrievalScores:
    """Ranks of every query, from 1.

    Attributes
    ----------
    image_to_text
        Shape (images,): rank of the best of the image's own texts; 0 for an image that has none.
    text_to_image
        Shape (texts,): rank of the text's own image.
    image_of_text
        Shape (texts,): index of each text's image.
    """

    image_to_text: IntArray
    text_to_image: IntArray
    image_of_text: IntArray

    def recall(self, direction: str, k: int) -> float:
        """Return R@k, the share of queries whose rank is at most ``k``; 0 without a query.

        ``direction`` is ``"i2t"`` (an image asks for its texts) or ``"t2i"``.
        """
        ranks = self._ranks(direction)
        return float((ranks <= k).mean()) if ranks.size else 0.0

    def median_rank(self, direction: str) -> float:
        """Return the median rank of the queries; not a number without a query."""
        ranks = self._ranks(direction)
        return float(np.median(ranks)) if ranks.size else float("nan")

    def median_rank_interval(self, direction: str) -> tuple[float, float]:
        """Return the 95 % interval of the median rank, by order statistics; not a number without a query.

        As many queries as images ask count as independent: an image's texts are easy or hard together.
        """
        ranks = np.sort(self._ranks(direction))
        if not ranks.size:
            return float("nan"), float("nan")
        images = ranks.size if direction == "i2t" else len(np.unique(self.image_of_text))
        reach = 0.5 * 1.959964 / np.sqrt(images)
        low = ranks[max(0, int(np.floor((0.5 - reach) * ranks.size)) - 1)]
        high = ranks[min(ranks.size - 1, int(np.ceil((0.5 + reach) * ranks.size)))]
        return float(low), float(high)

    def _ranks(self, direction: str) -> IntArray:
        if direction == "i2t":
            return self.image_to_text[self.image_to_text > 0]
        if direction == "t2i":
            return self.text_to_image
        raise ValueError(f"direction must be 'i2t' or 't2i', not {direction!r}")

    def metrics(self) -> dict[str, float]:
        """Return R@1, R@5, R@10 and the median rank both ways, by name."""
        figures: dict[str, float] = {}
        for direction in ("i2t", "t2i"):
            figures |= {f"r{k}_{direction}": self.recall(direction, k) for k in (1, 5, 10)}
            figures[f"medr_{direction}"] = self.median_rank(direction)
        return figures

    @property
    def headline(self) -> float:
        """The mean of R@1 both ways."""
        return (self.recall("i2t", 1) + self.recall("t2i", 1)) / 2

    def statistics(self, k: int = 1) -> dict[str, IntArray]:
        """Return hits at rank ``k`` and queries of each image both ways; four columns of shape (images,)."""
        images = len(self.image_to_text)
        asked = self.image_to_text > 0
        hits = np.bincount(self.image_of_text[self.text_to_image <= k], minlength=images)
        return {
            "i2t_hits": (asked & (self.image_to_text <= k)).astype(np.int64),
            "i2t_queries": asked.astype(np.int64),
            "t2i_hits": hits.astype(np.int64),
            "t2i_queries": np.bincount(self.image_of_text, minlength=images).astype(np.int64),
        }


def retrieval_from_embeddings(
    images: npt.ArrayLike, texts: npt.ArrayLike, image_of_text: npt.ArrayLike
) -> RetrievalScores:
    """Rank by the cosine of embeddings, a block of images at a time.

    Parameters
    ----------
    images
        Shape (images, dimension). Need not have unit length; a zero vector ties with everything.
    texts
        Shape (texts, dimension).
    image_of_text
        Shape (texts,): index of the image that each text belongs to.

    Returns
    -------
    RetrievalScores
        A wrong candidate whose cosine is within :data:`COSINE_ROUNDING` of the right one's, or not a number, is ranked
        before it. A right candidate whose score is not a number is ranked last.

    Raises
    ------
    InputError
        The shapes do not go together, or an index is out of range.
    """
    image_vectors, text_vectors = _unit_rows(images, "image"), _unit_rows(texts, "text")
    if image_vectors.shape[1] != text_vectors.shape[1]:
        raise InputError(
            f"Image embeddings have {image_vectors.shape[1]} dimensions, text embeddings {text_vectors.shape[1]}."
        )
    owners = _owners(image_of_text, len(image_vectors), len(text_vectors))
    own = np.empty(len(text_vectors), np.float32)
    for start in range(0, len(own), 4096):
        part = slice(start, start + 4096)
        own[part] = np.einsum("td,td->t", image_vectors[owners[part]], text_vectors[part])

    def block(rows: slice, out: FloatArray) -> None:
        np.matmul(image_vectors[rows], text_vectors.T, out=out)

    return _rank(len(image_vectors), own, owners, block, COSINE_ROUNDING)


def retrieval_from_scores(scores: npt.ArrayLike, image_of_text: npt.ArrayLike) -> RetrievalScores:
    """Rank by given scores of pairs (image-text matching, the probability of "yes"); higher is better.

    Parameters
    ----------
    scores
        Shape (images, texts).
    image_of_text
        Shape (texts,): index of the image that each text belongs to.

    Returns
    -------
    RetrievalScores
        Equal scores are ties, and a tie counts against the model; so does a score that is not a number.

    Raises
    ------
    InputError
        The shapes do not go together, or an index is out of range.
    """
    matrix = np.asarray(scores)
    if matrix.ndim != 2:
        raise InputError(f"Scores must have the shape (images, texts), not {matrix.shape}.")
    owners = _owners(image_of_text, *matrix.shape)
    own = matrix[owners, np.arange(matrix.shape[1])]

    def block(rows: slice, out: npt.NDArray[np.floating]) -> None:
        out[...] = matrix[rows]

    return _rank(matrix.shape[0], own, owners, block, 0.0)


def _unit_rows(vectors: npt.ArrayLike, what: str) -> FloatArray:
    rows = np.asarray(vectors, np.float32)
    if rows.ndim != 2:
        raise InputError(f"The {what} embeddings must have the shape (rows, dimension), not {rows.shape}.")
    # In float64, so that vectors of a large norm do not overflow; a zero vector stays zero.
    norms = np.sqrt(np.einsum("rd,rd->r", rows, rows, dtype=np.float64))
    norms[norms == 0] = 1.0
    with np.errstate(invalid="ignore", over="ignore"):
        return np.ascontiguousarray(rows / norms[:, None].astype(np.float32))


def _owners(image_of_text: npt.ArrayLike, images: int, texts: int) -> IntArray:
    owners = np.asarray(image_of_text, np.int64)
    if owners.shape != (texts,):
        raise InputError(f"image_of_text has the shape {owners.shape}; there are {texts} texts.")
    if texts and not (owners.min() >= 0 and owners.max() < images):
        raise InputError(f"image_of_text holds an index outside 0 … {images - 1}.")
    return owners


def _rank(
    images: int,
    own: npt.NDArray[np.floating],
    owners: IntArray,
    block: Callable[[slice, npt.NDArray[np.floating]], None],
    tolerance: float,
) -> RetrievalScores:
    """Count, for each query, the wrong candidates that are not clearly below the right one."""
    texts = len(owners)
    per_image = np.bincount(owners, minlength=images)
    best = np.full(images, np.nan, own.dtype)
    np.fmax.at(best, owners, own)
    best_threshold, own_threshold = best - own.dtype.type(tolerance), own - own.dtype.type(tolerance)
    by_image = np.argsort(owners, kind="stable")
    first_text = np.concatenate([[0], np.cumsum(per_image)])

    below_best = np.zeros(images, np.int64)
    below_own = np.zeros(texts, np.int64)
    for rows, scores, below in _blocks(images, texts, own.dtype):
        block(rows, scores)
        mine = by_image[first_text[rows.start] : first_text[rows.stop]]
        # The right pairs are compared with nothing: they count as below, and are taken off again at the end.
        scores[owners[mine] - rows.start, mine] = -np.inf
        # "not below" rather than "at least", so that a score that is not a number counts against the model.
        np.less(scores, best_threshold[rows, None], out=below)
        below_best[rows] = [np.count_nonzero(row) for row in below]
        np.less(scores, own_threshold, out=below)
        below_own += np.add.reduce(below.view(np.uint8), axis=0, dtype=np.uint8)

    # A right score of -inf or NaN is below nothing, itself included: hence the minimum.
    wrong_texts, wrong_images = texts - per_image, images - 1
    image_to_text = 1 + np.minimum(texts - below_best, wrong_texts)
    text_to_image = 1 + np.minimum(images - below_own, wrong_images)
    return RetrievalScores(np.where(per_image > 0, image_to_text, 0), text_to_image, owners)


def _blocks(
    images: int, texts: int, dtype: np.dtype[np.floating]
) -> Iterator[tuple[slice, npt.NDArray[np.floating], npt.NDArray[np.bool_]]]:
    """Yield rows with room for their scores and comparisons, the same memory each time."""
    height = int(np.clip(BLOCK_BYTES // max(1, texts * dtype.itemsize), 1, MAX_BLOCK_ROWS))
    scores, below = np.empty((height, texts), dtype), np.empty((height, texts), np.bool_)
    for start in range(0, images, height):
        rows = slice(start, min(images, start + height))
        yield rows, scores[: rows.stop - start], below[: rows.stop - start]
