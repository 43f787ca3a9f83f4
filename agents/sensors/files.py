"""Small files of /sys and /proc: found below an injectable root, kept open, read again by ``pread``."""

import glob
import os
import re

MAX_DIGITS = 20


class Unavailable(Exception):
    """Raised where a device does not have the sensor; the message says what is missing."""


def under(system_root, path):
    """Return an absolute path below the root."""
    return os.path.join(system_root, path.lstrip("/"))


def find(system_root, pattern):
    """Return the paths that a pattern matches below the root, in natural order (zone2 before zone10)."""
    found = glob.glob(os.path.join(glob.escape(system_root), pattern.lstrip("/")))
    return sorted(
        found, key=lambda path: [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", path)]
    )


def read(path, limit=1 << 16):
    """Return a small file's text without surrounding blanks and NULs, or "" where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(limit).decode("utf-8", "replace").strip("\0 \t\r\n")
    except OSError:
        return ""


def number(text):
    """Return the first word of a text as a float, or None. ``32760 ma`` is 32760; no file of /sys has 20 digits."""
    word = text.split(None, 1)[0] if text.strip() else ""
    try:
        return float(word) if len(word) <= MAX_DIGITS else None
    except ValueError:
        return None


class Kept:
    """A file that stays open; ``pread`` from the start makes the kernel render it anew.

    Raises
    ------
    OSError
        It cannot be opened.
    """

    def __init__(self, path):
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def text(self, limit=4096):
        """Return what it holds now, or "" where that fails (a sensor that sleeps answers EAGAIN)."""
        try:
            return os.pread(self._descriptor, limit, 0).decode("ascii", "replace")
        except OSError:
            return ""

    def number(self):
        """Return the number that it holds now, or None."""
        return number(self.text(64))

    def close(self):
        """Close it."""
        os.close(self._descriptor)


def keep(path):
    """Return a file kept open, or None where it cannot be opened."""
    try:
        return Kept(path)
    except OSError:
        return None


def close_all(files):
    """Close kept files."""
    for file in files:
        file.close()
