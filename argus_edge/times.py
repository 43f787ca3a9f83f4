"""Times as people write them: `50ms`, `0.2s`, `10min`, or a bare number of seconds."""

from __future__ import annotations

import math
import re

UNITS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "": 1.0, "min": 60.0, "h": 3600.0}
TIME = re.compile(rf"(?P<number>[0-9]*\.?[0-9]+)\s*(?P<unit>{'|'.join(UNITS)})")


def parse_seconds(text: str) -> float:
    """Return a time in seconds.

    Raises
    ------
    ValueError
        Not a time, or none at all, in words for the user.
    """
    found = TIME.fullmatch(text.strip())
    seconds = float(found["number"]) * UNITS[found["unit"]] if found else 0.0
    if not 0 < seconds < math.inf:
        raise ValueError(f"{text!r} is not a time; write 50ms, 0.2s or 10min")
    return seconds
