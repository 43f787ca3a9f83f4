"""The console that tables are printed on: the terminal's own width, or wide enough for a table in a file or a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table

from argus_edge.text import printable

PIPE_WIDTH = 160


class SafeConsole(Console):
    """A console on which no text, whoever wrote it, can steer the terminal: only rich's own sequences get through.

    A table with columns that must not be wrapped is as wide as it needs to be, up to ``PIPE_WIDTH``: where the terminal
    is narrower, the terminal wraps its lines. What is folded into columns of four letters can neither be read nor
    copied.
    """

    def print(self, *objects: Any, **how: Any) -> None:
        """Print as rich does; a table in its own width."""
        width = self.width
        free = self.options.update(width=PIPE_WIDTH)
        for each in objects:
            if isinstance(each, Table) and any(column.no_wrap for column in each.columns):
                self.width = max(self.width, self.measure(each, options=free).maximum)
        try:
            super().print(*objects, **how)
        finally:
            self.width = width

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Give the segments as rich does, without control characters and escape sequences in their text."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


def stdout_console() -> Console:
    """Return a console on stdout; without a terminal there is no width to fit, and a cut table helps nobody."""
    return SafeConsole() if sys.stdout.isatty() else SafeConsole(width=PIPE_WIDTH)


def stderr_console(stream: IO[str] | None = None) -> Console:
    """Return a console on stderr, or on another stream."""
    return SafeConsole(file=stream or sys.stderr, highlight=False, soft_wrap=True)
