"""One argument vector as the one string that SSH carries, for a login shell that may be sh, bash, zsh, fish or csh."""

from __future__ import annotations

import re
from collections.abc import Sequence

_BARE = re.compile(r"[A-Za-z0-9_@+:,./-]+")
# What single quotes do not protect everywhere: fish reads backslashes in them, csh exclamation marks and line ends.
_UNSAFE = re.compile(r"['\\!\x00-\x1f\x7f]")


def command_line(argv: Sequence[str]) -> str:
    r"""Return the string that makes any login shell run exactly this argument vector.

    An argument of plain characters stands as it is, one with blanks or other marks in single quotes. Where an argument
    holds what shells read differently inside quotes, the whole vector travels as octal escapes that only ``/bin/sh``
    decodes.

    Raises
    ------
    ValueError
        An argument holds a NUL character, which no process can be given, or there is none.

    Examples
    --------
    >>> command_line(["python3", "/home/pi/agent.pyz", "probe"])
    'python3 /home/pi/agent.pyz probe'
    >>> command_line(["echo", "a b;$c"])
    "echo 'a b;$c'"
    """
    if not argv or any("\0" in argument for argument in argv):
        raise ValueError("a command needs at least one argument, and none may hold a NUL character")
    if not any(_UNSAFE.search(argument) for argument in argv):
        return " ".join(argument if _BARE.fullmatch(argument) else f"'{argument}'" for argument in argv)
    quoted = " ".join("'" + argument.replace("'", "'\\''") + "'" for argument in argv)
    octal = "".join(f"\\0{byte:03o}" for byte in f"exec {quoted}".encode("utf-8", "surrogateescape"))
    return f"""/bin/sh -c 'eval "$(printf %b "$0")"' '{octal}'"""
