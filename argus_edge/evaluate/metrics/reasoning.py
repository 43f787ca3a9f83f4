"""Accuracy of answers: by question type, and VCR's three modes; hits and questions of each image for resampling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["VCR_MODES", "AnswerScores", "VcrScores", "score_answers", "score_vcr"]

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

VCR_MODES = ("q_a", "qa_r", "q_ar")


@dataclass(frozen=True)
class AnswerScores:
    """Which questions were answered rightly.

    Attributes
    ----------
    correct
        Shape (questions,).
    image_of_question
        Shape (questions,): index of each question's image.
    images
        Number of images.
    types
        The type of each question, or empty.
    """

    correct: BoolArray
    image_of_question: IntArray
    images: int
    types: tuple[str, ...] = ()

    @property
    def accuracy(self) -> float:
        """The share of questions answered rightly; 0 without a question."""
        return float(self.correct.mean()) if self.correct.size else 0.0

    def by_type(self) -> dict[str, float]:
        """Return the accuracy of each question type, in the order of their names."""
        types = np.asarray(self.types, dtype=object)
        return {name: float(self.correct[types == name].mean()) for name in sorted(set(self.types))}

    def statistics(self) -> dict[str, IntArray]:
        """Return ``hits`` and ``questions`` of each image; columns of shape (images,)."""
        return {
            "hits": np.bincount(self.image_of_question[self.correct], minlength=self.images).astype(np.int64),
            "questions": np.bincount(self.image_of_question, minlength=self.images).astype(np.int64),
        }


def score_answers(
    correct: npt.ArrayLike, image_of_question: npt.ArrayLike, images: int, types: Sequence[str] = ()
) -> AnswerScores:
    """Gather which questions were answered rightly.

    Parameters
    ----------
    correct
        Shape (questions,), truth values.
    image_of_question
        Shape (questions,): index of each question's image, below ``images``.
    images
        Number of images, those without a question included.
    types
        The type of each question; empty where the dataset has none.

    Raises
    ------
    ValueError
        The lengths differ.
    """
    right, image = np.asarray(correct, np.bool_), np.asarray(image_of_question, np.int64)
    if right.shape != image.shape or right.ndim != 1 or (types and len(types) != len(right)):
        raise ValueError(f"{right.shape} answers, {image.shape} images of questions, {len(types)} types")
    return AnswerScores(right, image, images, tuple(types))


@dataclass(frozen=True)
class VcrScores:
    """VCR's three modes (Zellers et al. 2019): the answer, the rationale given the right answer, and both.

    Q->AR is right for an item where both choices of that very item are right; it is not the product of the two
    accuracies.
    """

    q_a: AnswerScores
    qa_r: AnswerScores
    q_ar: AnswerScores

    def metrics(self) -> dict[str, float]:
        """Return the accuracy of each mode by its name in :data:`VCR_MODES`."""
        return {mode: getattr(self, mode).accuracy for mode in VCR_MODES}


def score_vcr(
    answer_correct: npt.ArrayLike, rationale_correct: npt.ArrayLike, image_of_item: npt.ArrayLike, images: int
) -> VcrScores:
    """Score VCR items.

    Parameters
    ----------
    answer_correct
        Shape (items,): whether the answer was chosen rightly (Q->A).
    rationale_correct
        Shape (items,): whether the rationale was chosen rightly, the right answer being given (QA->R).
    image_of_item
        Shape (items,): index of each item's image, below ``images``.
    images
        Number of images.

    Raises
    ------
    ValueError
        The lengths differ.
    """
    answer = score_answers(answer_correct, image_of_item, images)
    rationale = score_answers(rationale_correct, image_of_item, images)
    return VcrScores(answer, rationale, score_answers(answer.correct & rationale.correct, image_of_item, images))
