"""Text from a board or a file, made fit for a terminal: no control or escape sequences, one bounded line."""

from __future__ import annotations

import re
import shlex

# CSI, OSC (ended by BEL or ST), other string sequences, and two-character escapes, in their 7-bit and 8-bit forms.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)"
    r"|\x1b[ -/]*[0-~]"
)
# C0 and C1 controls, and the marks that reorder or hide text (bidirectional overrides, zero width, line separators);
# lone surrogates, which no terminal can be sent.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")

ELLIPSIS = "…"
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def clean(text: str, *, limit: int = 500, lines: bool = False) -> str:
    r"""Return untrusted text as it may be shown.

    Parameters
    ----------
    text
        Anything a board, a model file or a dataset said.
    limit
        Longest result in characters; what is longer ends in an ellipsis.
    lines
        Keep line breaks; otherwise all white space becomes single blanks.

    Examples
    --------
    >>> clean("\x1b[31mhot\x1b[0m\x07\nboard")
    'hot board'
    >>> clean("x" * 10, limit=4)
    'xxx…'
    """
    # Nothing beyond this can be shown, and the expressions need not walk through gigabytes.
    text = text[: 20 * limit + 1000]
    text = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    # A carriage return or a vertical tab overwrites what stood there: a blank shows that something was.
    text = _CONTROLS.sub(lambda match: " " if match.group() in "\r\v\f\u2028\u2029" else "", text)
    text = "\n".join(line.rstrip() for line in text.split("\n")).strip("\n") if lines else " ".join(text.split())
    return text if len(text) <= limit else text[: max(limit - 1, 0)] + ELLIPSIS


def first_line(error: BaseException, limit: int = 300) -> str:
    r"""Return the first line of what an error says, for it may say pages; its type where it says nothing.

    Examples
    --------
    >>> first_line(ValueError("no such shape\nof many")), first_line(ValueError())
    ('no such shape', 'ValueError')
    """
    lines = str(error).strip().splitlines()
    return lines[0][:limit] if lines else type(error).__name__


def printable(text: str) -> str:
    r"""Return a text of our own making, of which a part may be a stranger's, without what would steer a terminal.

    Line breaks and tabs stay; nothing is cut.

    Examples
    --------
    >>> printable("two\n  lines\x1b]0;title\x07")
    'two\n  lines'
    """
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


def pasted(text: object) -> str:
    r"""Return a word of a command line that a person will paste into a shell: it runs nothing of its own.

    Examples
    --------
    >>> print(pasted("clip-int8"), pasted("$(reboot)"), pasted("a b\x1b[2J"))
    clip-int8 '$(reboot)' 'a b'
    """
    return shlex.quote(clean(str(text), limit=1000))


def safe_cell(text: str) -> str:
    """Return a CSV cell that no spreadsheet evaluates: what begins like a formula gets an apostrophe, a number not.

    Examples
    --------
    >>> safe_cell("=1+1"), safe_cell("-0.5")
    ("'=1+1", '-0.5')
    """
    if text.startswith(FORMULA_STARTS) and not _is_number(text):
        return "'" + text
    return text


def _is_number(text: str) -> bool:
    try:
        float(text.rstrip("%"))
    except ValueError:
        return False
    return True
