"""`judge fit` and `judge apply`: from a labelled table to a calibration file, and from it to intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argus_edge.artifacts import sha256_file
from argus_edge.errors import InputError
from argus_edge.judge.breakdown import Tested, break_down
from argus_edge.judge.conformal import min_rows
from argus_edge.judge.encoding import decode, encode
from argus_edge.judge.fitting import Fitted, fit_method, usable_rows
from argus_edge.judge.groups import DIFFICULTY, Grouping
from argus_edge.judge.judged import TASK_COLUMN, judged_means, task_names
from argus_edge.judge.learning import labels_for, shared_slope, sizes_of
from argus_edge.judge.methods import METHODS
from argus_edge.judge.methods.base import MOST_TRAINING_ROWS
from argus_edge.judge.scale import Intervals, Scale
from argus_edge.judge.table import JudgeTable, name_lines
from argus_edge.judge.tasks import Demands, TaskRows, task_report
from argus_edge.schema.base import Source
from argus_edge.schema.judge import Group, JudgeCalibration, TaskReport

Array = NDArray[Any]

__all__ = [
    "Applied",
    "applied_summary",
    "apply_calibration",
    "expected_fit_seconds",
    "fit_calibration",
    "out_of_sample",
    "with_labels_needed",
]

_FOLDS = 5
_FEWEST_FOR_DRIFT = 30
# How width falls with the number of labels shows in so many rows.
_MOST_FOR_THE_CURVE = 50_000
_PERCENTS = np.linspace(0, 100, 101)


def out_of_sample(table: JudgeTable, name: str, alpha: float, by: str | None, seed: int) -> Intervals:
    """Return each row's interval from a fit to the other four fifths of the rows."""
    order = np.random.default_rng([seed, 2]).permutation(len(table))
    lower, upper, unbounded = np.empty(len(table)), np.empty(len(table)), np.empty(len(table), dtype=bool)
    for held in np.array_split(order, _FOLDS):
        rest = np.setdiff1d(order, held)
        found, _ = fit_method(table.take(rest), name, alpha, by, seed).intervals(table.take(held))
        lower[held], upper[held], unbounded[held] = found.lower, found.upper, found.unbounded
    return Intervals(lower, upper, unbounded, table.scale)


