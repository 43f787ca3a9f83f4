"""Where a command's data goes: `--json FILE|-`, with results on stdout and messages on stderr."""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def json_option(function: F) -> F:
    """Add ``--json FILE|-`` to a command; the value is passed on as ``json_path``."""
    return click.option(
        "--json", "json_path", metavar="FILE|-", help="Write the result as JSON to FILE; - is clean JSON on stdout."
    )(function)


# What our tables are drawn with, on a terminal or in a file that is not Unicode; the rest becomes a question mark.
PLAIN = str.maketrans("–—−·…×✓✗µ°≤≥›’‘“”", "---*.xv!u <>>''\"\"")


def _plainly(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)  # the handler is registered for writing alone
    text = error.object[error.start : error.end].translate(PLAIN)
    return text.encode("ascii", "replace").decode(), error.end


def open_closed() -> None:
    """Give a process that was started without stdin, stdout or stderr (``>&-``) the null device in their place.

    Else the next file that is opened would get the number, and be written what others print.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115  (for the process's life)
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115


def write_plainly() -> None:
    """Let stdout and stderr take any text in any locale: what their encoding lacks is written in plainer letters.

    A table must not end in a traceback, after a run of minutes, because of a dash.
    """
    codecs.register_error("argus-edge-plain", _plainly)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="argus-edge-plain")


def emit_json(text: str, json_path: str) -> None:
    """Write a JSON text to stdout (``-``), in UTF-8 whatever the locale, or whole to a file."""
    if json_path == "-":
        click.echo(text.encode(), nl=not text.endswith("\n"))
    else:
        from argus_edge.artifacts import write_text

        write_text(json_path, text if text.endswith("\n") else text + "\n")


def say(message: str) -> None:
    """Write a message to stderr; what a board or a file put into it cannot steer the terminal."""
    from argus_edge.text import printable

    click.echo(printable(message), err=True)


def report_path(out: str | None, run: str, *, several: bool) -> Path:
    """Return where a report goes: the file named, or RUN.json in the folder named or the current one."""
    if out is None:
        return Path(f"{run}.json")
    if out.endswith("/") or several or Path(out).is_dir():
        return Path(out, f"{run}.json")
    return Path(out)
