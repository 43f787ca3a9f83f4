"""Judged metrics: for each task and model a prediction-powered mean, which `score` takes in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from argus_edge.judge.groups import group_name
from argus_edge.judge.ppi import PoweredMean, powered_mean
from argus_edge.judge.table import JudgeTable
from argus_edge.schema.judge import JudgedMean, TaskReport

__all__ = ["MODEL_COLUMN", "judged_means", "task_names"]

MODEL_COLUMN = "model"


def task_names(table: JudgeTable, by: str | None) -> list[str]:
    """Return each row's task: the column of the groups, else ``task``, else one task of all rows."""
    for name in (by, "task"):
        if name is not None and name in table.columns:
            return [group_name(cell) for cell in table.columns[name]]
    return ["all"] * len(table)


def judged_means(table: JudgeTable, by: str | None, tasks: Sequence[TaskReport], seed: int = 0) -> list[JudgedMean]:
    """Return a mean for each task, and for each model where the table has a column ``model``.

    The prediction is the judge's probability-weighted rating, which no label has touched. Models of a task are ranked
    by the judge's mean over all their rows: what stays meaningful where the advice is "rank only".

    Parameters
    ----------
    table
        Labelled and unlabelled rows; unreadable ones are left out.
    tasks
        Their advice.
    """
    advice = {report.task: report for report in tasks}
    names = np.array(task_names(table, by), dtype=object)
    models = np.array([cell.strip()[:512] for cell in table.columns.get(MODEL_COLUMN, [""] * len(table))], dtype=object)
    readable = table.readable
    score = np.full(len(table), np.nan)
    score[readable] = table.take(np.flatnonzero(readable)).expected_score
    found: list[JudgedMean] = []
    for task in sorted(set(names)):
        entries: list[JudgedMean] = []
        for model in sorted(set(models[names == task])):
            rows = readable & (names == task) & (models == model)
            labelled = rows & table.labelled
            if labelled.sum() < 2 or task not in advice:
                continue
            rest = score[rows & ~table.labelled]
            mean = powered_mean(table.labels[labelled], score[labelled], rest, seed=seed)
            entries.append(_entry(task, model or None, mean, float(score[rows].mean()), table, advice[task]))
        order = np.argsort([-entry.judge_mean for entry in entries], kind="stable")
        for place, index in enumerate(order):
            entries[index].rank, entries[index].models = place + 1, len(entries)
        found += entries
    return found


def _entry(
    task: str, model: str | None, mean: PoweredMean, judge_mean: float, table: JudgeTable, report: TaskReport
) -> JudgedMean:
    span = table.scale.span
    return JudgedMean(
        task=task,
        model=model,
        mean=mean.mean,
        lower=mean.lower,
        upper=mean.upper,
        standard_error=mean.standard_error,
        degrees_of_freedom=mean.degrees_of_freedom,
        unit_mean=(mean.mean - 1) / span,
        unit_lower=(mean.lower - 1) / span,
        unit_upper=(mean.upper - 1) / span,
        unit_standard_error=mean.standard_error / span,
        labelled=mean.labelled,
        unlabelled=mean.unlabelled,
        weight=mean.weight,
        width_ratio=mean.width / mean.labelled_width if mean.labelled_width > 0 else 1.0,
        judge_mean=judge_mean,
        advice=report.advice,
        note=mean.note,
    )
