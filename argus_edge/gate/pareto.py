"""The Pareto front: what no other candidate is at least as good as in everything and better in something."""

from __future__ import annotations

from collections.abc import Sequence


def dominates(one: Sequence[float], other: Sequence[float]) -> bool:
    """Return whether ``one`` is as good everywhere and better somewhere; every figure is better when smaller."""
    return all(a <= b for a, b in zip(one, other, strict=True)) and any(a < b for a, b in zip(one, other, strict=True))


def front(points: Sequence[Sequence[float]]) -> list[bool]:
    """Return, for each point, whether no other one dominates it.

    Parameters
    ----------
    points
        Rows of figures, each better when smaller; all of one length.
    """
    return [not any(dominates(other, point) for other in points) for point in points]
