"""`judge evaluate`: every method on repeated random halves, for each judge and for all of them together."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argus_edge.artifacts import sha256_file
from argus_edge.errors import InputError, UsageError
from argus_edge.judge.breakdown import Tested, break_down, break_down_by
from argus_edge.judge.calibration import with_labels_needed
from argus_edge.judge.fitting import fit_method, usable_rows
from argus_edge.judge.groups import DIFFICULTY
from argus_edge.judge.judged import task_names
from argus_edge.judge.methods import DEFAULT, METHODS
from argus_edge.judge.points import confidence, correlation, midpoint_figures, point_figures
from argus_edge.judge.scale import Intervals
from argus_edge.judge.table import JudgeTable, join_tables
from argus_edge.judge.tasks import Demands, TaskRows, task_report
from argus_edge.schema.base import Source
from argus_edge.schema.judge import (
    Agreement,
    Fusion,
    JudgeEvaluation,
    JudgeReport,
    MethodReport,
    Midpoint,
    PointFigures,
    TaskReport,
)

Array = NDArray[Any]

__all__ = ["Plan", "evaluate_judges", "expected_seconds", "method_names"]

AUTO = "auto"
# The published per-task widths, and the ranking-scoring gap made from them, are this method's.
_GAP_METHOD = "r2ccp"
_FEWEST_WITHIN = 50
# A method cheap enough to be run in this process, and again for the learning curve.
_QUICK = 0.1


@dataclass(frozen=True)
class Plan:
    """What to evaluate.

    Attributes
    ----------
    methods
        Names in the registry.
    splits
        Random halves; the seeds are 1, 2, …
    by
        A column or "difficulty" for all methods, ``None`` for none, or "auto": the task for the methods whose model
        can take it in, none for the others (the published protocol).
    jobs
        Processes.
    """

    methods: list[str]
    splits: int
    alpha: float
    by: str | None
    demands: Demands
    jobs: int

    def by_of(self, method: str, table: JudgeTable) -> str | None:
        """Return the groups that a method uses on a table."""
        if self.by != AUTO:
            return self.by
        return "task" if METHODS[method].uses_group and "task" in table.columns else None


def method_names(text: str) -> list[str]:
    """Read ``"all"`` or names with commas between.

    Raises
    ------
    UsageError
        An unknown name.
    """
    names = list(METHODS) if text.strip() == "all" else [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in METHODS]
    if unknown or not names:
        raise UsageError(
            f"Unknown conformal method {', '.join(unknown)[:100]!r}.",
            next_step=f"choose from: all, {', '.join(METHODS)}",
        )
    return list(dict.fromkeys(names))


def expected_seconds(plan: Plan, rows: int, judges: int) -> float:
    """Say roughly how long an evaluation takes."""
    runs = judges + (judges > 1)
    cost = sum(METHODS[name].cost for name in plan.methods)
    cost += METHODS[_GAP_METHOD].cost if _GAP_METHOD in plan.methods else 0
    return float(runs * plan.splits * cost * rows / 2000 / plan.jobs)


def _halves(rows: int, seed: int) -> tuple[Array, Array]:
    """Random halves by scikit-learn's split, as published, so that equal seeds give equal rows."""
    from sklearn.model_selection import train_test_split

    first, second = train_test_split(np.arange(rows), test_size=0.5, random_state=seed)
    return first, second


def _run(table: JudgeTable, method: str, alpha: float, by: str | None, seed: int) -> tuple[Tested, float]:
    """Fit to one half and predict the other; also returns the processor's seconds."""
    start = time.process_time()
    known, unknown = _halves(len(table), seed)
    fitted = fit_method(table.take(known), method, alpha, by, seed)
    test = table.take(unknown)
    intervals, groups = fitted.intervals(test)
    names = [*fitted.grouping.names, ""]
    return Tested(unknown, intervals, test.labels, [names[group] for group in groups]), time.process_time() - start


_Job = tuple[JudgeTable, str, float, str | None, int]


def _run_jobs(jobs: list[_Job], processes: int) -> list[tuple[Tested, float]]:
    """Run splits, in processes where there is enough to do."""
    if processes == 1 or all(METHODS[method].cost <= _QUICK for _, method, _, _, _ in jobs):
        from threadpoolctl import threadpool_limits

        # Small matrices: threads of the linear algebra would only wait for each other.
        with threadpool_limits(limits=1):
            return [_run(*job) for job in jobs]
    from joblib import Parallel, delayed, parallel_config

    # The slowest first, so that no process is left with one of them at the end.
    order = sorted(range(len(jobs)), key=lambda index: -METHODS[jobs[index][1]].cost * len(jobs[index][0]))
    with parallel_config(backend="loky", n_jobs=processes, inner_max_num_threads=1):
        found = Parallel()(delayed(_run)(*jobs[index]) for index in order)
    return [result for _, result in sorted(zip(order, found, strict=True), key=lambda pair: pair[0])]


