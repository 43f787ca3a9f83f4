"""Each task's verdict: the ranking-scoring gap with its interval, and advice with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argus_edge.judge.points import correlation, spearman_interval
from argus_edge.schema.judge import Advice, TaskReport

Array = NDArray[Any]

__all__ = ["Demands", "TaskRows", "advise", "gap_interval", "ranking_scoring_gap", "task_report"]

_REPLICATES = 1000
_FEWEST_ROWS = 20


@dataclass(frozen=True)
class Demands:
    """What a task must reach.

    Attributes
    ----------
    max_width
        Widest mean interval with which scores are still worth reading, on the scale 1..K.
    min_correlation
        Lowest rank correlation with which a ranking is worth reading.
    """

    max_width: float
    min_correlation: float = 0.3


@dataclass(frozen=True)
class TaskRows:
    """What is known of a task's labelled rows, out of sample.

    Attributes
    ----------
    human, judge
        Scores, shape (n,); the judge's NaN where unreadable.
    width, width_adjusted, covered
        Of each row's interval (mean over splits), shape (n,).
    gap_width
        Raw width that enters the ranking-scoring gap, shape (n,).
    """

    task: str
    human: Array
    judge: Array
    width: Array
    width_adjusted: Array
    covered: Array
    gap_width: Array


def ranking_scoring_gap(pearson: float, width: float, span: int) -> float:
    """|ρ| − (1 − w/(K − 1)): positive where a judge ranks better than it scores (Kumar et al. 2026, arXiv 2604.25235).

    Parameters
    ----------
    width
        Mean raw width.
    span
        K − 1.
    """
    return abs(pearson) - (1 - width / span)


def gap_interval(judge: Array, human: Array, width: Array, span: int, seed: int = 0) -> tuple[float, float] | None:
    """95 % percentile bootstrap over rows of the gap.

    Parameters
    ----------
    judge, human, width
        Shape (n,), finite.
    """
    n = len(human)
    if n < 3 or np.ptp(judge) == 0 or np.ptp(human) == 0:
        return None
    weights = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=_REPLICATES) / n
    mean_judge, mean_human = weights @ judge, weights @ human
    shared = weights @ (judge * human) - mean_judge * mean_human
    spread = (weights @ judge**2 - mean_judge**2) * (weights @ human**2 - mean_human**2)
    with np.errstate(invalid="ignore", divide="ignore"):
        gaps = np.abs(shared / np.sqrt(spread)) - (1 - weights @ width / span)
    gaps = gaps[np.isfinite(gaps)]
    if not len(gaps):
        return None
    low, high = np.percentile(gaps, [2.5, 97.5])
    return float(low), float(high)


def advise(
    rows: int,
    coverage: float,
    width: float,
    spearman: float | None,
    interval: tuple[float, float] | None,
    *,
    alpha: float,
    span: int,
    demands: Demands,
) -> tuple[Advice, str]:
    """Say what a task's scores are good for, and why.

    Parameters
    ----------
    coverage, width
        Of the (adjusted) intervals.
    """
    if rows < _FEWEST_ROWS:
        return "do not use", f"only {rows} labelled rows with a readable score: at least {_FEWEST_ROWS} are needed"
    if spearman is None or interval is None:
        return "do not use", "the judge gives every row the same score, or the humans do"
    rank = f"rank correlation {spearman:.2f} ({interval[0]:.2f} to {interval[1]:.2f})"
    wide = f"intervals {width:.2f} wide on a scale of {span}"
    if interval[0] <= 0 or spearman < demands.min_correlation:
        weak = "it may be none at all" if interval[0] <= 0 else f"below {demands.min_correlation:g}"
        narrow = ", but because the human scores hardly vary" if width <= demands.max_width else ""
        return "do not use", f"{rank}, {weak}; {wide}{narrow}"
    # Three standard errors of a share: a task whose coverage is merely unlucky is not turned down.
    lowest = 1 - alpha - 3 * float(np.sqrt(alpha * (1 - alpha) / rows))
    if coverage < lowest:
        return "rank only", f"intervals cover only {coverage:.0%}, but {rank}"
    if width <= demands.max_width:
        return "score", f"{wide} (at most {demands.max_width:g} wanted), covering {coverage:.0%}; {rank}"
    return "rank only", f"{wide} (at most {demands.max_width:g} wanted), but {rank}"


def task_report(rows: TaskRows, *, alpha: float, span: int, demands: Demands) -> TaskReport:
    """Sum up a task."""
    read = np.isfinite(rows.judge)
    judge, human = rows.judge[read], rows.human[read]
    pearson = correlation(judge, human)
    spearman = correlation(judge, human, "spearman")
    interval = spearman_interval(spearman, len(human)) if spearman is not None else None
    gap = ranking_scoring_gap(pearson, float(rows.gap_width.mean()), span) if pearson is not None else None
    gap_ends = gap_interval(judge, human, rows.gap_width[read], span)
    coverage, width = float(rows.covered.mean()), float(rows.width_adjusted.mean())
    advice, reason = advise(len(human), coverage, width, spearman, interval, alpha=alpha, span=span, demands=demands)
    return TaskReport(
        task=rows.task,
        rows=len(rows.human),
        coverage=coverage,
        width=float(rows.gap_width.mean()),
        width_adjusted=width,
        pearson=pearson,
        spearman=spearman,
        spearman_interval=interval,
        gap=gap,
        gap_interval=gap_ends,
        decoupled=gap_ends is not None and gap_ends[0] > 0 and advice == "rank only",
        advice=advice,
        reason=reason,
    )
