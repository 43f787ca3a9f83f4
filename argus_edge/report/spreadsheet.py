"""The page's tables as CSV, one file; a cell that a spreadsheet would take for a formula is quoted as text."""

from __future__ import annotations

import csv
import io

from argus_edge.report.page import Page
from argus_edge.text import safe_cell


def render_csv(page: Page) -> str:
    """Return every table's rows in long form: table, row, column, text, value."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["table", "row", "column", "text", "value"])
    writer.writerow(["verdict", 1, "outcome", page.word, page.outcome])
    writer.writerow(["verdict", 1, "cause", safe_cell(page.cause), ""])
    for table in page.tables:
        for index, row in enumerate(table.rows, start=1):
            for column, cell in zip(table.columns, row, strict=True):
                value = cell.sort if isinstance(cell.sort, (int, float)) and cell.sort != float("inf") else ""
                writer.writerow([table.name, index, safe_cell(column), safe_cell(cell.text), value])
    return buffer.getvalue()
