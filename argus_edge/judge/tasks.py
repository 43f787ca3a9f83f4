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
# Rows above which the bootstrap would only cost: its percentiles are those of a normal law by then.
_MOST_RESAMPLED = 20_000
# Draws held in memory at a time.
_BLOCK = 2_000_000
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
    """95 % interval of the gap: percentile bootstrap over rows; by its influence function above 20,000 rows.

    Parameters
    ----------
    judge, human, width
        Shape (n,), finite.
    """
    n = len(human)
    if n < 3 or np.ptp(judge) == 0 or np.ptp(human) == 0:
        return None
    if n > _MOST_RESAMPLED:
        return _normal_gap_interval(judge, human, width, span)
    columns = np.column_stack([judge, human, judge * human, judge**2, human**2, width])
    rng = np.random.default_rng(seed)
    block = max(1, _BLOCK // n)
    means = np.vstack(
        [
            rng.multinomial(n, np.full(n, 1 / n), size=min(block, _REPLICATES - done)) @ columns / n
            for done in range(0, _REPLICATES, block)
        ]
    )
    mean_judge, mean_human, product, judge_square, human_square, mean_width = means.T
    shared = product - mean_judge * mean_human
    spread = (judge_square - mean_judge**2) * (human_square - mean_human**2)
    with np.errstate(invalid="ignore", divide="ignore"):
        gaps = np.abs(shared / np.sqrt(spread)) - (1 - mean_width / span)
    gaps = gaps[np.isfinite(gaps)]
    if not len(gaps):
        return None
    low, high = np.percentile(gaps, [2.5, 97.5])
    return float(low), float(high)


def _normal_gap_interval(judge: Array, human: Array, width: Array, span: int) -> tuple[float, float]:
    """Estimate ± 1.96 standard errors of the gap.

    A row's influence on Pearson's correlation ρ is z_j·z_h − ρ(z_j² + z_h²)/2 (Devlin, Gnanadesikan & Kettenring 1975,
    Biometrika 62), on the mean width its own width.
    """
    z_judge = (judge - judge.mean()) / judge.std()
    z_human = (human - human.mean()) / human.std()
    rho = float(np.mean(z_judge * z_human))
    influence = np.sign(rho) * (z_judge * z_human - rho * (z_judge**2 + z_human**2) / 2) + width / span
    reach = 1.959964 * float(influence.std()) / np.sqrt(len(human))
    gap = ranking_scoring_gap(rho, float(width.mean()), span)
    return float(gap - reach), float(gap + reach)


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
