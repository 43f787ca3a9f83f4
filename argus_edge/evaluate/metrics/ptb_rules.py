"""The rules of the PTB tokeniser: what matches, what must follow, and what the match becomes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib.resources import files

__all__ = ["RULES", "Rule"]

_DATA = json.loads((files("argus_edge.evaluate.metrics") / "ptb.json").read_text("utf-8"))


def _characters(ranges: str) -> str:
    """Return hexadecimal ranges as the inside of a character class."""
    parts = [part.split("-") for part in ranges.split()]
    return "".join("-".join(re.escape(chr(int(end, 16))) for end in part) for part in parts)


_LETTERS, _DIGITS = _characters(_DATA["letters"]), "0-9" + _characters(_DATA["digits"])
_L = f"[{_LETTERS}]"
# A soft hyphen may stand in a word; it is taken out of the token.
_A = f"[{_LETTERS}{_DIGITS}\u00ad]"
_HYPHEN = "[-_\u058a\u2010\u2011]"
_SYMBOL = f'[$%&*+/<=>@\\\\^_|~"!?.,:;#{_characters(_DATA["symbols"])}]'
# An apostrophe, and what passes for one between the letters of a word.
_APO = "['\u0092\u2019]"
_APOS = "['\u0092\u2019`\u0091\u2018\u201b]"
_CLITIC = "(?i:[msd]|re|ve|ll)"
_NUMBER = f"(?:[{_DIGITS}]*(?:[.:,\u066b\u066c][{_DIGITS}]+)+|[{_DIGITS}]+)"
_NOT_URL = ' \t\n"<>|()\u00a0'
_SPACE = "[ \t\u00a0]"
_PART = "[A-Za-z0-9]+(?:-[A-Za-z]+){0,2}"


def _words(name: str) -> str:
    return "|".join(sorted(_DATA[name], key=len, reverse=True))


_ENDING = f"(?:(?i:{_words('abbreviations_ending')})|(?=[A-Z])(?i:{_words('capitalised_abbreviations')}))"

# What a match becomes; a plain string is a single token.
Action = Callable[[str], "str | list[str]"]


def _same(text: str) -> str:
    return text


def _is(token: str) -> Action:
    return lambda text: token


def _cut(place: int) -> Action:
    return lambda text: [text[:place], text[place:]]


def _straight(text: str) -> str:
    return text.translate(_STRAIGHT)


def _one(text: str) -> str:
    """A token with spaces or brackets in it."""
    return text.replace("(", "-lrb-").replace(")", "-rrb-").replace(" ", "\u00a0")


_STRAIGHT = str.maketrans("\u0092\u2019\u0091\u2018\u201b", "''```")
_SINGLE = {
    "(": "-lrb-",
    ")": "-rrb-",
    "[": "-lsb-",
    "]": "-rsb-",
    "{": "-lcb-",
    "}": "-rcb-",
    "\u00a2": "cents",
    "\u00a3": "#",
    "\u00a4": "$",
    "\u20a0": "$",
    "\u20ac": "$",
    "\u0080": "$",
    "\u00bc": "1/4",
    "\u00bd": "1/2",
    "\u00be": "3/4",
    "\u2153": "1/3",
    "\u2154": "2/3",
    "\u2026": "...",
    "\u0085": "...",
    "\u00ad": "-",
    **dict.fromkeys("\u2013\u2014\u2015\u0096\u0097", "--"),
    **dict.fromkeys("`\u2018\u201b\u2039\u0091", "`"),
    **dict.fromkeys("\u2019\u203a\u0092'", "'"),
    **dict.fromkeys("\u00ab\u201c\u0093", "``"),
    **dict.fromkeys('\u00bb\u201d\u0094"', "''"),
}
_QUOTES = "\u0091-\u0094\u2018\u2019\u201b-\u201d\u00ab\u00bb\u2039\u203a"
_ENTITY = {"amp": "&", "lt": "<", "gt": ">", "quot": "''", "apos": "'", "ndash": "--", "mdash": "--"}

_THING = f"(?:[dDoOlL]{_APOS}{_A})?{_A}+(?:{_HYPHEN}(?:[dDoOlL]{_APOS}{_A})?{_A}+)*"
_WORD = f"{_L}{_A}*(?:[.!?]{_L}{_A}*)*"

# (pattern, pattern of the look-ahead, what the match becomes)
Rule = tuple[str, str, Action]

RULES: list[Rule] = [
    # Markup: one token, whatever is in it.
    (r"</?[A-Za-z][A-Za-z0-9_:.-]*(?: +[A-Za-z][^<>]*)? */?>|<[!?][A-Za-z-][^>]*>", "", _one),
    # don't, he'll, dog's: the word, and then the clitic.
    ("[A-Za-z]*[A-MO-Za-mo-z]", f"[nN]{_APOS}[tT]", _same),
    (f"[nN]{_APOS}[tT]", "", _straight),
    (f"{_L}+", f"{_APO}{_CLITIC}", _same),
    (f"{_APO}{_CLITIC}", "[^A-Za-z]", _straight),
    # Two words written as one.
    ("(?i:cannot)", "", _cut(3)),
    ("(?i:gonna|gotta|gimme|lemme|wanna)", "", _cut(3)),
    ("(?i:'t)", "(?i:is|was)", _same),
    (f"[yY]{_APO}", _L, _same),
    # Words with an apostrophe of their own.
    ("(?i:cont'd\\.?|nor'easter|c'mon|e'er|s'mores|ev'ry|li'l|nat'l|cap'n|c['’]est|c\\+\\+|[cf]#)", "", _same),
    (f"(?i:{_APO}(?:em|till?|cause)|(?:ol|somethin|dunkin){_APO})|[lLdDjJ]{_APO}", "", _same),
    (f"{_APO}[nN]{_APO}?|{_APO}[2-9]0[sS]|[A-HJ-XZn]{_APOS}{_L}{{2,}}", "", _same),
    (f"{_L}+[aeiouyAEIOUY]{_APOS}[aeiouA-Z]{_L}*", "", _same),
    (f"{_APO}[0-9]{{2}}", r"\s", _same),
    # Addresses.
    (f"https?://[^{_NOT_URL}]+[^{_NOT_URL}.!?,{{}}-]", "", _same),
    (
        f"(?:www\\.(?:[^{_NOT_URL}.!?,{{}}_$-]+\\.)+[a-zA-Z]{{2,4}}|(?:[^{_NOT_URL}`'.!?,{{}}_$-]+\\.)+(?:com|net|org|edu))"
        f"(?:/[^{_NOT_URL}]+[^{_NOT_URL}.!?,{{}}-])?",
        "",
        _same,
    ),
    (f"<?[A-Za-z0-9][^{_NOT_URL}{{}}]*@(?:[^{_NOT_URL}{{}}.]+\\.)*[^{_NOT_URL}{{}}.]+>?", "", _same),
    (f"@[A-Za-z_][A-Za-z0-9_]*|#{_L}+", "", _same),
    # Numbers, dates, fractions, telephone numbers.
    (f"[-+]?{_NUMBER}", "", _same),
    (r"(?:[0-9]{1,4}[- \u00a0])?[0-9]{1,4}(?:\\?/|\u2044)[0-9]{1,4}", "", _one),
    (r"[0-9]{1,2}[-/][0-9]{1,2}[-/][0-9]{2,4}", "", _one),
    (
        r"(?:\([0-9]{2,3}\)[ \u00a0]?|(?:[0-9]{2,4}[- \u00a0])?[0-9]{2,4}[- \u00a0])[0-9]{3,4}[- \u00a0]?[0-9]{3,5}",
        "",
        _one,
    ),
    # Abbreviations and acronyms keep their period.
    (f"(?i:{_words('abbreviations')})\\.", "", _same),
    (f"{_ENDING}\\.", "", _same),
    (r"[A-Za-z](?:\.[A-Za-z])*\.|[A-Za-z0-9]+-[A-Za-z](?:\.[A-Za-z])+\.", "", _same),
    # … but a single letter does not before a word that starts sentences.
    ("[A-Za-z]", f"\\.\\s+(?=[A-Z])(?i:{_words('sentence_starters')}|mr\\.|ms\\.)\\s", _same),
    (f"(?i:{_words('abbreviations_before_numbers')})\\.", f"{_SPACE}?[0-9]", _same),
    # Compounds: hyphens, slashes, ampersands, and words with a mark but no space between them.
    (_THING, "", _same),
    (_WORD, "", _same),
    # An abbreviation that may end a sentence counts two characters more, so that inc.-5 is no compound.
    (f"{_ENDING}\\.", r"[\s\S]{2}", _same),
    ("[A-Za-z0-9][A-Za-z0-9.,]*(?:-[A-Za-z0-9]+)+", "", _same),
    (r"[A-Z]+(?:(?:[+&]|&amp;)[A-Z]+)+", "", lambda text: text.replace("&amp;", "&")),
    (f"{_PART}(?:\\\\?/{_PART}){{1,2}}", "", _same),
    (f"(?:{_THING}|{_WORD})\\.", "[,;:\u3001]", _same),
    # Faces.
    (r"[<>]?[:;=][-o*']?[()DPdpO\\{@|\[\]]", "[^A-Za-z0-9]", _one),
    (r"[-^x=~<>']_[-^x=~<>']|\([-^x=~<>'][_.][-^x=~<>']\)", "", _one),
    # Marks that stand together.
    (r"[?!]+", "", _same),
    (r"\.{3,}|\.(?: \.){2,}", "", _is("...")),
    (r"-{2,4}", "", _is("--")),
    (r"-{5,}|\*+|\\\*|#+|_+|@+|<<|>>", "", _same),
    ("''", "", _same),
    (f"[{_QUOTES}`]{{1,2}}", "", lambda text: "".join(_SINGLE[mark] for mark in text)),
    ("[\u00b2\u00b3\u00b9\u2070\u2074-\u2079]+|[\u2080-\u2089]+|[\u201a\u201e\u201f]{2}", "", _same),
    # A quotation mark is told from an apostrophe by the letter behind it.
    ("'", "[A-Za-z][^ \t\n]", _is("`")),
    (f"{_APO}{_CLITIC}", "", _straight),
    (f"&(?i:{'|'.join(_ENTITY)});", "", lambda text: _ENTITY[text[1:-1].lower()]),
    ("(?i:&nbsp;)", "", lambda text: []),
    ("&#[0-9]+;", "", _same),
    # Money, and single characters.
    (r"[A-Z]{1,2}\$", "", _same),
    (f"[{''.join(map(re.escape, _SINGLE))}]", "", lambda text: _SINGLE[text]),
    (_SYMBOL, "", _same),
]
