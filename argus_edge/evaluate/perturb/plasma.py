"""A cloudy height map by midpoint displacement.

A. Fournier, D. Fussell and L. Carpenter. Computer rendering of stochastic models. CACM 25(6), 1982.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["plasma"]

Floats = npt.NDArray[np.float32]


def plasma(size: int, decay: float, rng: np.random.Generator) -> Floats:
    """Return a map that wraps around, scaled to 0 … 1.

    Parameters
    ----------
    size
        Side length, a power of two.
    decay
        The random displacement is divided by the square of this at each halving; larger is smoother.
    rng
        Source of the displacements.

    Returns
    -------
    numpy.ndarray
        Shape (size, size), float32.
    """
    # Level by level from one point: the map of twice the resolution keeps the points there are, gives each square of
    # four a centre, and then each diamond of two points and two centres another.
    points = np.zeros((1, 1), np.float32)
    amplitude = 100.0
    while len(points) < size:
        side = len(points)
        finer = np.empty((2 * side, 2 * side), np.float32)
        noise = rng.random((3, side, side), np.float32)
        noise *= np.float32(2 * amplitude**2)
        noise -= np.float32(amplitude**2)
        beside = points + np.roll(points, -1, 1)
        centres = (beside + np.roll(beside, -1, 0)) / 4 + noise[0]
        finer[0::2, 0::2] = points
        finer[1::2, 1::2] = centres
        finer[0::2, 1::2] = (beside + centres + np.roll(centres, 1, 0)) / 4 + noise[1]
        finer[1::2, 0::2] = (points + np.roll(points, -1, 0) + centres + np.roll(centres, 1, 1)) / 4 + noise[2]
        points = finer
        amplitude /= decay
    points -= points.min()
    return points / max(float(points.max()), 1e-12)
