"""Makes caption-like sentences with what tokenisers differ on: quotes, hyphens, clitics, numbers, emoji, brackets."""

from __future__ import annotations

import random

NOUNS = [
    "man",
    "woman",
    "boy",
    "girl",
    "child",
    "dog",
    "cat",
    "horse",
    "bird",
    "skateboard",
    "surfboard",
    "umbrella",
    "bench",
    "train",
    "bus",
    "bicycle",
    "kitchen",
    "pizza",
    "sandwich",
    "zebra",
    "giraffe",
    "elephant",
    "laptop",
    "clock",
    "street",
    "beach",
    "field",
    "snowboarder",
    "skier",
    "frisbee",
    "kite",
    "baseball",
    "batter",
    "T-shirt",
    "stop-sign",
    "toothbrush",
    "fire-hydrant",
    "parking-meter",
    "tennis-racket",
    "hot-dog",
    "remote-control",
    "teddy-bear",
    "passer-by",
    "mother-in-law",
    "café",
    "façade",
]
ADJECTIVES = [
    "red",
    "blue",
    "green",
    "small",
    "large",
    "old",
    "young",
    "black-and-white",
    "two-story",
    "well-lit",
    "three-year-old",
    "half-eaten",
    "brightly-colored",
    "grey",
    "wooden",
    "multi-coloured",
    "open-air",
    "wide-eyed",
    "vintage",
    "1950s-style",
    "double-decker",
    "semi-transparent",
    "snow-covered",
    "3-D",
    "naïve",
]
VERBS = [
    "is sitting",
    "stands",
    "rides",
    "isn't looking",
    "doesn't move",
    "can't see",
    "is about to eat",
    "has been holding",
    "won't let go of",
    "'s got",
]
PLACES = [
    "on a bench",
    "in front of a house",
    "next to the ocean",
    "at 5 p.m.",
    "under the bridge",
    "in a 30°C oven",
    "on St. John's St.",
    "near Mt. Hood",
    "in the U.S.",
    "in Washington D.C.",
    "at No. 10",
    "at McDonald's",
    "by J.K. Rowling's house",
]
CLITICS = [
    "it's",
    "he's",
    "she'd",
    "they're",
    "we've",
    "I'm",
    "you'll",
    "that's",
    "there's",
    "who's",
    "don't",
    "can't",
    "couldn't",
    "wouldn't",
    "aren't",
    "cannot",
    "gonna",
    "gotta",
    "wanna",
    "y'all",
    "o'clock",
    "ma'am",
    "'em",
    "'til",
    "rock'n'roll",
    "O'Brien's",
    "the",
    "dogs'",
    "James'",
    "children's",
    "it’s",
    "don’t",
    "’90s",
    "'80s",
]
NUMBERS = [
    "2",
    "3",
    "12",
    "100",
    "1,000",
    "2,500",
    "3.5",
    "1/2",
    "3/4",
    "1-1/2",
    "5:30",
    "10:45pm",
    "5pm",
    "1st",
    "22nd",
    "50's",
    "1980s",
    "$5",
    "$2.50",
    "50%",
    "5'10\"",
    "6ft",
    "20-30",
    "24/7",
    "#1",
    "#23",
    "747",
    "A380",
    "F-16",
    "No.7",
    "4x4",
    "007",
    "-5",
    "+1",
    "2012-12-25",
    "12/25/2012",
    "555-1234",
    "1",
    "1/2",
    "½",
    "€20",
    "£3",
    "5¢",
]
EMOJI = [
    "😀",
    "🐶",
    "❤️",
    "🇺🇸",
    "👍🏽",
    "☀️",
    "👨\u200d👩\u200d👧",
    "✨",
    "🏄\u200d♂️",
    "☕",
    "★",
    "™",
    "♥",
    ":)",
    ":-)",
    ";)",
    ":D",
    "<3",
    "^_^",
]
QUOTED = [
    "hello",
    "STOP",
    "Happy Birthday",
    "No Parking",
    "I'm with stupid",
    "Eat at Joe's",
    "Ph.D.",
    "AT&T",
    "B&B",
    "Rock & Roll",
    "24-7",
    "Don't Walk",
    "2 for $1",
]
ENDS = [".", ".", ".", "", "", "!", "?", "...", "!!", " .", "!?", "…", ". ", '."']
JOINERS = [", ", " and ", " - ", " -- ", "; ", " while ", " – ", "—", ": ", " & ", " / ", ",", " w/ ", "... "]
OPEN_CLOSE = [
    ('"', '"'),
    ("'", "'"),
    ("“", "”"),
    ("‘", "’"),
    ("``", "''"),
    ("(", ")"),
    ("[", "]"),
    ("{", "}"),
    ("*", "*"),
    ("<b>", "</b>"),
]