def _run_all(table: JudgeTable, plan: Plan, say: Callable[[str], None]) -> dict[str, tuple[list[Tested], float]]:
    """Run all methods on all splits."""
    needed = {"task"} | {plan.by_of(method, table) for method in plan.methods}
    slim = table.with_columns(needed)
    jobs: list[_Job] = [
        (slim, method, plan.alpha, plan.by_of(method, table), seed)
        for method in plan.methods
        for seed in range(1, plan.splits + 1)
    ]
    results = _run_jobs(jobs, plan.jobs)
    by_method: dict[str, tuple[list[Tested], float]] = {}
    for index, method in enumerate(plan.methods):
        part = results[index * plan.splits : (index + 1) * plan.splits]
        by_method[method] = [tested for tested, _ in part], sum(seconds for _, seconds in part)
        overall = break_down(by_method[method][0])
        say(
            f"{', '.join(table.judges)[:60]}  {method}: coverage {overall.coverage:.3f}, width {overall.width:.2f} "
            f"({by_method[method][1]:.1f} s)"
        )
    return by_method


def _within_tasks(table: JudgeTable, tasks: Array, plan: Plan) -> list[Tested]:
    """Fit the gap's method within each task alone, as published for the per-task widths, on random halves of it.

    Tasks of fewer than 50 rows are left out.
    """
    members = [np.flatnonzero(tasks == task) for task in sorted(set(tasks))]
    members = [rows for rows in members if len(rows) >= _FEWEST_WITHIN]
    parts = [table.with_columns(()).take(rows) for rows in members]
    jobs: list[_Job] = [
        (part, _GAP_METHOD, plan.alpha, None, seed) for seed in range(1, plan.splits + 1) for part in parts
    ]
    results = _run_jobs(jobs, plan.jobs)
    splits = []
    for start in range(0, len(results), len(parts) or 1):
        found = [tested for tested, _ in results[start : start + len(parts)]]
        intervals = Intervals(
            np.concatenate([tested.intervals.lower for tested in found]),
            np.concatenate([tested.intervals.upper for tested in found]),
            np.concatenate([tested.intervals.unbounded for tested in found]),
            table.scale,
        )
        rows = np.concatenate([mine[tested.rows] for mine, tested in zip(members, found, strict=True)])
        splits.append(Tested(rows, intervals, table.labels[rows], [str(task) for task in tasks[rows]]))
    return splits


def evaluate_judges(tables: Sequence[JudgeTable], plan: Plan, say: Callable[[str], None]) -> JudgeEvaluation:
    """Evaluate each judge, and with several also their features together.

    Parameters
    ----------
    tables
        One a judge, of the same scale.
    say
        Takes progress.

    Raises
    ------
    InputError
        Tables of different scales, too few labelled rows, no such column.
    """
    if len({table.scale for table in tables}) > 1:
        scales = ", ".join(f"{table.path}: {table.scale}" for table in tables)
        raise InputError(f"The tables are of different scales: {scales}.")
    if plan.by not in (None, AUTO, DIFFICULTY):
        for table in tables:
            table.column(str(plan.by))  # an error names all the columns
    warnings = [str(problem) for table in tables for problem in table.problems]
    used = [table.take(usable_rows(table)) for table in tables]
    # Tables that cannot be joined are an error before anything is measured.
    joined = join_tables(used)
    reports = [_judge_report(table, plan, say) for table in used]
    agreement: list[Agreement] = []
    fusion: list[Fusion] = []
    if len(used) > 1:
        agreement = [_agreement(first, second) for first, second in combinations(reports, 2)]
        together = _judge_report(joined.take(usable_rows(joined)), plan, say)
        fusion = _fusion(reports, together)
        reports = [*reports, together]
    return JudgeEvaluation(
        sources=[Source(name=os.path.basename(t.path)[-512:], sha256=sha256_file(t.path)) for t in tables],
        levels=used[0].scale.levels,
        alpha=plan.alpha,
        splits=plan.splits,
        judges=reports,
        agreement=agreement,
        fusion=fusion,
        warnings=list(dict.fromkeys(warnings)),
    )


def _judge_report(table: JudgeTable, plan: Plan, say: Callable[[str], None]) -> JudgeReport:
    results = _run_all(table, plan, say)
    by = None if plan.by in (AUTO, DIFFICULTY) else plan.by
    tasks = np.array(task_names(table, by), dtype=object)
    judge = np.asarray(table.judge_scores.mean(axis=1))
    task_method = DEFAULT if DEFAULT in results else plan.methods[0]
    gap_method, gap_splits = task_method, results[task_method][0]
    within: list[Tested] = []
    if _GAP_METHOD in results:
        gap_method, gap_splits = _GAP_METHOD, results[_GAP_METHOD][0]
        if len(set(tasks)) > 1:
            say(f"{', '.join(table.judges)[:60]}  {_GAP_METHOD} within each task")
            within = _within_tasks(table, tasks, plan)
            gap_method, gap_splits = (f"{_GAP_METHOD} within each task", within) if within else (gap_method, gap_splits)
    points_by_task: dict[str, PointFigures] = {}
    for task in sorted(set(tasks)):
        figures = point_figures(judge[tasks == task], table.labels[tasks == task])
        if figures is not None:
            points_by_task[task] = figures
    single = len(table.judges) == 1
    reports = _task_reports(table, tasks, judge, results[task_method][0], gap_splits, plan)
    if METHODS[task_method].cost <= _QUICK:
        chosen = plan.by_of(task_method, table)
        reports = with_labels_needed(table, reports, task_method, plan.alpha, chosen, plan.demands.max_width, seed=1)
    return JudgeReport(
        judge=" + ".join(table.judges)[:512],
        rows=len(table),
        points=point_figures(judge, table.labels) if single else None,
        confidence=confidence(table.probabilities[:, 0], table.labels) if single else None,
        points_by_task=points_by_task,
        methods=[
            _method_report(table, tasks, judge, method, plan, tested, seconds)
            for method, (tested, seconds) in results.items()
        ],
        tasks=reports,
        task_method=task_method,
        gap_method=gap_method,
        within_task=break_down_by(within, [tested.groups for tested in within]),
    )


