"""The list of recorded runs for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from argus_edge.report.units import milliseconds
from argus_edge.store.records import Record
from argus_edge.text import clean

VERDICTS = {True: ("valid", "green"), False: ("not valid", "red"), None: ("", "")}


def runs_table(records: Sequence[Record], standing: Mapping[str, str]) -> Table:
    """Return the table of runs.

    Parameters
    ----------
    records
        The newest first.
    standing
        Run id -> how it stands on its device, for those that have not ended.
    """
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("run", no_wrap=True)  # to be copied
    for name in ("started (UTC)", "device", "model", "scenario"):
        table.add_column(name, overflow="fold")
    table.add_column("p50", justify="right", no_wrap=True)
    table.add_column("state", overflow="fold")
    for record in records:
        state = Text(standing.get(record.id, record.state))
        if record.kind == "eval":
            state = Text("evaluated", style="green")
        elif record.id not in standing and record.has_report and record.state == "done":
            word, style = VERDICTS[record.valid]
            state = Text(word or "cannot tell", style=style or "yellow")
        elif record.error and record.id not in standing:
            state = Text(f"{record.state}: {clean(record.error, limit=120)}")
        table.add_row(
            record.id,
            record.created.strftime("%Y-%m-%d %H:%M"),
            clean(record.device, limit=40),
            clean(record.model, limit=40),
            record.scenario,
            milliseconds(record.p50_s) if record.p50_s is not None else "",
            state,
        )
    return table
