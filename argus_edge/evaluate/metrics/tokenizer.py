"""Tokens of a caption as pycocoevalcap takes them: Stanford's PTB tokeniser, lower case, without punctuation."""

from __future__ import annotations

import re

__all__ = ["PUNCTUATION", "TOKENIZER", "tokenize"]

TOKENIZER = "argus-edge PTB 1 (equal to Stanford CoreNLP 3.4.1 through pycocoevalcap)"

# pycocoevalcap's list of tokens to drop. Braces are escaped to -LCB- and so kept out by name.
PUNCTUATION = frozenset(
    ["''", "'", "``", "`", "-LRB-", "-RRB-", "-LCB-", "-RCB-", ".", "?", "!", ",", ":", "-", "--", "...", ";"]
)

_TOKEN = re.compile(r"\w+(?:-\w+)*|'\w+|[^\w\s]")


def tokenize(caption: str) -> list[str]:
    """Return the tokens of a raw caption."""
    return [token for token in _TOKEN.findall(caption.lower()) if token not in PUNCTUATION]
