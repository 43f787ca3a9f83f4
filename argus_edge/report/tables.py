"""Tables for a terminal: a title to the left, numbers to the right, and text that is never taken for markup."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.table import Table
from rich.text import Text


def titled_table(title: str, columns: Sequence[str], right: Collection[str], caption: str | None = None) -> Table:
    """Return an empty table.

    Parameters
    ----------
    columns
        Headings.
    right
        Those whose cells are numbers.
    """
    table = Table(
        title=Text(title),
        title_justify="left",
        caption=None if caption is None else Text(caption),
        caption_justify="left",
    )
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left")
    return table
