"""Noise: gaussian, shot, impulse and speckle, with ImageNet-C's strengths."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from argus_edge.evaluate.perturb.pixels import to_uint8

__all__ = ["gaussian_noise", "impulse_noise", "shot_noise", "speckle_noise"]

Image = npt.NDArray[np.uint8]


def gaussian_noise(image: Image, severity: int, rng: np.random.Generator) -> Image:
    """Add normal noise of one standard deviation, as from a sensor in low light."""
    scale = (0.08, 0.12, 0.18, 0.26, 0.38)[severity - 1]
    noise = rng.standard_normal(image.shape, np.float32)
    noise *= np.float32(255 * scale)
    noise += image
    return to_uint8(noise)


def shot_noise(image: Image, severity: int, rng: np.random.Generator) -> Image:
    """Draw each value from a Poisson distribution, as where few photons are counted."""
    photons = (60, 25, 12, 5, 3)[severity - 1]
    counts = rng.poisson(image * (photons / 255))
    return to_uint8(counts.astype(np.float32) * np.float32(255 / photons))


def impulse_noise(image: Image, severity: int, rng: np.random.Generator) -> Image:
    """Set a share of the values to black or white, as bit errors do."""
    share = (0.03, 0.06, 0.09, 0.17, 0.27)[severity - 1]
    draw = rng.random(image.shape, np.float32)
    result = image.copy()
    result[draw < share] = 255
    result[draw < share / 2] = 0
    return result


def speckle_noise(image: Image, severity: int, rng: np.random.Generator) -> Image:
    """Add normal noise in proportion to the brightness."""
    scale = (0.15, 0.2, 0.35, 0.45, 0.6)[severity - 1]
    noise = rng.standard_normal(image.shape, np.float32)
    noise *= np.float32(scale)
    noise += 1
    noise *= image
    return to_uint8(noise)
