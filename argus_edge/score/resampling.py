"""Which images a bootstrap replicate draws: the same for all models and perturbations."""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def image_weights(dataset: str, images: int, replicates: int, seed: int) -> Array:
    """Return the resampling of a dataset's images, the same for all models and perturbations.

    Parameters
    ----------
    dataset
        Its name enters the seed, so that datasets are resampled independently.
    images
        Number of images n.
    replicates
        Number of replicates B.
    seed
        Of the whole score.

    Returns
    -------
    Array
        Shape (1 + B, n): a row of ones, then how often each image was drawn (multinomial, n draws).
    """
    rng = np.random.default_rng([seed, zlib.crc32(dataset.encode())])
    share = np.full(images, 1.0 / images)
    weights = np.ones((1 + replicates, images))
    for row in weights[1:]:  # one at a time: a second array of a hundred thousand images would be another gigabyte
        row[:] = rng.multinomial(images, share)
    return weights
