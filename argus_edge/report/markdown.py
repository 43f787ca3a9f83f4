"""The page as Markdown, for a pull request."""

from __future__ import annotations

from argus_edge.report.cells import Table
from argus_edge.report.page import Page

MARKS = {"good": "✅ ", "bad": "❌ ", "open": "❔ ", "": ""}
ESCAPED = str.maketrans({character: "\\" + character for character in "\\`*_{}[]<>|#~"})


def escape(text: str) -> str:
    """Return text that Markdown shows as it is; HTML in a device's name stays text."""
    return " ".join(text.split()).translate(ESCAPED).replace("&", "&amp;")


def _table(table: Table) -> str:
    lines = [
        f"### {escape(table.title)}",
        "",
        "| " + " | ".join(map(escape, table.columns)) + " |",
        "|" + "|".join("---:" if index in table.numeric else "---" for index in range(len(table.columns))) + "|",
    ]
    lines += ["| " + " | ".join(MARKS[cell.mark] + escape(cell.text) for cell in row) + " |" for row in table.rows]
    lines += ["", *(f"- {escape(note)}" for note in table.notes)]
    return "\n".join(lines).rstrip()


def render_markdown(page: Page) -> str:
    """Return the page: the answer and its cause first, then every table."""
    mark = {"pass": "✅", "fail": "❌", "unknown": "❔"}[page.outcome]
    note = f"({page.next_note})" if page.next_step and page.next_note else page.next_note
    head = f"## {mark} {page.word}: {escape(page.cause)}\n\nNext: {escape(f'{page.next_step} {note}')}"
    notes = [f"- {escape(note)}" for note in page.notes]
    return "\n\n".join([head, *(["\n".join(notes)] if notes else []), *map(_table, page.tables)]) + "\n"
