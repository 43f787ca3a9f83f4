"""Blur: defocus, motion, zoom, glass and Gaussian, with ImageNet-C's strengths."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from argus_edge.evaluate.perturb.pixels import convolve, directional_blur, gaussian, resample_axis, to_uint8

__all__ = ["defocus_blur", "gaussian_blur", "glass_blur", "motion_blur", "zoom_blur"]

Image = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]


def gaussian_blur(image: Image, severity: int, rng: np.random.Generator) -> Image:
    """Blur with a Gaussian."""
    sigma = (1, 2, 3, 4, 6)[severity - 1]
    return to_uint8(gaussian(image.astype(np.float32), sigma))


def defocus_blur(image: Image, severity: int, rng: np.random.Generator) -> Image:
    """Blur with a disk, as a lens out of focus does."""
    radius, softness = ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5))[severity - 1]
    return to_uint8(convolve(image.astype(np.float32), _disk(radius, softness)))


def _disk(radius: int, softness: float) -> Floats:
    """Return a disk whose edge is softened by a small Gaussian, its sum 1."""
    reach, taps = (8, 1) if radius <= 8 else (radius, 2)
    span = np.arange(-reach, reach + 1)
    disk = (span[:, None] ** 2 + span**2 <= radius**2).astype(np.float32)
    weights = np.exp(-(np.arange(-taps, taps + 1) ** 2) / (2 * softness**2))
    for axis in (0, 1):
        disk = ndimage.correlate1d(disk, weights / weights.sum(), axis=axis, mode="mirror")
    return np.asarray(disk / disk.sum(), np.float32)


def motion_blur(image: Image, severity: int, rng: np.random.Generator) -> Image:
    """Smear along a line within 45 degrees of the horizontal, as a moving camera does."""
    radius, sigma = ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15))[severity - 1]
    return to_uint8(directional_blur(image.astype(np.float32), radius, sigma, rng.uniform(-45, 45)))


def zoom_blur(image: Image, severity: int, rng: np.random.Generator) -> Image:
    """Average the image with enlargements of its centre, as a camera that moves towards it does."""
    end, step = ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03))[severity - 1]
    factors = np.arange(1, end, step)
    pixels = image.astype(np.float32)
    total = pixels.copy()
    for factor in factors:
        total += _enlarge(pixels, factor)
    total /= len(factors) + 1
    return to_uint8(total)


def _enlarge(pixels: Floats, factor: float) -> Floats:
    """Return the centre enlarged to the whole frame, corner pixels falling on corner pixels."""
    for axis in (0, 1):
        size = pixels.shape[axis]
        part = int(np.ceil(size / factor))
        first = (size - part) // 2
        scaled = max(size, round(part * factor))
        positions = first + np.arange(size) * ((part - 1) / max(1, scaled - 1))
        pixels = resample_axis(pixels, axis, positions)
    return pixels


def glass_blur(image: Image, severity: int, rng: np.random.Generator) -> Image:
    """Let every pixel take the place of a random neighbour, between two slight blurs, as frosted glass does."""
    sigma, reach, rounds = ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2))[severity - 1]
    pixels = to_uint8(gaussian(image.astype(np.float32), sigma)).reshape(-1, 3)
    height, width = image.shape[:2]
    for _ in range(rounds):
        pixels = pixels[_scatter(height, width, reach, rng)]
    return to_uint8(gaussian(pixels.reshape(image.shape).astype(np.float32), sigma))


def _scatter(height: int, width: int, reach: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return, for each pixel, the pixel whose value it ends with, flat indices of shape (height * width,).

    ImageNet-C goes through the pixels from the last to the first, and each takes the value that a random neighbour has
    by then. So a pixel whose neighbour came before it ends with what that neighbour ended with, and so on along a
    chain; the chains are followed for all pixels at once, in doubling steps.
    """
    source = np.arange(height * width)
    rows = np.arange(reach + 1, height - reach + 1)
    columns = np.arange(reach + 1, width - reach + 1)
    if not (rows.size and columns.size):
        return source
    here = (rows[:, None] * width + columns).ravel()
    steps = rng.integers(-reach, reach, size=(2, here.size))
    there = here + steps[0] * width + steps[1]
    source[here] = there
    visited = np.zeros(height * width, np.bool_)
    visited[here] = True
    # Values that were final when they were taken: the chain goes on through these.
    chained = here[(there > here) & visited[there]]
    following = np.zeros(height * width, np.bool_)
    following[chained] = True
    while chained.size:
        nexts = source[chained]
        source[chained] = source[nexts]
        following[chained] = following[nexts]
        chained = chained[following[chained]]
    return source