def _method_report(
    table: JudgeTable, tasks: Array, judge: Array, method: str, plan: Plan, splits: list[Tested], seconds: float
) -> MethodReport:
    error = np.abs(np.round(judge) - table.labels)
    by_error = np.array(["" if np.isnan(value) else f"{value:.0f}" for value in error], dtype=object)
    by_level = np.array([f"{value:.0f}" for value in table.labels], dtype=object)
    by = plan.by_of(method, table)
    figures = [midpoint_figures(t.intervals, judge[t.rows], t.labels).model_dump() for t in splits]

    def mean(name: str) -> float | None:
        values = [figure[name] for figure in figures if figure[name] is not None]
        return float(np.mean(values)) if values else None

    return MethodReport(
        method=method,
        paper=METHODS[method].paper,
        by=by,
        seconds=seconds,
        overall=break_down(splits),
        by_task=break_down_by(splits, [list(tasks[tested.rows]) for tested in splits]),
        by_level=break_down_by(splits, [list(by_level[tested.rows]) for tested in splits]),
        by_error=break_down_by(splits, [list(by_error[tested.rows]) for tested in splits]),
        by_group=break_down_by(splits, [tested.groups for tested in splits]) if by else [],
        midpoint=Midpoint.model_validate({name: mean(name) for name in figures[0]}),
    )


def _row_means(splits: list[Tested], count: int) -> tuple[Array, Array, Array]:
    """Each row's mean raw width, adjusted width and (adjusted) coverage over the splits that tested it."""
    sums, seen = np.zeros((3, count)), np.zeros(count)
    for tested in splits:
        sums[0, tested.rows] += tested.intervals.width()
        sums[1, tested.rows] += tested.intervals.width(adjusted=True)
        sums[2, tested.rows] += tested.intervals.covers(tested.labels, adjusted=True)
        seen[tested.rows] += 1
    means = sums / np.where(seen, seen, np.nan)
    return means[0], means[1], means[2]


def _task_reports(
    table: JudgeTable, tasks: Array, judge: Array, splits: list[Tested], gap_splits: list[Tested], plan: Plan
) -> list[TaskReport]:
    width, adjusted, covered = _row_means(splits, len(table))
    gap_width = _row_means(gap_splits, len(table))[0]
    reports = []
    for task in sorted(set(tasks)):
        rows = np.flatnonzero((tasks == task) & np.isfinite(width))
        if len(rows):
            part = TaskRows(
                task=task,
                human=table.labels[rows],
                judge=judge[rows],
                width=width[rows],
                width_adjusted=adjusted[rows],
                covered=covered[rows],
                # A task too small to be fitted alone has the widths of its intervals.
                gap_width=np.where(np.isfinite(gap_width[rows]), gap_width[rows], width[rows]),
            )
            reports.append(task_report(part, alpha=plan.alpha, span=table.scale.span, demands=plan.demands))
    return reports


def _agreement(first: JudgeReport, second: JudgeReport) -> Agreement:
    """Compare two judges' order of the tasks by raw width."""
    widths = [{task.task: task.width for task in report.tasks} for report in (first, second)]
    common = sorted(set(widths[0]) & set(widths[1]))
    left, right = (np.array([width[task] for task in common]) for width in widths)
    return Agreement(
        judges=(first.judge, second.judge),
        method=first.gap_method,
        tasks=len(common),
        spearman=correlation(left, right, "spearman"),
    )


def _fusion(alone: list[JudgeReport], together: JudgeReport) -> list[Fusion]:
    result = []
    for index, method in enumerate(together.methods):
        best = min(alone, key=lambda report: report.methods[index].overall.width)
        single = best.methods[index].overall
        result.append(
            Fusion(
                method=method.method,
                best_judge=best.judge,
                width_best=single.width,
                width_together=method.overall.width,
                gain=single.width - method.overall.width,
                coverage_best=single.coverage,
                coverage_together=method.overall.coverage,
                adjusted_width_best=single.width_adjusted,
                adjusted_width_together=method.overall.width_adjusted,
            )
        )
    return result
