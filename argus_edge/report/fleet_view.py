"""How benches on boards stand: a progress line for one board, a live table for several, plain lines elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from argus_edge.bench.watching import Nobody
from argus_edge.report.console import stderr_console
from argus_edge.report.progress import Progress, ProgressLine, sending
from argus_edge.report.units import milliseconds
from argus_edge.schema.agent import Event
from argus_edge.text import clean

if TYPE_CHECKING:
    from argus_edge.bench.fleet import Result, View
    from argus_edge.bench.watching import Listener

REDRAWS_PER_S = 4
NOTE = "note: "
ENDED = {True: ("valid", "green"), False: ("not valid", "red"), None: ("cannot tell", "yellow")}


def fleet_view(boards: Sequence[str], stream: IO[str] | None = None) -> View:
    """Return the view that fits: so many boards, on a terminal or not.

    Parameters
    ----------
    boards
        Their names.
    stream
        Where to; None: stderr.
    """
    console = stderr_console(stream)
    if len(boards) == 1:
        return OneBoard(console.file)
    return LiveTable(boards, console) if console.is_terminal else PlainLines(console)


def result_text(result: Result) -> tuple[str, str]:
    """Return what came of a bench, in a few words, and their colour."""
    error = result.error or (result.outcome and result.outcome.error)
    if error is not None:
        return clean(getattr(error, "what", "") or f"{type(error).__name__}: {error}", limit=300), "red"
    if result.outcome is None:
        return "", ""
    report = result.outcome.report
    word, colour = ENDED[report.validity.valid]
    p50 = report.summary.get("p50")
    return (f"p50 {milliseconds(p50.value)}, {word}" if p50 and p50.value is not None else word), colour


class OneBoard:
    """A single board: its progress line, and its messages as they are."""

    def __init__(self, stream: IO[str]) -> None:
        self._line = ProgressLine(stream)

    def board(self, name: str) -> Listener:
        """Return the progress line."""
        return self._line

    def begin(self, name: str, model: str, number: int, count: int) -> None:
        """Say which of several models it is."""
        if count > 1:
            self._line.say(f"[{number}/{count}] {model}")

    def end(self, name: str, result: Result) -> None:
        """Take the line away."""
        self._line.quiet()

    def say(self, text: str) -> None:
        """Write a message."""
        self._line.say(text)

    def close(self) -> None:
        """Take the line away."""
        self._line.quiet()


class PlainLines:
    """Several boards without a terminal: every message on a line of its own, with the board's name before it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = threading.Lock()

    def board(self, name: str) -> Listener:
        """Return a listener that writes the board's messages."""
        return _Prefixed(lambda text: self.say(f"{name}: {text}"))

    def begin(self, name: str, model: str, number: int, count: int) -> None:
        """Say which of several models it is."""
        if count > 1:
            self.say(f"{name}: [{number}/{count}] {model}")

    def end(self, name: str, result: Result) -> None:
        """Say what came of it."""
        self.say(f"{name}: {'ended' if result.outcome else 'error'}: {result_text(result)[0]}")

    def say(self, text: str) -> None:
        """Write a message."""
        with self._lock:
            self._console.print(Text(text))

    def close(self) -> None:
        """Nothing to take away."""


class _Prefixed(Nobody):
    """A listener that passes messages on and nothing else."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def say(self, text: str) -> None:
        """Pass a message on."""
        self._say(text)


class LiveTable:
    """Several boards on a terminal: a row each, redrawn in place; notes scroll by above.

    The boards' threads change rows under a lock; the table is drawn in a thread of its own.
    """

    def __init__(self, boards: Sequence[str], console: Console) -> None:
        self._console = console
        self._lock = threading.Lock()
        self._rows = {name: _Row() for name in dict.fromkeys(boards)}
        self._live = Live(get_renderable=self._table, console=console, transient=True, refresh_per_second=REDRAWS_PER_S)
        self._live.start()

    def board(self, name: str) -> Listener:
        """Return the listener that keeps a board's row."""
        return _RowListener(self, name, self._rows[name])

    def begin(self, name: str, model: str, number: int, count: int) -> None:
        """Begin the row anew."""
        with self._lock:
            row = self._rows[name]
            row.progress, row.now = Progress(), "connecting"
            row.model = f"{model} ({number}/{count})" if count > 1 else model

    def end(self, name: str, result: Result) -> None:
        """Show what came of it."""
        with self._lock:
            row = self._rows[name]
            row.now, row.count = "failed" if result.outcome is None or result.outcome.error else "done", ""
            row.result, row.colour = result_text(result)

    def say(self, text: str) -> None:
        """Write a message above the table."""
        self._console.print(Text(text))

    def close(self) -> None:
        """Take the table away."""
        self._live.stop()

    def show(self, row: _Row, now: str, count: str) -> None:
        """Change what a row says is done now, and how far it has come."""
        with self._lock:
            row.now, row.count = now, count

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        for heading in ("board", "model", "now", "progress"):
            table.add_column(heading, no_wrap=True, overflow="ellipsis")
        table.add_column("°C", justify="right", no_wrap=True)
        table.add_column("result", no_wrap=True, overflow="ellipsis")
        with self._lock:
            for name, row in self._rows.items():
                heat = row.progress.temperature
                table.add_row(
                    name,
                    Text(clean(row.model, limit=60)),
                    Text(row.now),
                    row.count,
                    "" if heat is None else f"{heat:.0f}",
                    Text(row.result, style=row.colour),
                )
        return table


class _Row:
    """What the table shows of one board."""

    def __init__(self) -> None:
        self.model = ""
        self.now = "waiting"
        self.count = ""
        self.result = ""
        self.colour = ""
        self.progress = Progress()


class _RowListener(Nobody):
    """Keeps one board's row, which stays when nothing more comes."""

    def __init__(self, table: LiveTable, name: str, row: _Row) -> None:
        self._table = table
        self._name = name
        self._row = row

    def say(self, text: str) -> None:
        """Show what is done now; a note stays above the table."""
        if text.startswith(NOTE):
            self._table.say(f"{self._name}: {text}")
        else:
            self._table.show(self._row, clean(text, limit=120), "")

    def transfer(self, done: int, total: int) -> None:
        """Show how much has been sent."""
        self._table.show(self._row, sending(done, total), "")

    def started(self, run: str, stop: Callable[[], object]) -> None:
        """Show that the run is about to start."""
        self._table.show(self._row, "starting", "")

    def event(self, event: Event) -> None:
        """Show what the agent says."""
        progress = self._row.progress
        progress.event(event)
        self._table.show(self._row, progress.phase, progress.count)
