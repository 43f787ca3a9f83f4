"""The rating scale 1..K, and intervals on it: clipping, boundary adjustment, coverage and width."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argus_edge.errors import UsageError

Array = NDArray[Any]

__all__ = ["MAX_LEVELS", "Intervals", "Scale"]

MAX_LEVELS = 100
# An end within this distance of a label is that label: grids and float arithmetic put 3 at 3.0000000000000004.
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Scale:
    """The integer labels 1, 2, …, ``levels``."""

    levels: int

    @classmethod
    def parse(cls, text: str) -> Scale:
        """Read ``"1..5"``, ``"1-5"`` or ``"5"``.

        Raises
        ------
        UsageError
            Not of that form, or not between 2 and 100 levels.
        """
        match = re.fullmatch(r"(?:1\s*(?:\.\.|-|:)\s*)?(\d{1,3})", text.strip())
        if not match or not 2 <= int(match[1]) <= MAX_LEVELS:
            raise UsageError(
                f"{text[:40]!r} is not a rating scale.", next_step=f"write 1..K with K from 2 to {MAX_LEVELS}: 1..5"
            )
        return cls(int(match[1]))

    @property
    def labels(self) -> Array:
        """The labels, shape (K,)."""
        return np.arange(1, self.levels + 1)

    @property
    def span(self) -> int:
        """The widest possible width, K − 1."""
        return self.levels - 1

    def __str__(self) -> str:
        return f"1..{self.levels}"


@dataclass(frozen=True)
class Intervals:
    """Prediction intervals on a scale.

    Attributes
    ----------
    lower, upper
        Raw ends, clipped to the scale, shape (n,).
    unbounded
        Rows for which too little was known: the interval is infinite, shown as the whole scale, shape (n,).
    """

    lower: Array
    upper: Array
    unbounded: Array
    scale: Scale

    @classmethod
    def build(cls, lower: Array, upper: Array, scale: Scale) -> Intervals:
        """Clip raw ends to the scale; infinite or undefined ones mark the row as unbounded."""
        unbounded = ~(np.isfinite(lower) & np.isfinite(upper))
        # Ends that crossed (a negative conformal correction) meet in their middle.
        with np.errstate(invalid="ignore"):
            middle = (lower + upper) / 2
        crossed = ~unbounded & (lower > upper)
        low = np.where(unbounded, 1, np.where(crossed, middle, lower))
        high = np.where(unbounded, scale.levels, np.where(crossed, middle, upper))
        return cls(np.clip(low, 1, scale.levels), np.clip(high, 1, scale.levels), unbounded, scale)

    @property
    def adjusted(self) -> tuple[Array, Array]:
        """Boundary adjustment (Sheng et al. 2025, arXiv 2509.18658), widening: [floor(l), ceil(u)] on the scale."""
        low = np.clip(np.floor(self.lower + TOLERANCE), 1, self.scale.levels)
        high = np.clip(np.ceil(self.upper - TOLERANCE), 1, self.scale.levels)
        return low, high

    @property
    def midpoint(self) -> Array:
        """Middle of the raw interval, a low-bias point score (Sheng et al. 2025), shape (n,)."""
        return (self.lower + self.upper) / 2

    def covers(self, labels: Array, *, adjusted: bool = False) -> Array:
        """Whether each label lies within its interval, shape (n,)."""
        low, high = self.adjusted if adjusted else (self.lower, self.upper)
        return (labels >= low - TOLERANCE) & (labels <= high + TOLERANCE)

    def width(self, *, adjusted: bool = False) -> Array:
        """Upper minus lower, shape (n,)."""
        low, high = self.adjusted if adjusted else (self.lower, self.upper)
        return high - low

    def take(self, rows: Array) -> Intervals:
        """Return the intervals of some rows."""
        return Intervals(self.lower[rows], self.upper[rows], self.unbounded[rows], self.scale)
