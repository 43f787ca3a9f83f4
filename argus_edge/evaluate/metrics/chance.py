"""What a model scores by chance, for each headline metric; captions have a chance level of 0."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["choice_chance", "constant_answer_chance", "retrieval_chance", "vcr_chance"]


def retrieval_chance(image_of_text: npt.ArrayLike, images: int) -> float:
    """Return the expected mean of R@1 both ways under a random order of the gallery.

    An image finds one of its own ``k`` texts first with probability ``k / texts`` (any of them counts); a text finds
    its image with ``1 / images``. Images without a text are in the gallery but ask nothing.

    Parameters
    ----------
    image_of_text
        Shape (texts,): index of each text's image.
    images
        Number of images in the gallery.
    """
    counts = np.bincount(np.asarray(image_of_text, np.int64), minlength=images)
    texts, asking = int(counts.sum()), int((counts > 0).sum())
    if not texts:
        return 0.0
    # The mean of k / texts over the asking images is (texts / asking) / texts.
    return (1.0 / asking + 1.0 / images) / 2


def constant_answer_chance(answers: Sequence[str], types: Sequence[str] = ()) -> float:
    """Return the accuracy of the best constant answer for each question type (CLEVR).

    Parameters
    ----------
    answers
        The right answer of each question, normalised.
    types
        The type of each question; empty: all of one type.
    """
    if not answers:
        return 0.0
    by_type: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for answer, kind in zip(answers, types or [""] * len(answers), strict=True):
        by_type[kind][answer] += 1
    return sum(max(counts.values()) for counts in by_type.values()) / len(answers)


def choice_chance(choices: Sequence[int]) -> float:
    """Return the accuracy of a uniform choice among each question's choices (their numbers are given)."""
    return float(np.mean([1.0 / number for number in choices])) if choices else 0.0


def vcr_chance(mode: str) -> float:
    """Return the chance level of a VCR mode: one in four for ``q_a`` and ``qa_r``, one in sixteen for ``q_ar``."""
    return {"q_a": 1 / 4, "qa_r": 1 / 4, "q_ar": 1 / 16}[mode]
