"""Weather: snow and fog, with ImageNet-C's strengths."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from argus_edge.evaluate.perturb.pixels import directional_blur, luma, resample_axis, to_uint8
from argus_edge.evaluate.perturb.plasma import plasma

__all__ = ["fog", "snow"]

Image = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]


def fog(image: Image, severity: int, rng: np.random.Generator) -> Image:
    """Add a cloudy veil and bring the whole back to the image's own range."""
    density, decay = ((1.5, 2), (2.0, 2), (2.5, 1.7), (2.5, 1.5), (3.0, 1.4))[severity - 1]
    height, width = image.shape[:2]
    veil = plasma(1 << (max(height, width) - 1).bit_length(), decay, rng)[:height, :width, None]
    brightest = float(image.max()) / 255
    veiled = image + veil * np.float32(255 * density)
    return to_uint8(veiled * np.float32(brightest / (brightest + density)))


def snow(image: Image, severity: int, rng: np.random.Generator) -> Image:
    """Whiten the scene and let two layers of streaked flakes fall over it."""
    mean, spread, zoom, floor, radius, sigma, kept = (
        (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
        (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
        (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
        (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
        (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
    )[severity - 1]
    height, width = image.shape[:2]
    angle = rng.uniform(-135, -45)
    flakes = _flakes(height, width, mean, spread, zoom, rng)
    flakes[flakes < floor] = 0
    flakes = np.round(directional_blur(np.clip(flakes, 0, 1), radius, sigma, angle) * 255)
    pixels = image.astype(np.float32)
    white = luma(pixels)[..., None] * np.float32(1.5) + np.float32(127.5)
    scene = kept * pixels + (1 - kept) * np.maximum(pixels, white)
    scene += (flakes + flakes[::-1, ::-1])[..., None]
    return to_uint8(scene)


def _flakes(height: int, width: int, mean: float, spread: float, zoom: float, rng: np.random.Generator) -> Floats:
    """Return normal noise enlarged ``zoom`` times, linearly interpolated, shape (height, width)."""
    grid = [int(np.ceil(size / zoom)) for size in (height, width)]
    values = rng.standard_normal(grid, np.float32) * np.float32(spread) + np.float32(mean)
    for axis, (size, part) in enumerate(zip((height, width), grid, strict=True)):
        scaled = max(size, round(part * zoom))
        values = resample_axis(values, axis, np.arange(size) * ((part - 1) / max(1, scaled - 1)))
    return values