def with_labels_needed(
    table: JudgeTable,
    reports: list[TaskReport],
    name: str,
    alpha: float,
    by: str | None,
    wanted: float,
    seed: int,
) -> list[TaskReport]:
    """Add to each task how many labelled rows the wanted mean width takes.

    The method is fitted to an eighth, a quarter, a half and all of four fifths of the rows, three times (once where a
    fit is slow); widths are those of the rows left out. Where intervals are infinite there is no width to extrapolate.
    """
    tasks = np.array(task_names(table, by), dtype=object)
    points: dict[str, list[tuple[int, float]]] = {report.task: [] for report in reports}
    fewest = 2 * min_rows(alpha)  # half of them calibrate
    grouped = by not in (None, DIFFICULTY)
    infinite = {report.task for report in reports if grouped and report.rows < fewest}
    for repeat in range(_repeats(name)):
        order = np.random.default_rng([seed, 3, repeat]).permutation(len(table))[:_MOST_FOR_THE_CURVE]
        held, pool = order[: len(order) // _FOLDS], order[len(order) // _FOLDS :]
        for size in sizes_of(len(pool)):
            rows = pool[:size]
            found, _ = fit_method(table.take(rows), name, alpha, by, seed + repeat).intervals(table.take(held))
            width = found.width(adjusted=True)
            for task, seen in points.items():
                mine = tasks[held] == task
                count = int((tasks[rows] == task).sum())
                if found.unbounded[mine].any():
                    if size == len(pool):
                        infinite.add(task)
                elif mine.any() and count >= 2:
                    seen.append((count, float(width[mine].mean())))
    slope = shared_slope(points.values())
    result = []
    for report in reports:
        needed: int | None = None
        if report.task in infinite:
            # Widths are measured on intervals from four fifths of the rows.
            enough = math.ceil(fewest * _FOLDS / (_FOLDS - 1))
            note = f"intervals are infinite with so few labels: a width shows from about {enough} labelled rows"
        elif slope is None:
            note = "too few labelled rows to extrapolate from"
        else:
            needed, note = labels_for(report.width_adjusted, report.rows, slope, wanted, fewest)
        result.append(report.model_copy(update={"labels_needed": needed, "labels_note": note}))
    return result


def _repeats(method: str) -> int:
    return 3 if METHODS[method].cost <= 0.1 else 1


def expected_fit_seconds(method: str, rows: int) -> float:
    """Say roughly how long :func:`fit_calibration` takes: one fit to all rows, five to four fifths, the curve's."""
    trained = min(rows, 2 * MOST_TRAINING_ROWS)
    curve = _repeats(method) * 0.8 * (1 + 1 / 2 + 1 / 4 + 1 / 8) * min(rows, _MOST_FOR_THE_CURVE)
    return float(METHODS[method].cost / 1000 * (trained + _FOLDS * min(0.8 * rows, trained) + curve))


def fit_calibration(
    table: JudgeTable,
    *,
    method: str,
    alpha: float,
    by: str | None,
    seed: int,
    demands: Demands,
    paths: list[str],
) -> JudgeCalibration:
    """Fit a method to the labelled rows and sum up what its intervals are worth.

    Parameters
    ----------
    table
        Labelled rows calibrate; unlabelled ones enter the judged means.
    by
        Column of the groups, ``"difficulty"``, or ``None``.
    paths
        The files it was read from.

    Raises
    ------
    InputError
        Too few labelled rows, or no such column.
    """
    rows = usable_rows(table)
    if by not in (None, DIFFICULTY):
        table.column(str(by))  # an error names all the columns
    used = table.with_columns({by, TASK_COLUMN}).take(rows)
    warnings = [str(problem) for problem in table.problems]
    skipped = np.flatnonzero(table.readable & ~table.labelled)
    if len(skipped):
        where = name_lines(table.lines[skipped], 5)
        warnings.append(
            f"{len(skipped)} rows without a human score: not calibrated on, used for judged means ({where})"
        )
    fitted = fit_method(used, method, alpha, by, seed)
    numbers = fitted.grouping.assign(used)
    groups = []
    for number, name in enumerate(fitted.grouping.names):
        reason = fitted.reason(number)
        members = numbers == number
        groups.append(
            Group(
                name=name,
                rows=int(members.sum()),
                calibration_rows=int(fitted.method.group_rows[number]),
                finite=reason is None,
                reason=reason,
            )
        )
        if reason:
            where = name_lines(used.lines[members], 5) if members.any() else "no rows"
            warnings.append(f"infinite intervals: {reason} ({where})")
    intervals = out_of_sample(used, method, alpha, by, seed)
    tested = Tested(np.arange(len(used)), intervals, used.labels, ["all"] * len(used))
    names = np.array(task_names(used, by), dtype=object)
    reports = []
    for task in sorted(set(names)):
        mine = np.flatnonzero(names == task)
        part = intervals.take(mine)
        task_rows = TaskRows(
            task=task,
            human=used.labels[mine],
            judge=_mean_score(used)[mine],
            width=part.width(),
            width_adjusted=part.width(adjusted=True),
            covered=part.covers(used.labels[mine], adjusted=True),
            gap_width=part.width(),
        )
        reports.append(task_report(task_rows, alpha=alpha, span=table.scale.span, demands=demands))
    reports = with_labels_needed(used, reports, method, alpha, by, demands.max_width, seed)
    return JudgeCalibration(
        sources=[Source(name=str(path).rsplit("/", 1)[-1][-512:], sha256=sha256_file(path)) for path in paths],
        judges=table.judges,
        levels=table.scale.levels,
        alpha=alpha,
        method=method,
        seed=seed,
        labels=str(table.label_column),
        by=by,
        floor=table.floor,
        rows=len(used),
        groups=groups,
        grouping=encode(fitted.grouping.state()),
        state=encode(fitted.method.state()),
        feature_quantiles=encode({"values": np.percentile(used.features, _PERCENTS, axis=0)}),
        overall=break_down([tested]),
        tasks=reports,
        judged=judged_means(table, by, reports, seed),
        warnings=warnings,
    )


def _mean_score(table: JudgeTable) -> Array:
    """Mean of the judges' written scores, NaN where one could not be read, shape (n,)."""
    return np.asarray(table.judge_scores.mean(axis=1))


@dataclass(frozen=True)
class Applied:
    """New rows with their intervals.

    Attributes
    ----------
    groups
        Names, "" where unknown, shape (n,).
    reasons
        Why a row's interval is infinite, else "", shape (n,).
    warnings
        What a reader must know.
    """

    table: JudgeTable
    intervals: Intervals
    groups: list[str]
    reasons: list[str]
    warnings: list[str]


def apply_calibration(calibration: JudgeCalibration, table: JudgeTable, *, where: str) -> Applied:
    """Give new rows their intervals.

    Parameters
    ----------
    where
        The calibration's file, for messages.

    Raises
    ------
    InputError
        The table is of another scale or of other judges, lacks the column of the groups, or the calibration's state
        does not hold together.
    """
    if table.scale.levels != calibration.levels:
        raise InputError(
            f"The calibration is for the scale 1..{calibration.levels}, the table has {table.scale}.",
            where=f"{where}; {table.path}",
            next_step="fit a calibration on labelled rows of this scale",
        )
    if table.judges != calibration.judges:
        raise InputError(
            f"The calibration is for {', '.join(calibration.judges)}; the table is of {', '.join(table.judges)}."[:600],
            where=f"{where}; {table.path}",
            next_step="fit a calibration for this judge, or name it with --judge where the file does not",
        )
    fitted, intervals, numbers = _predict(calibration, table, where)
    readable = table.readable
    reasons = []
    for row, number in enumerate(numbers):
        if not intervals.unbounded[row]:
            reasons.append("")
        elif not readable[row]:
            reasons.append("log-probabilities missing")
        else:
            reasons.append(fitted.reason(int(number)) or "too few similar rows among the calibrated ones")
    warnings = [str(problem) for problem in table.problems]
    for text in sorted(set(reasons) - {""}):
        lines = table.lines[[row for row, reason in enumerate(reasons) if reason == text]]
        warnings.append(f"{len(lines)} infinite interval(s): {text} ({name_lines(lines)})")
    warnings += _drift(calibration, table, where)
    names = [*fitted.grouping.names, ""]
    return Applied(table, intervals, [names[number] for number in numbers], reasons, warnings)


def _predict(calibration: JudgeCalibration, table: JudgeTable, where: str) -> tuple[Fitted, Intervals, Array]:
    """Rebuild the method and use it; a state that does not fit the table's features shows only in use."""
    try:
        grouping = Grouping.from_state(calibration.by, decode(calibration.grouping))
        method = METHODS[calibration.method](Scale(calibration.levels), calibration.alpha, len(grouping.names))
        if calibration.by == DIFFICULTY and grouping.forest is None:
            raise ValueError("the groups by difficulty have no forest")  # noqa: TRY301
        fitted = Fitted(grouping, method.load(decode(calibration.state)))
        intervals, groups = fitted.intervals(table)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise InputError(
            f"The calibration's state does not hold together: {type(error).__name__}: {error}."[:400],
            where=where,
            next_step="fit it again",
        ) from error
    return fitted, intervals, groups


def _drift(calibration: JudgeCalibration, table: JudgeTable, where: str) -> list[str]:
    """Warn where the new log-probabilities are plainly not distributed as the calibrated ones (Kolmogorov–Smirnov)."""
    features = table.features[table.readable]
    if len(features) < _FEWEST_FOR_DRIFT:
        return []
    try:
        percentiles = np.asarray(decode(calibration.feature_quantiles)["values"], dtype=float)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"The calibration's percentiles do not hold together: {error}.", where=where) from error
    if percentiles.shape != (len(_PERCENTS), features.shape[1]):
        raise InputError("The calibration's percentiles do not match its scale.", where=where)
    distance = 0.0
    for column, quantiles in zip(features.T, percentiles.T, strict=True):
        ordered = np.sort(column)
        # Both distribution functions at the inner percentiles, from either side of a tie.
        right = np.searchsorted(ordered, quantiles[1:-1], side="right") / len(column)
        left = np.searchsorted(ordered, quantiles[1:-1], side="left") / len(column)
        level = _PERCENTS[1:-1] / 100
        distance = max(distance, float(np.max(np.maximum(left - level, level - right))))
    # P(KS > 2.3·sqrt(1/n + 1/m)) is below 1e-4; 0.05 more, so that a harmless difference stays silent.
    limit = 0.05 + 2.3 * np.sqrt(1 / len(features) + 1 / calibration.rows)
    if distance <= limit:
        return []
    return [
        f"the log-probabilities are distributed otherwise than the calibrated ones (Kolmogorov–Smirnov {distance:.2f}, "
        f"expected below {limit:.2f}): other judge, prompt or kind of items? Coverage is not guaranteed then"
    ]


def applied_summary(applied: Applied, calibration: JudgeCalibration) -> dict[str, Any]:
    """Return what `judge apply` says of the whole, as plain data."""
    intervals = applied.intervals
    infinite = int(intervals.unbounded.sum())
    width = float(intervals.width(adjusted=True).mean())
    used = {name for name in applied.groups if name}
    advice = {task.task: task.advice for task in calibration.tasks if calibration.by is None or task.task in used}
    sentence = (
        f"{len(applied.table)} rows, {infinite} with an infinite interval; mean adjusted width {width:.2f} "
        f"on the scale 1..{calibration.levels}, coverage {1 - calibration.alpha:g}"
    )
    return {
        "rows": len(applied.table),
        "infinite": infinite,
        "mean_width": float(intervals.width().mean()),
        "mean_width_adjusted": width,
        "alpha": calibration.alpha,
        "method": calibration.method,
        "judges": calibration.judges,
        "advice": advice,
        "warnings": applied.warnings,
        "sentence": sentence,
    }
