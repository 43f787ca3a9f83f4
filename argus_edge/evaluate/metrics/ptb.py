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

# A rule may look across a space: markup, numbers (1 1/2, no. 5, 555 123 4567), dots (. . .), letters (plan B. The).
_ACROSS = re.compile(r"<[A-Za-z/!?]|[0-9.)][ \u00a0][0-9.]|[A-Za-z]\.\s+[A-Z]")


def split(text: str) -> list[str]:
    """Return the tokens of one line, punctuation included."""
    if _ACROSS.search(text):
        return list(_scan(text))
    return [token for part in text.split() for token in _scan_cached(part)]


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


_scan_cached = lru_cache(maxsize=1 << 16)(_scan)
