"""Tokens of a caption as pycocoevalcap takes them: Stanford's PTB tokeniser, lower case, without punctuation."""

from __future__ import annotations

import re
from collections.abc import Sequence

from argus_edge.evaluate.metrics.ptb import split

__all__ = ["PUNCTUATION", "TOKENIZER", "tokenize", "words_of"]

TOKENIZER = "argus-edge PTB 1 (Stanford CoreNLP 3.4.1 as in pycocoevalcap)"

PUNCTUATION = frozenset(
    ["''", "'", "``", "`", "-LRB-", "-RRB-", "-LCB-", "-RCB-", ".", "?", "!", ",", ":", "-", "--", "...", ";"]
)
"""What pycocoevalcap drops. It compares after lower case, so that brackets (``-lrb-``) stay; so do they here."""

_LINE_BREAK = re.compile("[\n\v\f\r\x85\u2028\u2029]")


def tokenize(caption: str) -> list[str]:
    """Return the tokens of a raw caption.

    A caption is taken by itself. (Stanford's program is given all captions in one text, and may look at the next one
    for whether a last "plan B." ends a sentence; then the tokens would depend on the order of the captions.)

    Examples
    --------
    >>> tokenize("A man's T-shirt says (No. 5), doesn't it?")
    ['a', 'man', "'s", 't-shirt', 'says', '-lrb-', 'no.', '5', '-rrb-', 'does', "n't", 'it']
    """
    return [token for token in split(_LINE_BREAK.sub(" ", caption)) if token not in PUNCTUATION]


def words_of(tokens: Sequence[str]) -> list[str]:
    """Return the words that BLEU and CIDEr count: "1 1/2" is one token (with a no-break space) but two words.

    ROUGE-L takes it as one. Both are what pycocoevalcap does, by splitting at white space and at a blank.
    """
    return " ".join(tokens).split()
