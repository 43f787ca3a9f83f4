"""The console that tables are printed on: the terminal's own width, or wide enough for a table in a file or a pipe."""

from __future__ import annotations

import sys

from rich.console import Console

PIPE_WIDTH = 160


def stdout_console() -> Console:
    """Return a console on stdout; without a terminal there is no width to fit, and a cut table helps nobody."""
    return Console() if sys.stdout.isatty() else Console(width=PIPE_WIDTH)
