"""The seam between the run and a judge: one question in, tokens and their alternatives out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from argus_edge.errors import RunFailedError

__all__ = ["Answer", "ItemRefusedError", "Judge"]


class ItemRefusedError(RunFailedError):
    """A judge cannot be asked about this one item: its image is broken, or it is too long for the model."""


@dataclass(frozen=True)
class Answer:
    """A judge's answer.

    Attributes
    ----------
    tokens
        Text of each generated token.
    alternatives
        For each of them, log-probabilities of tokens that could have stood there, the ratings' among them.
    """

    tokens: list[str]
    alternatives: list[dict[str, float]]

    @property
    def text(self) -> str:
        """The tokens, joined."""
        return "".join(self.tokens)


class Judge(ABC):
    """Answers a prompt about images."""

    name: str

    @abstractmethod
    def ask(self, prompt: str, images: Sequence[Path]) -> Answer:
        """Answer greedily.

        Raises
        ------
        ItemRefusedError
            This item cannot be judged, others may.
        ArgusError
            The judge cannot be reached, refuses, or gives no log-probabilities.
        """
