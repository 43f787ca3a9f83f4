"""Judged metrics: for each task and model a prediction-powered mean, which `score` takes in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np

from argus_edge.judge.groups import group_name
from argus_edge.judge.ppi import PoweredMean, powered_mean
from argus_edge.judge.table import JudgeTable
from argus_edge.schema.evaluation import Task
from argus_edge.schema.judge import JudgedMean, TaskReport

__all__ = ["DATASET_COLUMN", "MODEL_COLUMN", "TASK_COLUMN", "cells_of", "judged_means", "task_names"]

MODEL_COLUMN, TASK_COLUMN, DATASET_COLUMN = "model", "task", "dataset"


def task_names(table: JudgeTable, by: str | None) -> list[str]:
    """Return each row's task: the column of the groups, else ``task``, else one task of all rows."""
    for name in (by, TASK_COLUMN):
        if name is not None and name in table.columns:
            names = {cell: group_name(cell) for cell in set(table.columns[name])}
            return [names[cell] for cell in table.columns[name]]
    return ["all"] * len(table)


def cells_of(table: JudgeTable) -> list[tuple[str, str] | None]:
    """Return the cell of the score that each row belongs to: (task, dataset) from the columns of those names.

    ``None`` where the task is none of the score's (retrieval, captioning, reasoning) or the dataset is empty.
    """
    nothing = [""] * len(table)
    pairs = zip(table.columns.get(TASK_COLUMN, nothing), table.columns.get(DATASET_COLUMN, nothing), strict=True)
    found = [(task.strip(), dataset.strip()[:64]) for task, dataset in pairs]
    return [pair if pair[0] in get_args(Task) and pair[1] else None for pair in found]


def judged_means(table: JudgeTable, by: str | None, tasks: Sequence[TaskReport], seed: int = 0) -> list[JudgedMean]:
    """Return a mean for each task; for each cell and model, where the table has columns that say so.

    The prediction is the judge's probability-weighted rating, which no label has touched. Models of a cell are ranked
    by the judge's mean over all their rows: what stays meaningful where the advice is "rank only".

    Parameters
    ----------
    table
        Labelled and unlabelled rows; unreadable ones are left out.
    tasks
        Their advice.
    """
    advice = {report.task: report for report in tasks}
    readable = table.readable
    score = np.full(len(table), np.nan)
    score[readable] = table.take(np.flatnonzero(readable)).expected_score
    models = [cell.strip()[:512] for cell in table.columns.get(MODEL_COLUMN, [""] * len(table))]
    parts: dict[tuple[str, tuple[str, str] | None], dict[str, list[int]]] = {}
    for row, key in enumerate(zip(task_names(table, by), cells_of(table), strict=True)):
        parts.setdefault(key, {}).setdefault(models[row], []).append(row)
    found: list[JudgedMean] = []
    for (task, cell), by_model in sorted(parts.items(), key=lambda item: (item[0][0], item[0][1] or ("", ""))):
        entries: list[JudgedMean] = []
        for model, numbers in sorted(by_model.items()):
            rows = np.array(numbers)
            rows = rows[readable[rows]]
            labelled = table.labelled[rows]
            if labelled.sum() < 2 or task not in advice:
                continue
            known, rest = rows[labelled], rows[~labelled]
            mean = powered_mean(table.labels[known], score[known], score[rest], seed=seed)
            entry = _entry(task, model or None, mean, float(score[rows].mean()), table, advice[task])
            entries.append(entry.model_copy(update={"cell": cell}))
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
