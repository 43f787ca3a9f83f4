"""Hold reports against a budget: every line, every board, the quorum, and the one sentence that says why."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from argus_edge.errors import InputError
from argus_edge.gate.budget import Budget, Limit, read_budget
from argus_edge.gate.decide import headroom, outcome_of, quorum_of, share_needed, worst
from argus_edge.gate.figures import LEVEL, PERCENTILES, Figure, bench_figure, cell_figure, measurements_of
from argus_edge.gate.originals import is_original
from argus_edge.gate.units import format_quantity
from argus_edge.reports import Found, find_reports, of_kind
from argus_edge.schema.bench import BenchReport, Validity
from argus_edge.schema.evaluation import EvalReport
from argus_edge.schema.judge import JudgeCalibration
from argus_edge.schema.verdict import BoardVerdict, Counted, Outcome, QuorumVerdict, Verdict, VerdictLine
from argus_edge.text import pasted

BENCH_KINDS = ("latency", "generation", "rate", "memory", "size", "energy", "temperature", "parity")
ON_THE_LIMIT = "the figure lies on the limit: no practical length decides"
ANY_DEVICE = "any device"
PARITY = ("parity_error", "parity_cosine")
LONGER: dict[Counted, str] = {
    "samples": "measure longer",
    "runs": "measure longer, with more --runs",
    "images": "evaluate more images",
}


@dataclass
class _Subject:
    """A model, with its bench reports by device and its eval reports."""

    name: str
    benches: dict[str, list[Found[BenchReport]]] = field(default_factory=dict)
    evals: list[Found[EvalReport]] = field(default_factory=list)


def _subjects(
    budget: Budget, benches: Sequence[Found[BenchReport]], evals: Sequence[Found[EvalReport]]
) -> list[_Subject]:
    subjects: dict[str, _Subject] = {}
    for bench in benches:
        report = bench.artifact
        if budget.device not in (None, report.device.name, report.device.profile):
            continue
        subject = subjects.setdefault(report.model.sha256 or report.model.name, _Subject(report.model.name))
        subject.benches.setdefault(report.device.name, []).append(bench)
    if benches and not subjects:
        raise InputError(
            f"The budget is for {budget.device}, and no bench report is of that device.",
            where=", ".join(found.label for found in benches),
            next_step=f"argus-edge bench MODEL --device {pasted(budget.device)}",
        )
    for found in evals:
        info = found.artifact.model
        key = info.bundle_sha256 or info.sha256
        if key not in subjects and benches and is_original(found):
            continue  # the fp32 reference of a benched model, not a subject of its own
        subjects.setdefault(key, _Subject(info.name)).evals.append(found)
    return list(subjects.values())


def _newest(reports: Sequence[Found[BenchReport]], limit: Limit) -> Found[BenchReport]:
    """Return the report that a figure is read from: an offline run for throughput alone, else the newest."""
    offline = limit.metric.kind == "rate"
    fitting = [each for each in reports if (each.artifact.setup.scenario.name == "offline") == offline]
    return max(fitting or reports, key=lambda each: each.artifact.created)


def _counting(budget: Budget, reports: Sequence[Found[BenchReport]]) -> list[Found[BenchReport]]:
    """Return the reports that a budget's figures are read from; those that a newer one has replaced say nothing."""
    limits = [limit for limit in budget.limits if limit.metric.kind in BENCH_KINDS]
    return [_newest(reports, limit) for limit in limits] or list(reports)


def _line(
    limit: Limit, subject: _Subject, device: str | None, figure: Figure, valid: bool | None, invalid: str
) -> VerdictLine:
    outcome = outcome_of(limit, figure)
    reason = figure.reason
    if outcome == "unknown" and reason is None:
        # What the host measured gets no sharper with time.
        remedy = LONGER["images" if device is None else figure.counted]
        reason = f"the interval spans the limit: {remedy}"
        if figure.low is None or figure.high is None:
            reason = f"too few independent samples bound it on that side: {remedy}"
        elif not figure.n and limit.metric.kind in BENCH_KINDS:
            reason = "some of the runs are within the limit and some beyond it"
    if outcome == "pass" and valid is not True:
        outcome, reason = (
            "unknown",
            f"the run is not valid: {invalid}" if valid is False else f"validity unknown: {invalid}",
        )
    return VerdictLine(
        metric=limit.metric.name,
        model=subject.name,
        device=device,
        component=limit.component,
        limit=limit.value,
        limit_text=limit.text,
        direction=limit.metric.direction,
        unit=limit.metric.unit,
        measured=figure.value,
        low=figure.low,
        high=figure.high,
        outcome=outcome,
        reason=reason,
        headroom=headroom(limit, figure.value),
        needed_s=figure.needed_s,
        budget_line=limit.line,
        source=figure.source,
    )


