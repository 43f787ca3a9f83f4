"""What the first screen and the tables say, as plain text and numbers: HTML, Markdown and CSV print the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from argus_edge.errors import InputError
from argus_edge.gate.commands import MOST_S, bench_again, evaluate_for, evaluation_helps, more_helps
from argus_edge.gate.figures import bench_figure
from argus_edge.gate.metrics import METRICS
from argus_edge.gate.originals import check_same_data, original_of
from argus_edge.gate.units import format_quantity
from argus_edge.gate.validate import ANY_DEVICE
from argus_edge.report.cells import MISSING, Cell, Table, number_cell, text_cell
from argus_edge.report.comparison_table import outcome_words
from argus_edge.report.gathered import Gathered
from argus_edge.report.published import CAVEAT, PUBLISHED, QUALITY, SOURCE, quality
from argus_edge.report.score_words import by_rank, score_notes
from argus_edge.report.sizing_table import latency
from argus_edge.report.unit_tables import steps_table, writing_table
from argus_edge.report.verdict_table import interval, remark
from argus_edge.schema.base import Source
from argus_edge.schema.bench import BenchReport, Measurement
from argus_edge.schema.score import Scored
from argus_edge.schema.verdict import VerdictLine
from argus_edge.text import clean, pasted

MOST_PATHS = 3
"""So many paths are written into a command; of more it says REPORT…."""
WORDS = {"pass": "SHIP", "fail": "BLOCK", "unknown": "CANNOT TELL"}


@dataclass(frozen=True)
class Page:
    """The whole page but its plots."""

    outcome: str
    """pass, fail, unknown."""
    word: str
    cause: str
    next_step: str
    """A command to type, where there is one."""
    next_note: str
    """How long it takes, or what it is for."""
    tables: Sequence[Table]
    notes: Sequence[str] = field(default_factory=list)


def _scored_cell(part: Scored) -> Cell:
    if part.value is None:
        return Cell(MISSING, float("inf"))
    interval = "" if part.low is None or part.high is None else f" [{part.low:.3f}, {part.high:.3f}]"
    return Cell(f"{part.value:.3f}{interval}", part.value)


def headline(report: BenchReport) -> Measurement | None:
    """Return the first repeat of what stands for the model."""
    return next((each for each in report.measurements if each.component == report.headline), None)


def validity_words(valid: bool | None) -> str:
    """Return a run's validity in words."""
    return {True: "valid", False: "not valid", None: "cannot tell"}[valid]


def _mark(outcome: str) -> str:
    return {"pass": "good", "fail": "bad", "unknown": "open"}[outcome]


def budget_table(gathered: Gathered) -> Table | None:
    """Return a row for each budget line: measured with its interval, limit, headroom, outcome."""
    if gathered.verdict is None:
        return None
    verdict = gathered.verdict.artifact
    rows = []
    for line in verdict.lines:
        # What a phone shows of a row without scrolling comes first.
        rows.append(
            [
                Cell(
                    {"pass": "pass", "fail": "FAIL", "unknown": "unknown"}[line.outcome],
                    line.outcome,
                    _mark(line.outcome),
                ),
                text_cell(line.metric if line.component is None else f"{line.metric} of {line.component}"),
                Cell(interval(line), float("inf") if line.measured is None else line.measured),
                Cell(f"{'≤' if line.direction == 'at most' else '≥'} {clean(line.limit_text)}", line.limit),
                Cell(MISSING, float("inf")) if line.headroom is None else Cell(f"{line.headroom:+.0%}", line.headroom),
                text_cell(line.model),
                text_cell(line.device or "host"),
                text_cell(remark(line)),
                text_cell(line.source),
            ]
        )
    columns = ("Outcome", "Figure", "Measured [95 %]", "Limit", "Headroom", "Model", "Device", "Why", "Source")
    return Table("budget", f"Budget {clean(verdict.budget)}", columns, rows, verdict.notes, (2, 3, 4))


def boards_table(gathered: Gathered) -> Table | None:
    """Return the board x firmware matrix: what was measured where, and what is missing and why."""
    if not gathered.benches:
        return None
    firmwares = list(dict.fromkeys(_firmware(found.artifact) for found in gathered.benches))
    devices = list(dict.fromkeys(found.artifact.device.name for found in gathered.benches))
    quorums = gathered.verdict.artifact.quorums if gathered.verdict is not None else []
    missing = dict.fromkeys(name for quorum in quorums for name in quorum.not_reached if name not in devices)
    models = list(dict.fromkeys(found.artifact.model.name for found in gathered.benches))
    rows = []
    for device in devices:
        row = [text_cell(device)]
        for firmware in firmwares:
            here = [
                f.artifact
                for f in gathered.benches
                if f.artifact.device.name == device and _firmware(f.artifact) == firmware
            ]
            row.append(_matrix_cell(here, models, device))
        rows.append(row)
    rows += [[text_cell(name), *(Cell("not reached", "", "open") for _ in firmwares)] for name in missing]
    notes = [
        f"{quorum.model}: not reached: {', '.join(quorum.not_reached)}" for quorum in quorums if quorum.not_reached
    ]
    return Table("boards", "Boards and firmware", ("Board", *map(clean, firmwares)), rows, notes)


