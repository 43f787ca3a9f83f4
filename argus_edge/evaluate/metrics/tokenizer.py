"""Tokens of a caption as pycocoevalcap takes them: Stanford's PTB tokeniser, lower case, without punctuation."""

from __future__ import annotations

import re
from functools import lru_cache

from argus_edge.evaluate.metrics.ptb import split

__all__ = ["PUNCTUATION", "TOKENIZER", "tokenize"]

TOKENIZER = "argus-edge PTB 1 (Stanford CoreNLP 3.4.1 as in pycocoevalcap)"

PUNCTUATION = frozenset(
    ["''", "'", "``", "`", "-LRB-", "-RRB-", "-LCB-", "-RCB-", ".", "?", "!", ",", ":", "-", "--", "...", ";"]
)
"""What pycocoevalcap drops. It compares after lower case, so that brackets (``-lrb-``) stay; so do they here."""

_LINE_BREAK = re.compile(r"\r\n|[\n\v\f\r\x85\u2028\u2029]")


@lru_cache(maxsize=1 << 17)
def tokenize(caption: str) -> list[str]:
    """Return the tokens of a raw caption."""
    tokens = split(_LINE_BREAK.sub(" ", caption))
    return [token for token in tokens if token not in PUNCTUATION]
