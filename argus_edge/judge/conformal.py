"""Split-conformal calibration: finite-sample quantiles, one threshold a group, and the law of coverage."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

__all__ = ["beta_binomial_band", "conformal_quantile", "group_thresholds", "min_rows", "thresholds_of_rows"]


def _rank(n: int, alpha: float) -> int:
    # ceil((n + 1)(1 - alpha)) without the float error that turns 9.000000000000002 into 10.
    return math.ceil((n + 1) * (1 - alpha) - 1e-9)


def min_rows(alpha: float) -> int:
    """Fewest calibration rows with which an interval of coverage 1 − alpha is finite: ceil(1/alpha) − 1."""
    return math.ceil(1 / alpha - 1e-9) - 1


def conformal_quantile(scores: Array, alpha: float) -> float:
    """Return the ceil((n + 1)(1 − alpha))-th smallest score, or infinity where n is too small.

    Parameters
    ----------
    scores
        Nonconformity scores of the calibration rows, shape (n,).
    alpha
        Share of new rows that may be missed.

    References
    ----------
    Vovk, Gammerman & Shafer, *Algorithmic Learning in a Random World*, 2005; Lei et al. 2018, JASA 113(523).
    """
    rank = _rank(len(scores), alpha)
    if rank > len(scores):
        return math.inf
    return float(np.partition(scores, rank - 1)[rank - 1])


def group_thresholds(scores: Array, groups: Array, alpha: float, count: int) -> Array:
    """Return each group's conformal quantile (Mondrian conformal prediction), shape (count,).

    Parameters
    ----------
    scores, groups
        Scores and group numbers 0 … count − 1 of the calibration rows, shape (n,).
    """
    return np.array([conformal_quantile(scores[groups == group], alpha) for group in range(count)])


def thresholds_of_rows(thresholds: Array, groups: Array) -> Array:
    """Return each row's threshold or thresholds; the group −1 (unknown at calibration) has infinite ones.

    Parameters
    ----------
    thresholds
        Shape (G,), or (G, m) for a method with m thresholds a group.
    groups
        Shape (n,).
    """
    table = np.concatenate([thresholds, np.full((1, *thresholds.shape[1:]), math.inf)])
    return table[groups]


def beta_binomial_band(n_calibration: int, n_test: int, alpha: float, level: float = 0.99) -> tuple[float, float]:
    """Range in which the coverage on a finite test set falls with probability ``level``.

    With continuous scores the number of covered test rows is beta-binomial with parameters k and n + 1 − k,
    k = ceil((n + 1)(1 − alpha)): Vovk 2012, *Conditional validity of inductive conformal predictors*;
    Angelopoulos & Bates 2023, section 3.2.

    Returns
    -------
    tuple
        Lowest and highest share of covered test rows, each tail (1 − level)/2.
    """
    from scipy.stats import betabinom

    rank = _rank(n_calibration, alpha)
    if rank > n_calibration:
        return 1.0, 1.0
    law = betabinom(n_test, rank, n_calibration + 1 - rank)
    tail = (1 - level) / 2
    return float(law.ppf(tail)) / n_test, float(law.ppf(1 - tail)) / n_test
