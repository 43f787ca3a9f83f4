"""Cells and tables as plain text and numbers, whatever prints them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argus_edge.gate.units import format_quantity
from argus_edge.text import clean

MISSING = "–"


@dataclass(frozen=True)
class Cell:
    """A cell of a table: what a person reads, and what it is sorted by."""

    text: str
    sort: float | str = ""
    mark: str = ""
    """good, bad, open, or nothing: never the only carrier of the meaning."""


@dataclass(frozen=True)
class Table:
    """A table of the page."""

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()
    numeric: Sequence[int] = ()

    def __post_init__(self) -> None:
        """Make title and notes fit to be shown: names out of reports stand in them."""
        object.__setattr__(self, "title", clean(self.title))
        object.__setattr__(self, "notes", [clean(note) for note in self.notes])


def text_cell(text: str | None, mark: str = "") -> Cell:
    """Return a cell of untrusted text, made fit to be shown."""
    shown = clean(text, limit=200) if text else MISSING
    return Cell(shown, shown.lower(), mark)


def number_cell(value: float | None, unit: str, mark: str = "") -> Cell:
    """Return a cell of a quantity; missing ones sort last."""
    return Cell(format_quantity(value, unit), float("inf") if value is None else value, mark)
