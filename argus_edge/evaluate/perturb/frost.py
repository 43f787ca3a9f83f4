"""Frost on a pane: ice that this module grows itself, laid over the image with ImageNet-C's weights."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PIL import Image as PillowImage
from PIL import ImageDraw

from argus_edge.evaluate.perturb.pixels import gaussian, to_uint8
from argus_edge.evaluate.perturb.plasma import plasma

__all__ = ["frost", "ice"]

Image = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]

_TINT = np.array([0.88, 0.96, 1.0], np.float32)
_FERNS = 80
"""Ferns on a pane, whatever its size: they grow with it."""

_BRANCHES = 26
_BRANCH_ANGLE = np.pi / 3
"""Ice grows along the three axes of its hexagonal lattice."""


def frost(image: Image, severity: int, rng: np.random.Generator) -> Image:
    """Dim the image and add ice in front of it."""
    kept, added = ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75))[severity - 1]
    height, width = image.shape[:2]
    return to_uint8(np.float32(kept) * image + np.float32(added) * ice(height, width, rng))


def ice(height: int, width: int, rng: np.random.Generator) -> Floats:
    """Return a pane of ice: ferns over a cloudy film, denser towards the borders.

    Returns
    -------
    numpy.ndarray
        Shape (height, width, 3), float32, values 0 … 255.
    """
    film = plasma(1 << (max(height, width) - 1).bit_length(), 1.8, rng)[:height, :width]
    rows, columns = np.linspace(-1, 1, height, dtype=np.float32), np.linspace(-1, 1, width, dtype=np.float32)
    border = np.maximum(np.abs(rows)[:, None], np.abs(columns)) ** 2
    density = np.clip(0.42 + 0.4 * border + 0.9 * (film - 0.5), 0, 1)
    grain = rng.random((height, width), np.float32)
    shade = density * (120 + 60 * film + 35 * grain) + (0.35 + 0.65 * density) * _ferns(height, width, rng)
    return np.minimum(shade, 255)[..., None] * _TINT


def _ferns(height: int, width: int, rng: np.random.Generator) -> Floats:
    """Return stems with branches to both sides, shorter towards the tip, slightly blurred; values 0 … 255."""
    size = float(np.hypot(height, width))
    pane = PillowImage.new("L", (width, height))
    draw = ImageDraw.Draw(pane)
    # Most ferns start at the border, as ice does; the later ones cover the earlier.
    for _ in range(_FERNS):
        start = rng.random(2)
        side = rng.integers(5)
        if side < 4:
            start[side // 2] = side % 2
        start *= (width, height)
        angle = rng.uniform(0, 2 * np.pi)
        length = size * rng.uniform(0.08, 0.3)
        light = int(rng.integers(90, 230))
        along = np.linspace(0.05, 1, _BRANCHES)
        bend = angle + rng.uniform(-0.6, 0.6) * along
        joints = start + length * np.cumsum(np.stack([np.cos(bend), np.sin(bend)], 1), 0) / _BRANCHES
        draw.line([*start, *joints.ravel()], light, max(1, round(size / 400)))
        reach = length * 0.3 * (1 - along) * rng.uniform(0.6, 1.1, _BRANCHES)
        for turn in (-_BRANCH_ANGLE, _BRANCH_ANGLE):
            tips = joints + reach[:, None] * np.stack([np.cos(bend + turn), np.sin(bend + turn)], 1)
            for joint, tip in zip(joints.tolist(), tips.tolist(), strict=True):
                draw.line([*joint, *tip], light * 3 // 4, max(1, round(size / 800)))
    return gaussian(np.asarray(pane, np.float32), 0.7)
