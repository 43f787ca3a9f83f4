"""Capabilities that follow from others: a model that matches texts to images can choose among answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from PIL import Image

from argus_edge.evaluate.models.base import Array, Chooser, Embedder, PairScorer

__all__ = ["EmbeddingChooser", "PairChooser", "chooser_for"]

# (question, choice) -> the text that is held against the image.
Statement = Callable[[str, str], str]


class EmbeddingChooser:
    """Chooses the statement whose embedding is nearest to the image's, by cosine."""

    def __init__(self, model: Embedder, statement: Statement) -> None:
        self._model = model
        self._statement = statement

    def choose(
        self, images: Sequence[Image.Image], questions: Sequence[str], choices: Sequence[Sequence[str]]
    ) -> list[Array]:
        """Return the cosine of each choice's statement with the image."""
        pictures = _unit(self._model.embed_images(images))
        statements = [
            self._statement(question, choice)
            for question, options in zip(questions, choices, strict=True)
            for choice in options
        ]
        texts = _unit(self._model.embed_texts(statements))
        ends = np.cumsum([len(options) for options in choices])[:-1]
        return [part @ picture for part, picture in zip(np.split(texts, ends), pictures, strict=True)]


class PairChooser:
    """Chooses the statement that scores best together with the image."""

    def __init__(self, model: PairScorer, statement: Statement) -> None:
        self._model = model
        self._statement = statement

    def choose(
        self, images: Sequence[Image.Image], questions: Sequence[str], choices: Sequence[Sequence[str]]
    ) -> list[Array]:
        """Return the score of each choice's statement with the image."""
        pairs = [
            (image, self._statement(question, choice))
            for image, question, options in zip(images, questions, choices, strict=True)
            for choice in options
        ]
        scores = np.asarray(self._model.score_pairs([image for image, _ in pairs], [text for _, text in pairs]))
        ends = np.cumsum([len(options) for options in choices])[:-1]
        return list(np.split(scores, ends))


def chooser_for(model: Any, statement: Statement) -> Chooser | None:
    """Return the model itself where it can choose, else a chooser made of what it can do, else None."""
    if isinstance(model, Chooser):
        return model
    if isinstance(model, Embedder):
        return EmbeddingChooser(model, statement)
    if isinstance(model, PairScorer):
        return PairChooser(model, statement)
    return None


def _unit(values: Any) -> Array:
    matrix = np.asarray(values, dtype=np.float32)
    return matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), np.finfo(np.float32).tiny)
