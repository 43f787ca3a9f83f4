"""Series whose neighbours resemble each other, with a truth that is known."""

from __future__ import annotations

import math

import numpy as np


def ar1(rng: np.random.Generator, n: int, phi: float) -> np.ndarray:
    """Return a stationary series of variance 1, shape (n,)."""
    noise = rng.standard_normal(n) * math.sqrt(1 - phi * phi)
    noise[0] = rng.standard_normal()
    series = np.empty(n)
    value = 0.0
    for i, shock in enumerate(noise):
        value = phi * value + shock
        series[i] = value
    return series