def _matrix_cell(reports: Sequence[BenchReport], models: Sequence[str], device: str) -> Cell:
    if not reports:
        return Cell(f"not measured: argus-edge bench MODEL --device {pasted(device)}", "", "open")
    absent = [name for name in models if name not in {report.model.name for report in reports}]
    invalid = [report for report in reports if report.validity.valid is not True]
    parts = [f"{len(reports)} run{'s' if len(reports) > 1 else ''}"]
    if invalid:
        causes = [cause.code for report in invalid for cause in report.validity.causes]
        parts.append(f"{len(invalid)} not valid ({', '.join(dict.fromkeys(causes)) or 'no cause given'})")
    if absent:
        parts.append(f"missing: {', '.join(clean(name) for name in absent)}")
    return Cell("; ".join(parts), len(reports), "bad" if invalid else "open" if absent else "good")


def _firmware(report: BenchReport) -> str:
    facts = report.device.facts
    return facts.firmware or facts.kernel or "unknown firmware"


def runs_table(gathered: Gathered) -> Table | None:
    """Return a row for each bench report: cold and hot latency, provider, power mode, throttling, memory, validity."""
    rows = []
    for found in gathered.benches:
        report = found.artifact
        measured = headline(report)
        if measured is None:
            continue
        figures, facts = measured.figures, report.device.facts
        p50, p95 = (bench_figure(found, METRICS[name], None) for name in ("latency_p50", "latency_p95"))
        provider = ", ".join(measured.providers_used) or measured.provider_requested or MISSING
        available = facts.memory_total_bytes
        share = measured.memory_headline.bytes / available if measured.memory_headline.bytes and available else None
        memory = format_quantity(measured.memory_headline.bytes, "bytes")
        causes = ", ".join(dict.fromkeys(cause.code for cause in report.validity.causes))
        rows.append(
            [
                text_cell(report.model.name),
                text_cell(report.model.precision),
                text_cell(report.device.name),
                text_cell(report.setup.scenario.name),
                number_cell(p50.value, "s"),
                number_cell(p95.value, "s"),
                number_cell(figures.cold_p50_s if figures else None, "s"),
                number_cell(figures.hot_p50_s if figures else None, "s"),
                text_cell(f"{report.setup.runtime} / {provider}", "bad" if measured.provider_fell_back else ""),
                text_cell(facts.power_mode),
                text_cell(facts.throttle),
                Cell(
                    memory if share is None else f"{memory} ({share:.0%} of {format_quantity(available, 'bytes')})",
                    measured.memory_headline.bytes or float("inf"),
                ),
                number_cell(measured.energy.joules_per_inference if measured.energy else None, "J"),
                Cell(
                    validity_words(report.validity.valid) + (f" ({clean(causes)})" if causes else ""),
                    str(report.validity.valid),
                    {True: "good", False: "bad", None: "open"}[report.validity.valid],
                ),
                text_cell(found.label),
            ]
        )
    if not rows:
        return None
    columns = (
        "Model", "Precision", "Device", "Scenario", "p50", "p95", "Cold p50", "Hot p50", "Runtime / provider",
        "Power mode", "Throttle word", "Peak memory", "Energy", "Validity", "Source",
    )  # fmt: skip
    return Table("runs", "Runs", columns, rows, numeric=(4, 5, 6, 7, 11, 12))


