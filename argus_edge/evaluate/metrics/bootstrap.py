"""Bootstrap intervals of a metric: a replicate is a row of image weights times per-image columns, then one ratio.

Percentile intervals (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13) over resampled images;
questions go with their image, a retrieval gallery and CIDEr's document frequencies stay fixed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from argus_edge.evaluate.metrics.bleu import bleu_from_sums
from argus_edge.score.intervals import percentile
from argus_edge.score.resampling import image_weights

__all__ = ["REPLICATES", "image_weights", "interval_of_bleu", "interval_of_mean", "interval_of_ratio"]

FloatArray = npt.NDArray[np.float64]

REPLICATES = 1000


def interval_of_ratio(
    hits: npt.ArrayLike, queries: npt.ArrayLike, weights: FloatArray, level: float = 0.95
) -> tuple[float, float]:
    """Return the interval of ``sum(hits) / sum(queries)``: recall, accuracy.

    Parameters
    ----------
    hits, queries
        Shape (images,).
    weights
        Shape (1 + replicates, images) from :func:`image_weights`; its first row, of ones, is left out.
    level
        Confidence.
    """
    sums = weights[1:] @ np.stack([hits, queries], axis=1).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return percentile(sums[:, 0] / sums[:, 1], level)


def interval_of_mean(values: npt.ArrayLike, weights: FloatArray, level: float = 0.95) -> tuple[float, float]:
    """Return the interval of the mean of one value an image (CIDEr, ROUGE-L); see :func:`interval_of_ratio`."""
    column = np.asarray(values, np.float64)
    return interval_of_ratio(column, np.ones_like(column), weights, level)


def interval_of_bleu(bleu: npt.ArrayLike, weights: FloatArray, n: int = 4, level: float = 0.95) -> tuple[float, float]:
    """Return the interval of corpus BLEU-``n`` from the ten integers of each image, shape (images, 10)."""
    return percentile(bleu_from_sums(weights[1:] @ np.asarray(bleu, np.float64))[:, n - 1], level)
