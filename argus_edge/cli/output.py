"""Where a command's data goes: `--json FILE|-`, with results on stdout and messages on stderr."""

from __future__ import annotations

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


def emit_json(text: str, json_path: str) -> None:
    """Write a JSON text to stdout (``-``) or whole to a file."""
    if json_path == "-":
        click.echo(text, nl=not text.endswith("\n"))
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