def drop_table(gathered: Gathered) -> Table | None:
    """Return the quality drop of each shipped file against the fp32 model, cell by cell."""
    rows, notes = [], []
    for found in gathered.evals:
        info = found.artifact.model
        for cell in found.artifact.cells:
            baseline = original_of(found, gathered.evals, cell.dataset)
            if baseline is None or baseline is found:
                continue
            try:
                check_same_data(found, baseline, cell.dataset)
            except InputError as error:
                notes.append(f"{info.name} on {cell.dataset} is not held against fp32: {error.what} ({error.where})")
                continue
            reference = next(
                (
                    other.clean.headline
                    for other in baseline.artifact.cells
                    if (other.task, other.dataset) == (cell.task, cell.dataset)
                ),
                None,
            )
            if reference is not None:
                rows.append(
                    [
                        text_cell(info.name),
                        text_cell(info.precision),
                        text_cell(f"{cell.task} on {cell.dataset}"),
                        number_cell(reference, "share"),
                        number_cell(cell.clean.headline, "share"),
                        Cell(f"{cell.clean.headline - reference:+.3f}", cell.clean.headline - reference),
                        text_cell(f"{found.label} against {baseline.label}"),
                    ]
                )
    columns = ("Model", "Precision", "Cell", "fp32", "Shipped", "Change", "Source")
    if not rows and not notes:
        return None
    return Table("drop", "Quality of the shipped file", columns, rows, list(dict.fromkeys(notes)), (3, 4, 5))


def change_table(gathered: Gathered) -> Table | None:
    """Return what changed since the last release."""
    if gathered.comparison is None:
        return None
    comparison = gathered.comparison.artifact
    rows = [
        [
            text_cell(figure.model),
            text_cell(figure.device),
            text_cell(figure.component),
            text_cell(figure.scenario),
            text_cell(figure.figure),
            Cell(MISSING, 0.0) if figure.change is None else Cell(f"{figure.change:+.1%}", figure.change),
            Cell(
                MISSING if figure.low is None or figure.high is None else f"{figure.low:+.1%} … {figure.high:+.1%}",
                figure.low or 0.0,
            ),
            Cell(
                outcome_words(figure),
                figure.outcome,
                {"better": "good", "worse": "bad", "too few runs": "open"}.get(figure.outcome, ""),
            ),
            text_cell(gathered.comparison.label),
        ]
        for figure in comparison.figures
    ]
    notes = [f"warning: {warning}" for warning in comparison.warnings]
    columns = ("Model", "Device", "Component", "Scenario", "Figure", "Change", "95 % interval", "Outcome", "Source")
    return Table("change", "Change from the last release", columns, rows, notes, (5, 6))


def argus_table(gathered: Gathered) -> Table | None:
    """Return capability, consistency, robustness, efficiency and ARGUS per model and device."""
    if gathered.score is None:
        return None
    report = gathered.score.artifact
    rows = [
        [
            Cell(MISSING, float("inf"))
            if device is None or device.rank is None
            else Cell(str(device.rank), device.rank),
            text_cell(model.name),
            text_cell(device.device if device else None),
            _scored_cell(model.scores.capability),
            _scored_cell(model.scores.consistency),
            _scored_cell(model.scores.robustness),
            _scored_cell(device.efficiency.efficiency) if device else Cell(MISSING, float("inf")),
            _scored_cell(device.argus) if device else Cell(MISSING, float("inf")),
            Cell(MISSING, float("inf"))
            if device is None or device.first_share is None
            else Cell(f"{device.first_share:.0%}", device.first_share),
            text_cell(gathered.score.label),
        ]
        for model, device in by_rank(report)
    ]
    columns = (
        "Rank", "Model", "Device", "Capability", "Consistency", "Robustness", "Efficiency", "ARGUS",
        "First under", "Source",
    )  # fmt: skip
    return Table("argus", "ARGUS", columns, rows, score_notes(report), (0, 3, 4, 5, 6, 7, 8))


def published_table() -> Table:
    """Return the published table, labelled as published."""
    rows = [
        [
            text_cell(row.model),
            number_cell(None if row.latency_ms is None else row.latency_ms / 1e3, "s"),
            number_cell(None if row.memory_gb is None else row.memory_gb * 1e9, "bytes"),
            number_cell(row.robustness, "share"),
            number_cell(row.argus, "share"),
            *(Cell(text, figure) for text, figure in quality(row)),
        ]
        for row in PUBLISHED
    ]
    columns = ("Model", "Latency", "Memory", "Robustness", "ARGUS", *QUALITY)
    return Table("published", "Published figures", columns, rows, (f"{SOURCE}; {CAVEAT}.",), range(1, len(columns)))


