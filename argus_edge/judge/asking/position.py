"""Finding the token in a judge's answer that is its score, and the log-probabilities of the ratings there."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Found", "find_score", "plain", "rating_logprobs"]

# How tokenisers write a space, a line break or a leading space: sentence-piece, byte-level BPE.
_MARKS = {"▁": " ", "Ġ": " ", "Ċ": "\n", "ĉ": "\t", "<0x0A>": "\n", "<0x20>": " "}
_NUMBER = re.compile(r"(?<![\d.,])\d+(?:[.,]\d+)?(?!\d)")
# Between an anchor and its number only punctuation and mark-up may stand: Score: **4**
_ANCHOR = re.compile(r"Score:[^\w\n]{0,12}\s{0,3}[^\w\n]{0,12}$")
_WINDOW = 24
_KEYWORD = re.compile(r"\b(?:score|rating)\b[^\d]*$", re.IGNORECASE)
_DENOMINATOR = re.compile(r"(?:/|\bout of)\s*$", re.IGNORECASE)


@dataclass(frozen=True)
class Found:
    """Where a score was found.

    Attributes
    ----------
    index
        Of the token, or ``None`` where there is no score to read.
    score
        The rating written, or ``None``.
    how
        ``"anchor"``, ``"keyword"``, ``"last digit"``, or why there is none.
    """

    index: int | None
    score: int | None
    how: str


@dataclass(frozen=True)
class _Candidate:
    start: int
    text: str
    token: int | None
    denominator: bool


def plain(token: str) -> str:
    """Return a token's text with its tokeniser's marks turned into white space."""
    for mark, text in _MARKS.items():
        token = token.replace(mark, text)
    return token


def find_score(tokens: Sequence[str], levels: int) -> Found:
    """Find the score, in the order published with arXiv 2604.25235.

    First ``Score:`` with a number right behind it, the last such place, since the prompt asks for it at the end; then
    ``score`` or ``rating`` with a number near it, again the last; then the last number on the scale. A number is one
    token of digits, with or without a leading space or sentence-piece mark; one behind ``/`` or ``out of`` is the
    scale's end, not a score. A number that the judge put behind ``Score:`` and that is not a rating is reported, and
    no other is taken in its place.

    Parameters
    ----------
    tokens
        Text of the generated tokens, marks included.
    levels
        The ratings are 1 … ``levels``.
    """
    texts = [plain(token) for token in tokens]
    whole = "".join(texts)
    starts: dict[int, int] = {}
    offset = 0
    for index, text in enumerate(texts):
        starts[offset + len(text) - len(text.lstrip())] = index
        offset += len(text)
    candidates = []
    for match in _NUMBER.finditer(whole):
        token = starts.get(match.start())
        alone = token is not None and texts[token].strip() == match[0]
        before = whole[: match.start()]
        candidates.append(
            _Candidate(match.start(), match[0], token if alone else None, bool(_DENOMINATOR.search(before[-12:])))
        )
    ratings = [number for number in candidates if not number.denominator]

    for number in reversed(ratings):
        if _ANCHOR.search(whole[max(0, number.start - 40) : number.start]):
            return _read(number, levels, "anchor")
    on_scale = [number for number in ratings if number.text.isdecimal() and 1 <= int(number.text) <= levels]
    for number in reversed(on_scale):
        if _KEYWORD.search(whole[max(0, number.start - _WINDOW) : number.start]):
            return _read(number, levels, "keyword")
    if on_scale:
        return _read(on_scale[-1], levels, "last digit")
    return Found(None, None, "no rating in the answer")


def _read(number: _Candidate, levels: int, how: str) -> Found:
    if not number.text.isdecimal() or not 1 <= int(number.text) <= levels:
        return Found(None, None, f"wrote {number.text[:20]}, which is not on the scale 1..{levels}")
    if number.token is None:
        return Found(None, None, f"the rating {number.text[:20]} is not a token of its own")
    return Found(number.token, int(number.text), how)


def rating_logprobs(alternatives: dict[str, float], levels: int) -> list[float]:
    """Return the log-probability of each rating at one position.

    Parameters
    ----------
    alternatives
        Log-probability of each token that the backend reported there. Spellings of a rating (``"4"``, ``" 4"``,
        ``"▁4"``) are added up.

    Returns
    -------
    list of float
        K values; −infinity for a rating that is not among the tokens reported.
    """
    shares: dict[str, list[float]] = {}
    for token, value in alternatives.items():
        shares.setdefault(plain(token).strip(), []).append(value)
    return [_log_sum(shares.get(str(label), [])) for label in range(1, levels + 1)]


def _log_sum(values: list[float]) -> float:
    if not values:
        return -math.inf
    if any(math.isnan(value) for value in values):
        return math.nan
    top = max(values)
    if math.isinf(top):
        return top
    return top + math.log(sum(math.exp(value - top) for value in values))
