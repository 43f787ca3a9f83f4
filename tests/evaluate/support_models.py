"""Models that answer by rule, as a user's classes: what they should score is known."""

from __future__ import annotations

import hashlib
import os

import numpy as np


def _code(text: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
    return np.random.default_rng(seed).normal(size=16)


def mean_colour(image) -> str:
    """Name an image by its dominant channel."""
    small = np.asarray(image.reduce(8))
    return ("red", "green", "blue")[int(small.reshape(-1, 3).mean(axis=0).argmax())]


class Colours:
    """Knows an image by its mean colour and a text by the colour that it names."""

    def __init__(self) -> None:
        marker = os.environ.get("ARGUS_TEST_MARKER")
        if marker:
            with open(marker, "a") as file:
                file.write("made\n")

    def embed_images(self, images):
        return np.stack([_code(mean_colour(image)) for image in images])

    def embed_texts(self, texts):
        return np.stack([_code(next((c for c in ("red", "green", "blue") if c in t), t)) for t in texts])


class Constant:
    """Says the same of everything."""

    def embed_images(self, images):
        return np.ones((len(images), 4))

    def embed_texts(self, texts):
        return np.ones((len(texts), 4))

    def choose(self, images, questions, choices):
        return [np.zeros(len(options)) for options in choices]


class Talker:
    """Describes and answers by the mean colour."""

    def caption(self, images, prompt):
        return [f"a {mean_colour(image)} picture of paint" for image in images]

    def answer(self, images, questions):
        return [f"{mean_colour(image).title()}." for image in images]

    def choose(self, images, questions, choices):
        return [
            np.array([float(mean_colour(image) == option) for option in options])
            for image, options in zip(images, choices, strict=True)
        ]

    def score_pairs(self, images, texts):
        return np.array([float(mean_colour(i) in t) + 0.001 * len(t) for i, t in zip(images, texts, strict=True)])


class Failing(Colours):
    """Breaks down at its fourth batch of images."""

    calls = 0

    def embed_images(self, images):
        Failing.calls += 1
        if Failing.calls > 3:
            raise RuntimeError("out of luck")
        return super().embed_images(images)


class ById:
    """Is given ids in place of pictures, as a model with features of its own."""

    takes_image_ids = True

    def answer(self, images, questions):
        return [("red", "green", "blue")[int(image[:2]) % 3] for image in images]

    def choose(self, images, questions, choices):
        answers = self.answer(images, questions)
        return [np.array([float(c == a) for c in options]) for a, options in zip(answers, choices, strict=True)]


class NotANumber(Colours):
    """Gives values that are not numbers."""

    def embed_texts(self, texts):
        return np.full((len(texts), 16), np.nan)


class Leaver(Colours):
    """Leaves the process in the middle."""

    def embed_images(self, images):
        raise SystemExit(3)
