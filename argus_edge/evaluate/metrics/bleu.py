"""Corpus BLEU-1 to 4 from ten integers an image, with the constants of pycocoevalcap.

K. Papineni et al. BLEU: a Method for Automatic Evaluation of Machine Translation. ACL 2002. The reference length is the
closest one, the shorter of two that are equally close.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["bleu_from_sums", "closest_lengths"]

# pycocoevalcap's, against a division by zero; part of its figures.
_SMALL = 1e-9
_TINY = 1e-15


def bleu_from_sums(sums: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return BLEU-1 to 4 of sums over images.

    Parameters
    ----------
    sums
        Shape (..., 10): matches of 1- to 4-grams, totals of 1- to 4-grams, hypothesis length, closest reference length.

    Returns
    -------
    numpy.ndarray
        Shape (..., 4).
    """
    values = np.asarray(sums, np.float64)
    matches, totals = values[..., :4], values[..., 4:8]
    hypothesis, reference = values[..., 8:9], values[..., 9:10]
    precision = (matches + _TINY) / (totals + _SMALL)
    geometric = np.cumprod(precision, axis=-1) ** (1.0 / np.arange(1, 5))
    ratio = (hypothesis + _TINY) / (reference + _SMALL)
    with np.errstate(over="ignore"):
        brevity = np.where(ratio < 1, np.exp(1 - 1 / ratio), 1.0)
    return np.asarray(geometric * brevity)


def closest_lengths(
    hypotheses: npt.NDArray[np.int64], references: list[npt.NDArray[np.int64]]
) -> npt.NDArray[np.int64]:
    """Return, for each hypothesis length, the closest of its references' lengths; the shorter of two equally close."""
    closest = [
        min((abs(int(r) - int(h)), int(r)) for r in lengths)[1]
        for h, lengths in zip(hypotheses, references, strict=True)
    ]
    return np.asarray(closest, np.int64)
