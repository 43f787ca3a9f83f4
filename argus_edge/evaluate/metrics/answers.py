"""Answers compared by text: one normaliser for both sides, and the choice of one answer out of a closed set."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

__all__ = ["answers_match", "choose_answer", "normalize_answer"]

_NUMBER_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
_NUMBERS = {word: str(value) for value, word in enumerate(_NUMBER_WORDS)}

# The synonyms of CLEVR's own vocabulary (Johnson et al. 2017, appendix A), and two spellings.
_SYNONYMS = {
    "big": "large",
    "tiny": "small",
    "block": "cube",
    "ball": "sphere",
    "metallic": "metal",
    "shiny": "metal",
    "matte": "rubber",
    "grey": "gray",
    "true": "yes",
    "false": "no",
}

_ARTICLES = frozenset({"a", "an", "the"})
# Inside a number ("2.5", "1,000") and inside a word ("t-shirt", "o'clock") these marks stay or are taken out below.
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_APOSTROPHE = re.compile(r"(?<=\w)['’](?=\w)")
# A minus sign stays as well.
_PUNCTUATION = re.compile(r"(?<!\d)\.|\.(?!\d)|(?!(?<!\w)-\d)[^\w\s.%$€£°+]|_")


@lru_cache(maxsize=65536)
def normalize_answer(text: str) -> str:
    """Return an answer in the form that is compared; the same function is applied to predictions and to references.

    Unicode compatibility form, lower case, number words to digits, articles and punctuation taken away (an apostrophe
    inside a word leaves no gap, other marks leave one), one space between words. What would be left empty ("A", "?")
    is returned in lower case and stripped.

    Examples
    --------
    >>> normalize_answer("Black.")
    'black'
    >>> normalize_answer("The T-shirt")
    't shirt'
    >>> normalize_answer("Two dogs")
    '2 dogs'
    >>> normalize_answer("1,000.")
    '1000'
    """
    lowered = unicodedata.normalize("NFKC", text).casefold()
    plain = _PUNCTUATION.sub(" ", _APOSTROPHE.sub("", _THOUSANDS.sub("", lowered)))
    words = [_NUMBERS.get(word, word) for word in plain.split()]
    kept = [word for word in words if word not in _ARTICLES]
    return " ".join(kept or words) or lowered.strip()


def answers_match(prediction: str, accepted: Iterable[str]) -> bool:
    """Whether a prediction equals one of the accepted answers, both normalised."""
    normalized = normalize_answer(prediction)
    return any(normalized == normalize_answer(answer) for answer in accepted)


def choose_answer(text: str, answer_set: Sequence[str]) -> str | None:
    """Return the one answer of a closed set (CLEVR's 28) that a free text gives; None if none or several.

    The whole text normalised comes first, then a leading yes or no, then the single member of the set that occurs as
    words in the text. CLEVR's own synonyms ("ball", "shiny") count where what they stand for is in the set. "one" is
    the number only where it stands alone, since "the red one" is no count.

    Examples
    --------
    >>> choose_answer("Yes, there is a red cube.", ["yes", "no", "red", "cube"])
    'yes'
    >>> choose_answer("It is a shiny thing", ["metal", "rubber"])
    'metal'
    >>> choose_answer("red or blue", ["red", "blue"]) is None
    True
    """
    members = {normalize_answer(answer): answer for answer in answer_set}
    whole = normalize_answer(text)
    if whole in members:
        return members[whole]
    spoken = re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold())
    numbers = [_NUMBERS.get(word, word) for word in spoken if word != "one" or len(spoken) == 1]
    words = [_SYNONYMS.get(word, word) for word in numbers]
    if words and words[0] in ("yes", "no") and words[0] in members:
        return members[words[0]]
    line = f" {' '.join(words)} "
    found = {answer for form, answer in members.items() if f" {form} " in line}
    return found.pop() if len(found) == 1 else None
