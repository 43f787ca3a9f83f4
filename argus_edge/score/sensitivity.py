"""How much the ranking depends on the weights: shares of the weight simplex, and where first place flips."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

DRAWS = 100_000
"""Monte Carlo draws over the simplex: a share's standard error is at most .0016."""


def first_shares(parts: Array, *, draws: int = DRAWS, seed: int = 0) -> Array:
    """Return the share of all weightings under which each model comes first.

    Parameters
    ----------
    parts
        Shape (models, 4): P, CDC, min(1, RR), E.
    draws
        Weightings drawn uniformly on the simplex (Dirichlet with all parameters 1).
    seed
        Of the draws.

    Returns
    -------
    Array
        Shape (models,), sums to 1; a tie for first is shared.
    """
    rng = np.random.default_rng(seed)
    totals = rng.dirichlet(np.ones(parts.shape[1]), draws) @ parts.T
    best = np.isclose(totals, totals.max(axis=1, keepdims=True), rtol=0, atol=1e-12)
    return np.asarray((best / best.sum(axis=1, keepdims=True)).mean(axis=0))


def flips(others: Sequence[float], efficiency: Sequence[float]) -> list[tuple[float, int, int]]:
    """Return where first place changes hands as the efficiency weight x goes from 0 to 1.

    A model's score is the line ``(1 - x)·m + x·E`` with m the mean of P, CDC and min(1, RR) (the rest of the weight
    is shared equally), so first place is the upper envelope of the lines. For two models x* = Δm / (Δm - ΔE) where
    Δm·ΔE < 0.

    Parameters
    ----------
    others
        m of each model.
    efficiency
        E of each model.

    Returns
    -------
    list of (x, before, after)
        Strictly inside (0, 1), in rising order; ``before`` and ``after`` are indices.
    """
    found: list[tuple[float, int, int]] = []
    m, e = np.asarray(others, dtype=float), np.asarray(efficiency, dtype=float)
    # At x = 0 the highest m leads; of equal ones the one that grows fastest.
    current = int(max(range(len(m)), key=lambda index: (m[index], e[index])))
    x = 0.0
    while True:
        # The next leader crosses the present one first; of several, the one that rises fastest after.
        slope = (e - m) - (e[current] - m[current])
        gap = m[current] - m
        with np.errstate(divide="ignore", invalid="ignore"):
            crossing = np.where(slope > 1e-15, gap / slope, np.inf)
        crossing = np.where(crossing > x + 1e-12, crossing, np.inf)
        crossing[current] = np.inf
        at = float(crossing.min()) if len(crossing) else np.inf
        if not at < 1.0:
            return found
        candidates = [index for index in range(len(m)) if abs(crossing[index] - at) <= 1e-12]
        following = max(candidates, key=lambda index: slope[index])
        found.append((at, current, following))
        current, x = following, at


def outranking(replicates: Array) -> Array:
    """Return the probability that model i's score is above model j's, ties half.

    Parameters
    ----------
    replicates
        Shape (models, replicates), joint; a pair's replicates with a NaN are left out.

    Returns
    -------
    Array
        Shape (models, models); the diagonal is 0.5; NaN where a pair has no replicate.
    """
    a, b = replicates[:, None, :], replicates[None, :, :]
    present = ~(np.isnan(a) | np.isnan(b))
    wins = np.where(present, (a > b) + 0.5 * (a == b), 0.0).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(present.any(axis=-1), wins / present.sum(axis=-1), np.nan))
