"""What a model can do, as protocols: an adapter has the methods of its capabilities and nothing more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from PIL import Image

__all__ = [
    "MAX_ANSWER_TOKENS",
    "MAX_CAPTION_TOKENS",
    "Answerer",
    "Captioner",
    "Chooser",
    "Embedder",
    "ModelSpec",
    "PairScorer",
    "capabilities_of",
    "takes_image_ids",
]

Array = npt.NDArray[Any]

# Greedy generation stops there; a COCO caption has about 13 tokens.
MAX_CAPTION_TOKENS = 40
MAX_ANSWER_TOKENS = 16


@runtime_checkable
class Embedder(Protocol):
    """Embeds images and texts into one space, where the cosine says how well they go together."""

    def embed_images(self, images: Sequence[Image.Image]) -> Array:
        """Return an array of shape (images, dimension)."""

    def embed_texts(self, texts: Sequence[str]) -> Array:
        """Return an array of shape (texts, dimension)."""


@runtime_checkable
class PairScorer(Protocol):
    """Scores an image and a text together."""

    def score_pairs(self, images: Sequence[Image.Image], texts: Sequence[str]) -> Array:
        """Return one score a pair, shape (pairs,); higher means that they go together better."""


@runtime_checkable
class Captioner(Protocol):
    """Describes an image."""

    def caption(self, images: Sequence[Image.Image], prompt: str) -> list[str]:
        """Return one caption an image."""


@runtime_checkable
class Answerer(Protocol):
    """Answers a question about an image in its own words."""

    def answer(self, images: Sequence[Image.Image], questions: Sequence[str]) -> list[str]:
        """Return one answer a pair of image and question."""


@runtime_checkable
class Chooser(Protocol):
    """Answers a question about an image by scoring given choices."""

    def choose(
        self, images: Sequence[Image.Image], questions: Sequence[str], choices: Sequence[Sequence[str]]
    ) -> list[Array]:
        """Return for each question one score a choice; the highest is the answer."""


# In the order in which they are listed in a report.
_CAPABILITIES: dict[str, type] = {
    "embed": Embedder,
    "score_pairs": PairScorer,
    "caption": Captioner,
    "answer": Answerer,
    "choose": Chooser,
}


def capabilities_of(model: object) -> tuple[str, ...]:
    """Return what a model can do, by the methods that it has."""
    return tuple(name for name, protocol in _CAPABILITIES.items() if isinstance(model, protocol))


def takes_image_ids(model: object) -> bool:
    """Tell whether a model is given image ids in place of pictures (it brings features of its own, as LXMERT does)."""
    return bool(getattr(model, "takes_image_ids", False))


@dataclass(frozen=True)
class ModelSpec:
    """Everything needed to load a model, on this machine or on another that sees the same files.

    Attributes
    ----------
    kind
        ``torch`` (a Hugging Face folder), ``bundle`` (an export) or ``class`` (the user's ``module:Class``).
    location
        The folder, or ``module:Class``.
    sha256
        Of the model's files and of its features'; part of every cache key.
    compute
        ``cpu`` or ``cuda:N``.
    dtype
        ``float32``, ``bfloat16`` or ``float16``.
    search_path
        Folder that a user's module is imported from.
    features
        File of the user's region features, for a model that takes them.
    """

    kind: str
    family: str
    location: str
    sha256: str
    compute: str
    dtype: str
    threads: int
    search_path: str = ""
    features: str = ""


def as_matrix(values: Any, rows: int, what: str) -> npt.NDArray[np.float32]:
    """Return a model's output as float32 of shape (rows, dimension).

    Raises
    ------
    ValueError
        Another shape, or a value that is not finite.
    """
    matrix = np.asarray(values, dtype=np.float32)
    if matrix.ndim != 2 or matrix.shape[0] != rows or matrix.shape[1] == 0:
        raise ValueError(f"{what} returned an array of shape {matrix.shape} for {rows} inputs")
    if not np.isfinite(matrix).all():
        raise ValueError(f"{what} returned values that are not finite")
    return matrix
