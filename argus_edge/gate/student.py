"""Student's t distribution without scipy, which the base install does not bring."""

from __future__ import annotations

import functools
import math

_ITERATIONS = 300
_TINY = 1e-300


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b).

    By Lentz's continued fraction (NIST Digital Library of Mathematical Functions, 8.17.22), on the side where it
    converges fast.
    """
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1)
    d = 1.0 / (d if abs(d) > _TINY else _TINY)
    fraction = d
    for m in range(1, _ITERATIONS):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 + numerator * d
            d = 1.0 / (d if abs(d) > _TINY else _TINY)
            c = 1.0 + numerator / c
            c = c if abs(c) > _TINY else _TINY
            fraction *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return front * fraction / a


def cdf(t: float, df: float) -> float:
    """Return P(T <= t) for Student's t with ``df`` degrees of freedom."""
    tail = 0.5 * _incomplete_beta(df / 2, 0.5, df / (df + t * t))
    return 1.0 - tail if t > 0 else tail


@functools.lru_cache(maxsize=4096)
def quantile(level: float, df: float) -> float:
    """Return t with P(T <= t) = ``level``, for ``level`` in (0.5, 1), by bisection to 1e-12."""
    low, high = 0.0, 1.0
    while cdf(high, df) < level:
        high *= 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if cdf(middle, df) < level:
            low = middle
        else:
            high = middle
    return (low + high) / 2
