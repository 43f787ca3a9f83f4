"""The results of several benches for a terminal, a line each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from argus_edge.report.fleet_view import result_text
from argus_edge.report.units import megabytes, milliseconds
from argus_edge.text import clean

if TYPE_CHECKING:
    from argus_edge.bench.fleet import Result


def fleet_table(results: Sequence[Result]) -> Table:
    """Return the table of what came of each bench."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("model", "board"):
        table.add_column(name, overflow="fold")
    for name in ("p50", "p99", "memory"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("result", overflow="fold")
    table.add_column("run", no_wrap=True)  # to be copied
    for result in results:
        report = result.outcome.report if result.outcome else None
        summary = report.summary if report else {}
        p50, p99 = (summary[name].value if name in summary else None for name in ("p50", "p99"))
        memory = [each.memory_headline.bytes for each in report.measurements if each.memory_headline] if report else []
        text, colour = result_text(result)
        table.add_row(
            Text(clean(result.task.model, limit=60)),
            result.task.entry.name,
            milliseconds(p50),
            milliseconds(p99),
            megabytes(max((size for size in memory if size is not None), default=None)),
            Text(text, style=colour),
            report.run if report else "",
        )
    return table
