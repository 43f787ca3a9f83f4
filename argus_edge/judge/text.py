"""Plain tables of a calibration and an evaluation, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from argus_edge.schema.judge import JudgeCalibration, JudgeEvaluation, JudgeReport, TaskReport

__all__ = ["calibration_text", "columns", "evaluation_text"]


def columns(rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """Align cells under the first row; the first ``left`` columns to the left, the others to the right."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if index < left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _number(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _with_sd(value: float, spread: float | None, digits: int) -> str:
    return f"{value:.{digits}f}" + (f" ±{spread:.{digits}f}" if spread is not None else "")


def _task_lines(tasks: Sequence[TaskReport]) -> str:
    head = ("task", "rows", "coverage", "width", "Pearson", "Spearman", "gap", "gap 95 %", "advice")
    rows = [head]
    for task in sorted(tasks, key=lambda report: report.width_adjusted):
        ends = "-" if task.gap_interval is None else f"{task.gap_interval[0]:+.2f} {task.gap_interval[1]:+.2f}"
        mark = " *" if task.decoupled else ""
        rows.append(
            (
                task.task[:40],
                str(task.rows),
                f"{task.coverage:.3f}",
                f"{task.width_adjusted:.2f}",
                _number(task.pearson),
                _number(task.spearman),
                ("-" if task.gap is None else f"{task.gap:+.2f}") + mark,
                ends,
                task.advice,
            )
        )
    lines = [columns(rows)]
    if any(task.decoupled for task in tasks):
        lines.append("* decoupled: ranks well and scores badly, the gap is above 0")
    lines.append("")
    for task in sorted(tasks, key=lambda report: report.width_adjusted):
        lines.append(f"{task.task}: {task.advice}. {task.reason}.")
        if task.labels_note:
            lines.append(f"    labels: {task.labels_note}.")
    return "\n".join(lines)


def calibration_text(calibration: JudgeCalibration) -> str:
    """Return what `judge fit` prints."""
    whole = calibration.overall
    infinite = [group for group in calibration.groups if not group.finite]
    lines = [
        f"{', '.join(calibration.judges)}: {calibration.method}, {calibration.rows} labelled rows, scale "
        f"1..{calibration.levels}, alpha {calibration.alpha:g}"
        + (f", {len(calibration.groups)} groups by {calibration.by}" if calibration.by else ""),
        f"out of sample: coverage {whole.coverage:.3f}, width {whole.width:.2f}; boundary-adjusted "
        f"{whole.coverage_adjusted:.3f}, {whole.width_adjusted:.2f}",
    ]
    if infinite:
        lines.append(f"{len(infinite)} group(s) with infinite intervals: {', '.join(g.name for g in infinite)[:300]}")
    lines += ["", _task_lines(calibration.tasks)]
    powered = [entry for entry in calibration.judged if entry.unlabelled or entry.model]
    if powered:
        head = ("judged mean", "model", "mean", "95 %", "labelled", "unlabelled", "weight", "rank", "advice")
        rows = [head]
        for entry in powered:
            rows.append(
                (
                    entry.task[:40],
                    entry.model or "-",
                    f"{entry.mean:.3f}",
                    f"{entry.lower:.3f} {entry.upper:.3f}",
                    str(entry.labelled),
                    str(entry.unlabelled),
                    f"{entry.weight:.2f}",
                    f"{entry.rank}/{entry.models}",
                    entry.advice,
                )
            )
        lines += ["", columns(rows, left=2)]
        lines += [f"{entry.task}: {entry.note}" for entry in powered if entry.note]
    return "\n".join(lines)


def _judge_lines(report: JudgeReport) -> list[str]:
    lines = [f"{report.judge}: {report.rows} rows"]
    points = report.points
    if points:
        lines.append(
            f"  scores: Pearson {_number(points.pearson, 3)}, Spearman {_number(points.spearman, 3)}, Kendall "
            f"{_number(points.kendall, 3)}, exact {points.exact:.1%}, within one {points.within_one:.1%}, MAE "
            f"{points.mae:.3f}, bias {points.bias:+.2f} ({points.left_out} unreadable)"
        )
        levels = ", ".join(f"{level}: {bias:+.2f}" for level, bias in points.bias_by_level.items())
        lines.append(f"  bias by human score: {levels}")
    sure = report.confidence
    if sure:
        lines.append(
            f"  confidence: over 0.99 in {sure.over_99:.1%}, over 0.999 in {sure.over_999:.1%}; mean "
            f"{sure.mean_top_probability:.2f} against {sure.exact:.2f} right (over-confident by "
            f"{sure.over_confidence:+.2f})"
        )
    head = ("  method", "by", "coverage", "width", "adjusted cov.", "adj. width", "midpoint MAE", "bias", "CPU s")
    rows = [head]
    for method in report.methods:
        whole = method.overall
        rows.append(
            (
                f"  {method.method}",
                method.by or "-",
                _with_sd(whole.coverage, whole.coverage_sd, 3),
                _with_sd(whole.width, whole.width_sd, 2),
                _with_sd(whole.coverage_adjusted, whole.coverage_adjusted_sd, 3),
                _with_sd(whole.width_adjusted, whole.width_adjusted_sd, 2),
                f"{method.midpoint.mae:.3f}",
                f"{method.midpoint.bias:+.2f}",
                f"{method.seconds:.1f}",
            )
        )
    lines += ["", columns(rows, left=2)]
    for method in report.methods:
        if method.by == "difficulty":
            parts = ", ".join(
                f"{part.name} {part.width_adjusted:.2f} ({part.coverage_adjusted:.3f})" for part in method.by_group
            )
            lines.append(f"  {method.method}, adjusted width (coverage) by difficulty: {parts}")
    first = next(method for method in report.methods if method.method == report.task_method)
    for title, rated in (("human score", first.by_level), ("error of the judge", first.by_error)):
        cells = ", ".join(f"{part.name}: {part.coverage:.2f}/{part.width:.2f}" for part in rated)
        lines.append(f"  {first.method}, coverage/width by {title}: {cells}")
    lines += ["", f"  tasks (intervals: {report.task_method}; gap from the raw widths of {report.gap_method})"]
    lines += ["  " + line if line else "" for line in _task_lines(report.tasks).splitlines()]
    return lines


def evaluation_text(evaluation: JudgeEvaluation) -> str:
    """Return what `judge evaluate` prints."""
    lines = [
        f"{evaluation.splits} random halves, alpha {evaluation.alpha:g}, scale 1..{evaluation.levels}; "
        "means ± sd over the halves"
    ]
    for report in evaluation.judges:
        lines += ["", *_judge_lines(report)]
    for agreement in evaluation.agreement:
        lines.append(
            f"\norder of {agreement.tasks} tasks by {agreement.method} width, {' and '.join(agreement.judges)}: "
            f"Spearman {_number(agreement.spearman)}"
        )
    if evaluation.fusion:
        head = ("judges together", "best alone", "width", "together", "gain", "coverage", "together")
        rows = [head]
        for fusion in evaluation.fusion:
            rows.append(
                (
                    fusion.method,
                    fusion.best_judge[:40],
                    f"{fusion.width_best:.2f}",
                    f"{fusion.width_together:.2f}",
                    f"{fusion.gain:+.2f}",
                    f"{fusion.coverage_best:.3f}",
                    f"{fusion.coverage_together:.3f}",
                )
            )
        lines += ["", columns(rows, left=2)]
    return "\n".join(lines)
