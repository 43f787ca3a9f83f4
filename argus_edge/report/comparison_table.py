"""A comparison for a person at a terminal."""

from __future__ import annotations

from collections import Counter
from statistics import fmean

from rich.console import Console
from rich.text import Text

from argus_edge.gate.units import format_quantity
from argus_edge.report.console import stdout_console
from argus_edge.report.tables import titled_table
from argus_edge.schema.comparison import ComparedFigure, Comparison

STYLE = {"better": "green", "worse": "bold red", "too few runs": "yellow"}


def _change(figure: ComparedFigure) -> str:
    if figure.change is None:
        return "–"
    if figure.low is None or figure.high is None:
        return f"{figure.change:+.1%}"
    return f"{figure.change:+.1%} [{figure.low:+.1%}, {figure.high:+.1%}]"


def outcome_words(figure: ComparedFigure) -> str:
    """Return what came out, with how many runs would do where there are too few."""
    if figure.outcome == "too few runs" and figure.runs_needed:
        return f"too few runs (about {figure.runs_needed} a side)"
    return figure.outcome


def print_comparison(comparison: Comparison, console: Console | None = None) -> None:
    """Print each figure's change with its interval, what was dropped, and what else changed."""
    console = console or stdout_console()
    numbers = ("baseline", "candidate", "runs", "change [95 %]")
    columns = ("model", "device", "component", "scenario", "figure", *numbers, "outcome")
    table = titled_table("Candidate against baseline", columns, numbers)
    for figure in comparison.figures:
        table.add_row(
            Text(figure.model),
            Text(figure.device),
            Text(figure.component),
            Text(figure.scenario),
            Text(figure.figure),
            Text(format_quantity(fmean(figure.baseline), figure.unit)),
            Text(format_quantity(fmean(figure.candidate), figure.unit)),
            Text(f"{len(figure.baseline)}/{len(figure.candidate)}" + (" boards" if figure.paired else "")),
            Text(_change(figure)),
            Text(outcome_words(figure), style=STYLE.get(figure.outcome, "")),
        )
    if comparison.figures:
        console.print(table)
    else:
        console.print(Text("Nothing could be compared: no model and device has a valid run on both sides."))
    # A report's repeats that were left out for the same cause are one line.
    dropped = Counter((run.side, run.run, run.device, run.component, run.cause) for run in comparison.dropped)
    for (side, name, device, component, cause), times in dropped.items():
        whose = f"{side} run {name} on {device}" + (f", {component}" if component else "")
        console.print(Text(f"left out: {whose}: {cause}" + (f" ({times} repeats)" if times > 1 else "")))
    for change in comparison.environment:
        if change.expected:
            moved = f"{change.device}: {change.fact}: {change.baseline} -> {change.candidate} (meant to vary)"
            console.print(Text(moved))
    for warning in comparison.warnings:
        console.print(Text(f"warning: {warning}", style="yellow"))
