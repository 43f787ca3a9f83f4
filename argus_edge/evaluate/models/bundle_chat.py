"""An exported Gemma-3 or Qwen2.5-VL: vision, then the decoder with image features in its prompt."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image

from argus_edge.bundles import multimodal_positions
from argus_edge.errors import InputError
from argus_edge.evaluate.models.base import Array, ModelSpec
from argus_edge.evaluate.models.bundle_base import Bundle
from argus_edge.evaluate.models.bundle_decoder import BundleDecoder
from argus_edge.evaluate.models.chat import Chat, ChatTokens

__all__ = ["ChatBundle", "load_chat_bundle"]


class ChatBundle(Bundle, Chat):
    """One prompt at a time, its image always of the same size."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        self._vision = self.runner("vision")
        self._decoder = BundleDecoder(self)
        generation = self._decoder.generation
        if generation.image_token_id is None or generation.image_features is None:
            raise InputError("The bundle does not say where an image goes in the prompt.", where=str(self.folder))
        self._image_token, self._image_input = generation.image_token_id, generation.image_features
        self.tokens = ChatTokens(self.tokenizer(), self._image_token, self.folder / "processor")

    def _prompt(self, image: Image.Image, prompt: str) -> tuple[list[int], dict[str, Array], Array | None]:
        features = self._vision({"pixel_values": self.pixels([image])})["image_features"]
        generation = self._decoder.generation
        ids = self.tokens.encode(prompt, generation.image_tokens)
        positions = None
        if generation.position_axes == 3:
            positions = multimodal_positions(np.asarray(ids) == self._image_token)
        return ids, {self._image_input: features.reshape(-1, features.shape[-1])}, positions

    def generate(self, images: Sequence[Image.Image], prompts: Sequence[str], limit: int) -> list[list[int]]:
        """Return the ids that are generated greedily after each prompt."""
        found = []
        for image, prompt in zip(images, prompts, strict=True):
            ids, fixed, positions = self._prompt(image, prompt)
            found.append(self._decoder.generate(ids, limit, fixed, positions))
        return found

    def next_token(self, images: Sequence[Image.Image], prompts: Sequence[str]) -> Array:
        """Return the log-probabilities of the first token after each prompt."""
        rows = []
        for image, prompt in zip(images, prompts, strict=True):
            ids, fixed, positions = self._prompt(image, prompt)
            rows.append(self._decoder.first_token(ids, fixed, positions))
        return np.stack(rows)


def load_chat_bundle(spec: ModelSpec) -> ChatBundle:
    """Load a Gemma-3 or Qwen2.5-VL bundle."""
    return ChatBundle(spec)
