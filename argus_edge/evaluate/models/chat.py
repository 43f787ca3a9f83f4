"""What chat models that see an image have in common: prompts with image tokens, "yes", letters, greedy answers."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from argus_edge.errors import InputError
from argus_edge.evaluate.models.base import MAX_ANSWER_TOKENS, MAX_CAPTION_TOKENS, Array

__all__ = ["Chat", "ChatTokens"]

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class ChatTokens:
    """A chat model's tokenizer with its template.

    Parameters
    ----------
    tokenizer
        A Hugging Face tokenizer.
    image_token_id
        The placeholder that an image feature replaces.
    folder
        Of the tokenizer's files. A template of the processor's own in it goes before the tokenizer's, which may know
        of no images.

    Raises
    ------
    InputError
        There is no chat template, or it passes an image over.
    """

    def __init__(self, tokenizer: Any, image_token_id: int, folder: Path) -> None:
        self._template = _processor_template(folder)
        self._folder = folder
        if not self._template and not getattr(tokenizer, "chat_template", None):
            raise InputError(
                "The tokenizer has no chat template, so it is not known how to ask this model.",
                where=str(folder),
                next_step="use the instruction-tuned checkpoint, or copy its chat_template.jinja here",
            )
        self.tokenizer = tokenizer
        self._image = tokenizer.convert_ids_to_tokens(image_token_id)
        # Gemma 3 opens an image by a token of its own, and its processor adds the rest.
        self._opening = getattr(tokenizer, "boi_token", None)
        self._closing = getattr(tokenizer, "eoi_token", None)

    def encode(self, prompt: str, image_tokens: int) -> list[int]:
        """Return the ids of a turn with one image in front of the prompt, the model's turn opened."""
        turn = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": prompt}]}]
        text = self.tokenizer.apply_chat_template(
            turn, chat_template=self._template, tokenize=False, add_generation_prompt=True
        )
        placeholders = self._image * image_tokens
        if self._opening and self._closing:
            mark, shown = self._opening, f"\n\n{self._opening}{placeholders}{self._closing}\n\n"
        else:
            mark, shown = self._image, placeholders
        if mark not in text:
            raise InputError(
                f"The chat template passes an image over: it does not write {mark}.",
                where=str(self._folder),
                next_step="copy the chat_template.json or .jinja of the model's processor here",
            )
        text = text.replace(mark, shown, 1)
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return generated ids as text."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True)).strip()

    def spellings(self, *words: str) -> list[int]:
        """Return the first token of each word, with a space before it and without."""
        found: dict[int, None] = {}
        for word in words:
            for text in (word, f" {word}"):
                ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
                if ids:
                    found[ids[0]] = None
        return list(found)


def _processor_template(folder: Path) -> str | None:
    """Return the template that a processor was published with before transformers wrote ``.jinja`` files."""
    path = folder / "chat_template.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["chat_template"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError("The chat template cannot be read.", where=str(path)) from error
    if not isinstance(found, str):
        raise InputError("The chat template cannot be read: it is no text.", where=str(path))
    return found


class Chat(ABC):
    """Captions, answers, chooses and matches by asking; a subclass runs the network."""

    tokens: ChatTokens

    @abstractmethod
    def generate(self, images: Sequence[Image.Image], prompts: Sequence[str], limit: int) -> list[list[int]]:
        """Return the ids that are generated greedily after each prompt, at most ``limit``."""

    @abstractmethod
    def next_token(self, images: Sequence[Image.Image], prompts: Sequence[str]) -> Array:
        """Return the log-probabilities of the first token after each prompt, shape (prompts, vocabulary)."""

    def caption(self, images: Sequence[Image.Image], prompt: str) -> list[str]:
        """Return one caption an image: the first line of what the model says."""
        generated = self.generate(images, [prompt] * len(images), MAX_CAPTION_TOKENS)
        return [(self.tokens.decode(ids).splitlines() or [""])[0].strip() for ids in generated]

    def answer(self, images: Sequence[Image.Image], questions: Sequence[str]) -> list[str]:
        """Return one answer a question."""
        return [self.tokens.decode(ids) for ids in self.generate(images, questions, MAX_ANSWER_TOKENS)]

    def choose(
        self, images: Sequence[Image.Image], questions: Sequence[str], choices: Sequence[Sequence[str]]
    ) -> list[Array]:
        """Return the log-probability of each choice's letter; the choices are listed in the questions."""
        logits = self.next_token(images, questions)
        letters = {letter: self.tokens.spellings(letter) for letter in _LETTERS}
        return [
            np.array([_logsum(row, letters[letter]) for letter in _LETTERS[: len(options)]])
            for row, options in zip(logits, choices, strict=True)
        ]

    def score_pairs(self, images: Sequence[Image.Image], texts: Sequence[str]) -> Array:
        """Return the log-probability of "yes" as the first word of the answer."""
        yes = self.tokens.spellings("yes", "Yes", "YES")
        return np.array([_logsum(row, yes) for row in self.next_token(images, texts)])


def _logsum(row: Array, ids: Sequence[int]) -> float:
    values = np.asarray(row, np.float64)[list(ids)]
    return float(np.logaddexp.reduce(values))
