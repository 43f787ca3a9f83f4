"""Point figures of a judge: agreement of its scores with the human ones, and its confidence."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argus_edge.judge.scale import Intervals
from argus_edge.schema.judge import Confidence, Midpoint, PointFigures

Array = NDArray[Any]

__all__ = ["confidence", "correlation", "midpoint_figures", "point_figures", "spearman_interval"]


def correlation(first: Array, second: Array, kind: str = "pearson") -> float | None:
    """Return Pearson's, Spearman's or Kendall's (tau-b) correlation, or ``None`` where it is not defined."""
    from scipy import stats

    if len(first) < 3 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    function = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = float(function(first, second).statistic)
    return value if np.isfinite(value) else None


def spearman_interval(value: float, n: int) -> tuple[float, float]:
    """95 % interval of a rank correlation by Fisher's z (Bonett & Wright 2000, Psychometrika 65)."""
    reach = 1.959964 * np.sqrt((1 + value**2 / 2) / max(n - 3, 1))
    middle = np.arctanh(np.clip(value, -0.999999, 0.999999))
    return float(np.tanh(middle - reach)), float(np.tanh(middle + reach))


def point_figures(judge: Array, human: Array) -> PointFigures | None:
    """Compare written scores with human ones.

    Parameters
    ----------
    judge
        Shape (n,), NaN where no score could be read: those rows are left out.
    human
        Shape (n,).

    Returns
    -------
    PointFigures or None
        ``None`` without a readable score. "Within one" and "exact" are shares of the rows used.
    """
    read = np.isfinite(judge) & np.isfinite(human)
    if not read.any():
        return None
    score, truth = judge[read], human[read]
    error = score - truth
    levels = np.unique(truth)
    return PointFigures(
        rows=int(read.sum()),
        left_out=int((~read).sum()),
        pearson=correlation(score, truth),
        spearman=correlation(score, truth, "spearman"),
        kendall=correlation(score, truth, "kendall"),
        exact=float(np.mean(error == 0)),
        within_one=float(np.mean(np.abs(error) <= 1)),
        mae=float(np.abs(error).mean()),
        bias=float(error.mean()),
        bias_by_level={f"{level:g}": float(error[truth == level].mean()) for level in levels},
    )


def confidence(probabilities: Array, human: Array) -> Confidence:
    """Compare how sure a judge is with how often its most probable rating is the human's.

    Parameters
    ----------
    probabilities
        Distribution over the ratings, shape (n, K), rows sum to 1.
    human
        Shape (n,).
    """
    top = probabilities.max(axis=1)
    exact = float(np.mean(probabilities.argmax(axis=1) + 1 == human))
    return Confidence(
        over_99=float(np.mean(top > 0.99)),
        over_999=float(np.mean(top > 0.999)),
        mean_top_probability=float(top.mean()),
        exact=exact,
        over_confidence=float(top.mean()) - exact,
    )


def midpoint_figures(intervals: Intervals, judge: Array, human: Array) -> Midpoint:
    """Compare the intervals' midpoints with the judge's own scores, as scores (Sheng et al. 2025, section 5).

    Parameters
    ----------
    judge
        Shape (n,), NaN where unreadable; its figures are over the readable rows.
    """
    error = intervals.midpoint - human
    own = point_figures(judge, human)
    return Midpoint(
        mae=float(np.abs(error).mean()),
        bias=float(error.mean()),
        pearson=correlation(intervals.midpoint, human),
        judge_mae=own.mae if own else None,
        judge_bias=own.bias if own else None,
        judge_pearson=own.pearson if own else None,
    )
