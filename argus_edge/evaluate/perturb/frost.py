"""Frost on a pane: ice that this module grows itself, laid over the image with ImageNet-C's weights."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from argus_edge.evaluate.perturb.pixels import to_uint8
from argus_edge.evaluate.perturb.plasma import plasma

__all__ = ["frost", "ice"]

Image = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]


def frost(image: Image, severity: int, rng: np.random.Generator) -> Image:
    """Dim the image and add ice in front of it."""
    kept, added = ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75))[severity - 1]
    height, width = image.shape[:2]
    return to_uint8(np.float32(kept) * image + np.float32(added) * ice(height, width, rng))


def ice(height: int, width: int, rng: np.random.Generator) -> Floats:
    """Return a pane of ice, shape (height, width, 3), values 0 … 255."""
    size = 1 << (max(height, width, 2) - 1).bit_length()
    field = plasma(size, 1.6, rng)[:height, :width]
    ridges = 1 - np.abs(2 * field - 1)
    shade = 255 * ridges**3
    return shade[..., None] * np.array([0.85, 0.95, 1.0], np.float32)
