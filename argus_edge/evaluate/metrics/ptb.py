"""A tokeniser that gives what Stanford's PTB tokeniser (CoreNLP 3.4.1, its default options, lower case) gives.

Its rules (ptb_rules.py) were found by asking that program about made-up words and sentences, and are checked against it
(benchmarks/metrics). As in any scanner, the rule with the longest match wins, its look-ahead counted in, and of equally
long ones the first.
"""

from __future__ import annotations

import re
from functools import lru_cache

from argus_edge.evaluate.metrics.ptb_rules import RULES

__all__ = ["split"]

_RULES = [(re.compile(f"({pattern}){ahead}"), action) for pattern, ahead, action in RULES]

# White space that no rule looks across. Some look across others: markup, numbers (1 1/2, no. 5, 555 123 4567), dots
# (. . .), and letters before a sentence (plan B. The).
_BOUNDARY = re.compile(r"\s+(?![0-9.A-Z])|(?<![0-9.)\s])\s+")


def split(text: str) -> list[str]:
    """Return the tokens of one line, punctuation included."""
    parts = [text] if "<" in text else _BOUNDARY.split(text)
    return [token for part in parts for token in _scan(part)]


@lru_cache(maxsize=1 << 16)
def _scan(text: str) -> tuple[str, ...]:
    text += "\n"
    tokens: list[str] = []
    place, end = 0, len(text)
    while place < end:
        longest, length, chosen = 0, 0, None
        for rule, action in _RULES:
            match = rule.match(text, place)
            if match is not None and match.end() - place > longest:
                longest, length, chosen = match.end() - place, match.end(1) - place, action
        if chosen is None:
            # White space, or a character that the tokeniser does not know and drops.
            place += 1
            continue
        made = chosen(text[place : place + length])
        tokens += [made] if isinstance(made, str) else made
        place += length
    lowered = [token.replace("\u00ad", "").lower() for token in tokens]
    return tuple(token for token in lowered if token)
