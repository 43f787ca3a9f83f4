"""Spatter: drops of water or splashes of mud on the lens, with ImageNet-C's strengths."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from argus_edge.evaluate.perturb.pixels import gaussian, to_uint8

__all__ = ["spatter"]

Image = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]

_WATER = np.array([175, 238, 238], np.float32)
_MUD = np.array([63, 42, 20], np.float32)


def spatter(image: Image, severity: int, rng: np.random.Generator) -> Image:
    """Cover parts of the image: water at severities 1 to 3, mud at 4 and 5."""
    mean, spread, sigma, floor, strength, mud = (
        (0.65, 0.3, 4, 0.69, 0.6, False),
        (0.65, 0.3, 3, 0.68, 0.6, False),
        (0.65, 0.3, 2, 0.68, 0.5, False),
        (0.65, 0.3, 1, 0.65, 1.5, True),
        (0.67, 0.4, 1, 0.65, 1.5, True),
    )[severity - 1]
    noise = rng.standard_normal(image.shape[:2], np.float32) * np.float32(spread) + np.float32(mean)
    liquid = gaussian(noise, sigma)
    liquid[liquid < floor] = 0
    pixels = image.astype(np.float32)
    if mud:
        cover = gaussian((liquid > floor).astype(np.float32), strength)
        cover[cover < 0.8] = 0
        return to_uint8(pixels * (1 - cover[..., None]) + cover[..., None] * _MUD)
    depth = _relief(liquid)
    return to_uint8(pixels + np.minimum(strength * depth[..., None] * _WATER, 255))


def _relief(liquid: Floats) -> Floats:
    """Return how much light each point of the drops adds, 0 … 1: embossed by the distance to the drop's outline."""
    levels = (liquid * 255).astype(np.uint8).astype(np.float32)
    outline = _outline(levels)
    if not outline.any():
        return levels / max(1.0, float(levels.max()))
    distance = np.minimum(ndimage.distance_transform_edt(~outline), 20).astype(np.float32)
    smooth = ndimage.uniform_filter(distance, 3, mode="mirror").astype(np.uint8)
    emboss = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], np.float32)
    lit = ndimage.correlate(_equalize(smooth).astype(np.float32), emboss, mode="mirror")
    light = levels * np.rint(ndimage.uniform_filter(np.clip(lit, 0, 255), 3, mode="mirror"))
    return np.asarray(light / max(1.0, float(light.max())), np.float32)


def _outline(levels: Floats) -> npt.NDArray[np.bool_]:
    """Return the ridge of the Sobel gradient around each drop (J. Canny, PAMI 1986; one threshold, drops are sharp)."""
    along, down = (ndimage.sobel(levels, axis, mode="nearest") for axis in (1, 0))
    strength = np.pad(np.abs(along) + np.abs(down), 1)
    inner = strength[1:-1, 1:-1]
    height, width = levels.shape

    def beside(dy: int, dx: int) -> Floats:
        return strength[1 + dy : 1 + dy + height, 1 + dx : 1 + dx + width]

    flat = np.abs(down) < np.tan(np.pi / 8) * np.abs(along)
    steep = np.abs(down) > np.tan(3 * np.pi / 8) * np.abs(along)
    rising = along * down < 0
    ridge = np.select(
        [flat, steep, rising],
        [
            (inner > beside(0, -1)) & (inner >= beside(0, 1)),
            (inner > beside(-1, 0)) & (inner >= beside(1, 0)),
            (inner > beside(-1, 1)) & (inner > beside(1, -1)),
        ],
        (inner > beside(-1, -1)) & (inner > beside(1, 1)),
    )
    return np.asarray(ridge & (inner > 150))


def _equalize(levels: Image) -> Image:
    """Return levels spread so that their histogram is as flat as it can be."""
    counts = np.bincount(levels.ravel(), minlength=256)
    cumulative = np.cumsum(counts)
    least = counts[counts > 0][0]
    spread = (cumulative - least) * (255 / max(1, levels.size - least))
    return np.rint(np.clip(spread, 0, 255)).astype(np.uint8)[levels]