def _with_need(
    line: VerdictLine, figure: Figure, limit: Limit, level: float, found: Found[BenchReport] | None = None
) -> VerdictLine:
    """Add how much more would decide a line whose interval spans the limit."""
    if figure.value is None or outcome_of(limit, figure) != "unknown":
        return line
    measurement = measurements_of(found.artifact, limit.component)[0] if found is not None else None
    figures = measurement.figures if measurement is not None else None
    if figures is not None and figures.window_s <= 0:
        return line  # calls that took no time: not a report of ours
    p = PERCENTILES.get(limit.metric.name)
    if figure.counted == "samples" and p is not None and measurement is not None:
        if measurement.latency is None or figures is None:
            return line
        from argus_edge.bench.percentiles import seconds_needed
        from argus_edge.bench.samples import decode

        more = seconds_needed(decode(measurement.latency), p, limit.value, figures.window_s, level) / figures.window_s
        count = figures.count
    else:
        more, count = share_needed(limit, figure, level), figure.n
    if more == float("inf"):
        return line.model_copy(update={"reason": ON_THE_LIMIT})
    if more == 0:
        return line
    if figure.counted != "samples" or figures is None:
        return line.model_copy(update={"needed_samples": math.ceil(more * count), "needed_of": figure.counted})
    seconds = max(1.0, more * figures.window_s)
    return line.model_copy(
        update={"needed_s": seconds, "needed_samples": max(1, round(seconds / figures.window_s * count))}
    )


def _causes(validity: Validity) -> str:
    """Return the causes for a line of a table: a single one in its own words, several by their names."""
    if len(validity.causes) == 1:
        return validity.causes[0].detail
    return ", ".join(dict.fromkeys(cause.code for cause in validity.causes)) or "no cause given"


def _bench_lines(budget: Budget, subject: _Subject, device: str, level: float) -> list[VerdictLine]:
    lines = []
    for limit in budget.limits:
        if limit.metric.kind not in BENCH_KINDS:
            continue
        found = _newest(subject.benches[device], limit)
        validity = found.artifact.validity
        causes = _causes(validity)
        figure = bench_figure(found, limit.metric, limit.component, level)
        line = _line(limit, subject, device, figure, validity.valid, causes)
        lines.append(_with_need(line, figure, limit, level, found))
    return lines


def _eval_lines(
    budget: Budget, subject: _Subject, evals: Sequence[Found[EvalReport]], judges: Sequence[Found[JudgeCalibration]]
) -> list[VerdictLine]:
    limits = [limit for limit in budget.limits if limit.metric.kind in ("score", "cell")]
    if not limits:
        return []
    scores = _scores(subject, judges) if any(limit.metric.kind == "score" for limit in limits) else {}
    lines = []
    for limit in limits:
        if not subject.evals:
            figure = Figure(None, reason="there is no eval report of this model: argus-edge eval MODEL --data …")
        elif limit.metric.kind == "score":
            figure = scores[limit.metric.name]
        else:
            figure = cell_figure(subject.evals, evals, limit.metric.name)
        lines.append(_with_need(_line(limit, subject, None, figure, True, ""), figure, limit, LEVEL))
    return lines


def _scores(subject: _Subject, judges: Sequence[Found[JudgeCalibration]]) -> dict[str, Figure]:
    if not subject.evals:
        return {}
    from argus_edge.score.assemble import score_reports

    scores = score_reports(subject.evals, [], judges).models[0].scores
    source = ", ".join(found.label for found in subject.evals)
    images = {each.name: each.images for found in subject.evals for each in found.artifact.datasets}
    n = sum(images.values())
    return {
        name: Figure(
            part.value,
            part.low,
            part.high,
            part.reason if part.value is None else None,
            source=source,
            n=n,
            counted="images",
        )
        for name, part in (
            ("capability", scores.capability),
            ("consistency", scores.consistency),
            ("robustness", scores.robustness),
        )
    }


def _sentence(line: VerdictLine) -> str:
    measured = format_quantity(line.measured, line.unit)
    where = f" on {line.device}" if line.device else ""
    if line.outcome == "fail":
        return f"{line.model}{where}: {line.metric} is {measured}, the budget allows {line.direction} {line.limit_text}"
    if line.outcome == "unknown":
        return f"{line.model}{where}: {line.metric} cannot be decided: {line.reason}"
    spare = "" if line.headroom is None else f", {line.headroom:.0%} to spare"
    return f"{line.model}{where}: {line.metric} is {measured} of {line.limit_text}{spare}"