def _noun_phrase(rng: random.Random) -> str:
    roll = rng.random()
    noun = rng.choice(NOUNS)
    if roll < 0.1:
        return f"{rng.choice(NUMBERS)} {noun}s"
    if roll < 0.2:
        return f"a {noun}'s {rng.choice(NOUNS)}"
    if roll < 0.25:
        return f"the {noun}s' {rng.choice(NOUNS)}"
    if roll < 0.3:
        return f"a {noun}/{rng.choice(NOUNS)}"
    if roll < 0.36:
        return rng.choice(CLITICS) + " " + noun
    if roll < 0.6:
        return f"{rng.choice(['a', 'the', 'an', 'A', 'The'])} {rng.choice(ADJECTIVES)} {noun}"
    return f"{rng.choice(['a', 'the', 'some', 'A', 'one'])} {noun}"


def _aside(rng: random.Random) -> str:
    left, right = rng.choice(OPEN_CLOSE)
    inside = rng.choice([rng.choice(QUOTED), _noun_phrase(rng), rng.choice(NUMBERS)])
    return (
        rng.choice(["that says ", "with ", "named ", "", "reading "])
        + left
        + inside
        + rng.choice(["", "", "", ".", ",", "!"])
        + right
    )


def sentence(rng: random.Random) -> str:
    """Return one sentence."""
    parts = [_noun_phrase(rng)]
    if rng.random() < 0.8:
        parts.append(rng.choice(VERBS) + " " + _noun_phrase(rng))
    if rng.random() < 0.5:
        parts.append(rng.choice(PLACES))
    if rng.random() < 0.35:
        parts.append(_aside(rng))
    text = " ".join(parts)
    if rng.random() < 0.3:
        text += rng.choice(JOINERS) + _noun_phrase(rng) + " " + rng.choice(VERBS) + " " + _noun_phrase(rng)
    if rng.random() < 0.15:
        text += " " + rng.choice(CLITICS)
    if rng.random() < 0.15:
        text += " " + rng.choice(NUMBERS)
    if rng.random() < 0.2:
        text += rng.choice([" ", ""]) + rng.choice(EMOJI)
    text += rng.choice(ENDS)
    if rng.random() < 0.5:
        text = text[0].upper() + text[1:]
    if rng.random() < 0.03:
        text = text.upper()
    return text


def sentences(count: int, seed: int = 0) -> list[str]:
    """Return ``count`` sentences, the same for the same seed."""
    rng = random.Random(seed)
    return [sentence(rng) for _ in range(count)]


def caption_set(images: int, references: int = 5, seed: int = 0) -> tuple[list[list[str]], list[str]]:
    """Return reference captions and one candidate for each image, that overlap as captions of one image do."""
    rng = random.Random(seed)
    sets: list[list[str]] = []
    candidates: list[str] = []
    for _ in range(images):
        actors, verb, place = [_noun_phrase(rng) for _ in range(3)], rng.choice(VERBS), rng.choice(PLACES)

        def caption(actors: list[str] = actors, verb: str = verb, place: str = place) -> str:
            said = f"{rng.choice(actors)} {verb if rng.random() < 0.7 else rng.choice(VERBS)} {rng.choice(actors)}"
            if rng.random() < 0.7:
                said += f" {place}"
            if rng.random() < 0.15:
                said += " " + _aside(rng)
            return said[0].upper() + said[1:] + rng.choice([".", ".", "", "!", " ."])

        sets.append([caption() for _ in range(references)])
        candidates.append(caption() if rng.random() < 0.98 else rng.choice(["", "...", sentence(rng), "1 1/2 pizzas"]))
    return sets, candidates