def sizing_table(gathered: Gathered) -> Table | None:
    """Return which combinations fit the budget."""
    if gathered.sizing is None:
        return None
    marks = {"fits": "good", "does not fit": "bad", "cannot fit": "bad"}
    rows = [
        [
            Cell(each.fit, each.fit, marks.get(each.fit, "open")),
            text_cell(each.model),
            text_cell(each.precision),
            text_cell(each.runtime and f"{each.runtime}{f', {each.threads} threads' if each.threads else ''}"),
            text_cell(each.device),
            Cell(MISSING, float("inf")) if each.margin is None else Cell(f"{each.margin:+.0%}", each.margin),
            Cell(
                latency(each),
                next((value for value in (each.latency_s, each.floor_s) if value is not None), float("inf")),
            ),
            number_cell(each.memory_bytes, "bytes"),
            number_cell(each.energy_j, "J"),
            number_cell(each.argus, "share"),
            Cell("*" if each.pareto else MISSING, float(not each.pareto)),
            text_cell(each.reason),
            text_cell(gathered.sizing.label),
        ]
        for each in gathered.sizing.artifact.combinations
    ]
    columns = (
        "Fit", "Model", "Precision", "Runtime", "Device", "Margin", "Latency", "Memory", "Energy", "ARGUS", "Front",
        "Why", "Source",
    )  # fmt: skip
    notes = list(gathered.sizing.artifact.notes)
    if over := gathered.sizing.artifact.pareto_over:
        notes.insert(0, f"*: nothing else is at least as good in {', '.join(over)}.")
    return Table("sizing", "What fits", columns, rows, notes, (5, 6, 7, 8, 9))


def next_step(gathered: Gathered) -> tuple[str, str]:
    """Return the one command to type next, and apart from it, so that it can be pasted, how long it takes."""
    verdict = gathered.verdict.artifact if gathered.verdict else None
    few = 0 < len(gathered.given) <= MOST_PATHS
    reports = " ".join(map(pasted, gathered.given)) if few else "REPORT…"
    if verdict is None:
        return f"argus-edge validate {reports} --budget FILE", "seconds"
    budget = gathered.budget.path if gathered.budget else verdict.budget_source.name
    if verdict.outcome == "fail":
        return f"argus-edge size {reports} --budget {pasted(budget)}", "seconds: which other combination fits"
    undecided = [line for line in verdict.lines if line.outcome == "unknown"]
    for line in undecided:
        if evaluation_helps(line):
            return evaluate_for(line, _place(gathered, line.model)), ""
        if line.device and (line.source is None or more_helps(line)):
            return _to_measure(gathered, line, budget)
    if undecided:
        line = undecided[0]
        where = f" on {clean(line.device)}" if line.device else ""
        return "", f"no longer run decides {clean(line.metric)}{where}: {clean(line.reason or '')}"
    return "", "ship it; keep these reports as the baseline of argus-edge compare"


def _place(gathered: Gathered, model: str) -> Path | str:
    """Return the folder of the bundle of a name, where there is one among the inputs; else the name."""
    folders = [found.path.parent for found in gathered.bundles if found.artifact.name == model]
    return folders[0] if len(folders) == 1 else model


def _to_measure(gathered: Gathered, line: VerdictLine, budget: str) -> tuple[str, str]:
    place = _place(gathered, line.model)
    benched = [
        found
        for found in gathered.benches
        if (found.artifact.model.name, found.artifact.device.name) == (line.model, line.device)
    ]
    if not benched:
        device = "NAME" if line.device == ANY_DEVICE else pasted(line.device)
        return f"argus-edge bench {pasted(place)} --device {device}", ""
    read = max(benched, key=lambda found: (found.label == line.source, found.artifact.created))
    command = bench_again(read.artifact, place, budget, needed_s=line.needed_s)
    return command, f"about {line.needed_s:.0f} s" if line.needed_s else f"up to {MOST_S / 60:g} minutes"


def build_page(gathered: Gathered) -> Page:
    """Return everything the page says in words and tables."""
    verdict = gathered.verdict.artifact if gathered.verdict else None
    outcome = verdict.outcome if verdict else "unknown"
    tables = [
        table
        for table in (
            budget_table(gathered),
            boards_table(gathered),
            change_table(gathered),
            runs_table(gathered),
            writing_table(gathered.benches),
            steps_table(gathered.benches),
            drop_table(gathered),
            sizing_table(gathered),
            argus_table(gathered),
            published_table() if gathered.score is not None else None,
        )
        if table is not None
    ]
    command, note = next_step(gathered)
    return Page(
        outcome=outcome,
        word=WORDS[outcome],
        cause=clean(verdict.cause, limit=400) if verdict else "there is no budget to hold these reports against",
        next_step=command,
        next_note=note,
        tables=tables,
        notes=[clean(note, limit=400) for note in gathered.notes],
    )


def sources(gathered: Gathered) -> list[Source]:
    """Return every file that the page is made from."""
    single = (gathered.score, gathered.verdict, gathered.comparison, gathered.sizing)
    groups = (gathered.benches, gathered.evals, gathered.bundles)
    found = [each.source for group in groups for each in group]
    return [*found, *(each.source for each in single if each is not None)]