def _deciding(lines: Sequence[VerdictLine]) -> VerdictLine:
    """Return the line that decides: the worst failure, else the first unknown, else the one with the least headroom.

    A cosine of 1 is never more than 1 % above a limit of 0.99: parity speaks for the whole only where it fails.
    """
    overall = worst([line.outcome for line in lines])
    return min(
        (line for line in lines if line.outcome == overall),
        key=lambda line: (
            overall != "fail" and line.metric in PARITY,
            line.headroom if line.headroom is not None else 0.0,
        ),
    )


def validate_reports(
    budget: Budget,
    benches: Sequence[Found[BenchReport]],
    evals: Sequence[Found[EvalReport]],
    judges: Sequence[Found[JudgeCalibration]] = (),
    *,
    level: float = LEVEL,
) -> Verdict:
    """Hold reports against a budget.

    Parameters
    ----------
    budget
        What the product can afford.
    benches, evals
        Reports; of several benches of one model on one device the newest counts.
    judges
        Calibrations whose judged means enter capability and consistency, as they do in the score.
    level
        Confidence of the benches' intervals.

    Raises
    ------
    InputError
        There is no report, or none of the budget's device.
    """
    subjects = _subjects(budget, benches, evals)
    if not subjects:
        raise InputError(
            "There is no bench or eval report among the inputs.", next_step="argus-edge bench MODEL --device …"
        )
    needs_bench = any(limit.metric.kind in BENCH_KINDS for limit in budget.limits)
    lines: list[VerdictLine] = []
    boards: list[BoardVerdict] = []
    quorums: list[QuorumVerdict] = []
    outcomes: list[Outcome] = []
    for subject in subjects:
        host_lines = _eval_lines(budget, subject, evals, judges)
        lines += host_lines
        own_boards = []
        for device in sorted(subject.benches):
            board_lines = _bench_lines(budget, subject, device, level)
            lines += board_lines
            together = [*host_lines, *board_lines]
            validities = [found.artifact.validity.valid for found in _counting(budget, subject.benches[device])]
            own_boards.append(
                BoardVerdict(
                    model=subject.name,
                    device=device,
                    outcome=worst([line.outcome for line in together]),
                    valid=False if False in validities else None if None in validities else True,
                    cause=_sentence(_deciding(together)) if together else None,
                )
            )
        boards += own_boards
        if needs_bench and not own_boards:
            lines += [
                _line(
                    limit,
                    subject,
                    budget.device or ANY_DEVICE,
                    Figure(None, reason="there is no bench report"),
                    True,
                    "",
                )
                for limit in budget.limits
                if limit.metric.kind in BENCH_KINDS
            ]
        if budget.quorum is not None:
            quorum = quorum_of(subject.name, budget.quorum, own_boards)
            quorums.append(quorum)
            outcomes += [quorum.outcome, *(line.outcome for line in host_lines)]
        else:
            outcomes += [line.outcome for line in lines if line.model == subject.name]
    return Verdict(
        budget=budget.name,
        budget_source=budget.source,
        outcome=worst(outcomes),
        cause=_cause(worst(outcomes), lines, quorums),
        level=level,
        lines=lines,
        boards=boards,
        quorums=quorums,
        notes=[
            f"{quorum.model}: not reached: {', '.join(quorum.not_reached)}" for quorum in quorums if quorum.not_reached
        ],
        sources=[found.source for group in (benches, evals, judges) for found in group],
    )


def _cause(outcome: Outcome, lines: Sequence[VerdictLine], quorums: Sequence[QuorumVerdict]) -> str:
    for quorum in quorums:
        if quorum.outcome == outcome:
            passed = f"{len(quorum.passed)} of {quorum.total} boards pass, {quorum.required} must"
            if quorum.outcome == "unknown" and quorum.not_reached:
                passed += f"; not reached: {', '.join(quorum.not_reached)}"
            failing = [line for line in lines if line.outcome == "fail" and line.model == quorum.model]
            return f"{quorum.model}: {passed}" + (f"; {_sentence(_deciding(failing))}" if failing else "")
    return _sentence(_deciding(lines))


def validate_files(paths: Iterable[str | Path], *, budget: str | Path, strict: bool = False) -> Verdict:
    """Hold the reports of files and folders against a budget's file.

    Parameters
    ----------
    paths
        Report files, or folders that are searched for them.
    budget
        YAML; see docs/budgets.md.
    strict
        A run that is not valid fails the gate instead of leaving it undecided.
    """
    held = read_budget(budget)
    found = find_reports(paths, (BenchReport, EvalReport, JudgeCalibration))
    verdict = validate_reports(
        held, of_kind(found, BenchReport), of_kind(found, EvalReport), of_kind(found, JudgeCalibration)
    )
    invalid = [board for board in verdict.boards if board.valid is False]
    if strict and invalid and verdict.outcome != "fail":
        verdict.outcome = "fail"
        verdict.cause = f"{invalid[0].model} on {invalid[0].device}: the run is not valid (--strict)"
    return verdict
