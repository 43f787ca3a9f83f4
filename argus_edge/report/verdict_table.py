"""A verdict for a person at a terminal: the answer first, then every line."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from argus_edge.gate.units import format_quantity
from argus_edge.report.console import stdout_console
from argus_edge.report.tables import titled_table
from argus_edge.schema.verdict import Verdict, VerdictLine

HEADLINE = {"pass": ("SHIP", "bold green"), "fail": ("BLOCK", "bold red"), "unknown": ("CANNOT TELL", "bold yellow")}
MARK = {"pass": ("pass", "green"), "fail": ("FAIL", "bold red"), "unknown": ("unknown", "yellow")}


def interval(line: VerdictLine) -> str:
    """Return what was measured with its interval; "?" for a side that is not bounded."""
    if line.measured is None:
        return "–"
    if line.low == line.high == line.measured:
        return format_quantity(line.measured, line.unit)
    low = "?" if line.low is None else format_quantity(line.low, line.unit)
    high = "?" if line.high is None else format_quantity(line.high, line.unit)
    return f"{format_quantity(line.measured, line.unit)} [{low}, {high}]"


def remark(line: VerdictLine) -> str:
    """Return why a line came out as it did, and how much more would decide it."""
    parts = [line.reason or ""]
    if line.needed_samples:
        parts.append(f"about {line.needed_samples:,} more {line.needed_of}")
    if line.needed_s:
        parts.append(f"about {line.needed_s:.0f} s")
    return "; ".join(part for part in parts if part)


def print_verdict(verdict: Verdict, console: Console | None = None) -> None:
    """Print the outcome, the one line that caused it, and a table of all lines."""
    console = console or stdout_console()
    word, style = HEADLINE[verdict.outcome]
    console.print(Text.assemble((word, style), "  ", Text(verdict.cause)))
    numbers = (f"measured [{100 * verdict.level:.4g} %]", "limit", "headroom")
    columns = ("model", "device", "metric", *numbers, "outcome", "remark")
    table = titled_table(f"Budget {verdict.budget}", columns, numbers)
    for line in verdict.lines:
        mark, colour = MARK[line.outcome]
        name = line.metric if line.component is None else f"{line.metric} of {line.component}"
        table.add_row(
            Text(line.model),
            Text(line.device or "host"),
            Text(name),
            Text(interval(line)),
            Text(f"{'≤' if line.direction == 'at most' else '≥'} {line.limit_text}"),
            Text("–" if line.headroom is None else f"{line.headroom:+.0%}"),
            Text(mark, style=colour),
            Text(remark(line)),
        )
    console.print(table)
    for quorum in verdict.quorums:
        console.print(
            Text(
                f"{quorum.model}: {len(quorum.passed)} of {quorum.total} boards pass, {quorum.required} must; "
                f"failed: {', '.join(quorum.failed) or 'none'}; undecided: {', '.join(quorum.unknown) or 'none'}; "
                f"not reached: {', '.join(quorum.not_reached) or 'none'}"
            )
        )
