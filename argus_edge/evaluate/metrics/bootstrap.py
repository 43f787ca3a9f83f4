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


def image_weights(images: int, replicates: int = REPLICATES, seed: int = 0) -> FloatArray:
    """Return how often each image is drawn in each replicate: multinomial, as many draws as images.

    Parameters
    ----------
    images
        Number of images n.
    replicates
        Number of replicates B.
    seed
        The same seed and number of images give the same draws, so that conditions are compared on equal ones.

    Returns
    -------
    numpy.ndarray
        Shape (B, n).
    """
    if not images:
        return np.zeros((replicates, 0))
    drawn = np.random.default_rng([seed, images]).multinomial(images, np.full(images, 1.0 / images), size=replicates)
    return drawn.astype(np.float64)


def interval_of_ratio(
    hits: npt.ArrayLike, queries: npt.ArrayLike, weights: FloatArray, level: float = 0.95
) -> tuple[float, float]:
    """Return the interval of ``sum(hits) / sum(queries)``: recall, accuracy.

    Parameters
    ----------
    hits, queries
        Shape (images,).
    weights
        Shape (replicates, images) from :func:`image_weights`.
    level
        Confidence.
    """
    sums = weights @ np.stack([hits, queries], axis=1).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return _percentile(sums[:, 0] / sums[:, 1], level)


def interval_of_mean(values: npt.ArrayLike, weights: FloatArray, level: float = 0.95) -> tuple[float, float]:
    """Return the interval of the mean of one value an image (CIDEr, ROUGE-L); see :func:`interval_of_ratio`."""
    column = np.asarray(values, np.float64)
    return interval_of_ratio(column, np.ones_like(column), weights, level)


def interval_of_bleu(bleu: npt.ArrayLike, weights: FloatArray, n: int = 4, level: float = 0.95) -> tuple[float, float]:
    """Return the interval of corpus BLEU-``n`` from the ten integers of each image, shape (images, 10)."""
    return _percentile(bleu_from_sums(weights @ np.asarray(bleu, np.float64))[:, n - 1], level)


def _percentile(replicates: FloatArray, level: float) -> tuple[float, float]:
    """Return the middle ``level`` of the replicates; (nan, nan) where fewer than half of them are numbers."""
    present = replicates[~np.isnan(replicates)]
    if not present.size or 2 * present.size < replicates.size:
        return float("nan"), float("nan")
    low, high = np.quantile(present, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
