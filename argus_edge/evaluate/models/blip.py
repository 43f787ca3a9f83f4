"""BLIP in torch: captioning, question answering, or image-text retrieval, by checkpoint (J. Li et al., 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from PIL import Image

from argus_edge.evaluate.models.base import MAX_ANSWER_TOKENS, MAX_CAPTION_TOKENS, Array, ModelSpec
from argus_edge.evaluate.models.torch_base import (
    Torch,
    load_image_processor,
    load_tokenizer,
    load_torch,
    stacked,
    to_numpy,
)

__all__ = ["BlipAnswerer", "BlipCaptioner", "BlipRetriever", "load_blip"]


class _Blip(Torch):
    def __init__(self, spec: ModelSpec, model: Any) -> None:
        super().__init__(spec, model)
        self.processor = load_image_processor(self.location)
        self.tokenizer = load_tokenizer(self.location)
        # Not the 35 tokens of the authors' own evaluation: a question with its answer is longer, and the answer last.
        self.longest = model.config.text_config.max_position_embeddings

    def _pixels(self, images: Sequence[Image.Image]) -> dict[str, torch.Tensor]:
        return self.on_device(self.processor(images=list(images), return_tensors="pt"))

    def _tokens(self, texts: Sequence[str]) -> dict[str, torch.Tensor]:
        tokens = self.tokenizer(
            list(texts), padding=True, truncation=True, max_length=self.longest, return_tensors="pt"
        )
        return self.on_device({name: tokens[name] for name in ("input_ids", "attention_mask")})


class BlipCaptioner(_Blip):
    """BlipForConditionalGeneration: continues the prompt, which is cut off its output."""

    def caption(self, images: Sequence[Image.Image], prompt: str) -> list[str]:
        """Return one caption an image, greedily."""

        def call(batch: Sequence[Image.Image]) -> list[str]:
            inputs = self._pixels(batch)
            if prompt:
                inputs |= self._tokens([prompt] * len(batch))
            tokens = self.model.generate(**inputs, max_new_tokens=MAX_CAPTION_TOKENS, do_sample=False, num_beams=1)
            texts = self.tokenizer.batch_decode(tokens, skip_special_tokens=True)
            return [text.strip().removeprefix(prompt.lower()).strip() for text in texts]

        return self.fitting(call, images)


class BlipAnswerer(_Blip):
    """BlipForQuestionAnswering."""

    def answer(self, images: Sequence[Image.Image], questions: Sequence[str]) -> list[str]:
        """Return one answer a question, greedily."""

        def call(batch: Sequence[Image.Image], asked: Sequence[str]) -> list[str]:
            inputs = self._pixels(batch) | self._tokens(asked)
            tokens = self.model.generate(**inputs, max_new_tokens=MAX_ANSWER_TOKENS, do_sample=False, num_beams=1)
            return [text.strip() for text in self.tokenizer.batch_decode(tokens, skip_special_tokens=True)]

        return self.fitting(call, images, questions)


class BlipRetriever(_Blip):
    """BlipForImageTextRetrieval by its contrastive head: one embedding an image and a text, as CLIP's."""

    def embed_images(self, images: Sequence[Image.Image]) -> Array:
        """Return the projection of the vision tower's first token."""

        def call(batch: Sequence[Image.Image]) -> list[Array]:
            states = self.model.vision_model(**self._pixels(batch)).last_hidden_state
            return list(to_numpy(self.model.vision_proj(states[:, 0, :])))

        return stacked(self.fitting(call, images))

    def embed_texts(self, texts: Sequence[str]) -> Array:
        """Return the projection of the text encoder's first token, without looking at an image."""

        def call(batch: Sequence[str]) -> list[Array]:
            states = self.model.text_encoder(**self._tokens(batch)).last_hidden_state
            return list(to_numpy(self.model.text_proj(states[:, 0, :])))

        return stacked(self.fitting(call, texts))


_ADAPTERS: dict[str, type[BlipCaptioner | BlipAnswerer | BlipRetriever]] = {
    "BlipForConditionalGeneration": BlipCaptioner,
    "BlipForQuestionAnswering": BlipAnswerer,
    "BlipForImageTextRetrieval": BlipRetriever,
}


def load_blip(spec: ModelSpec) -> BlipCaptioner | BlipAnswerer | BlipRetriever:
    """Load a BLIP checkpoint of one of three kinds."""
    model, architecture = load_torch(spec, list(_ADAPTERS))
    return _ADAPTERS[architecture](spec, model)
