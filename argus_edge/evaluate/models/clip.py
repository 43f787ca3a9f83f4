"""CLIP in torch: two towers and the cosine (A. Radford et al., 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from PIL import Image

from argus_edge.evaluate.models.base import Array, ModelSpec
from argus_edge.evaluate.models.torch_base import (
    Torch,
    load_image_processor,
    load_tokenizer,
    load_torch,
    stacked,
    to_numpy,
)

__all__ = ["Clip", "load_clip"]


class Clip(Torch):
    """Embeds images and texts."""

    def __init__(self, spec: ModelSpec, model: Any) -> None:
        super().__init__(spec, model)
        self.processor = load_image_processor(self.location)
        self.tokenizer = load_tokenizer(self.location)
        self.max_length = model.config.text_config.max_position_embeddings

    def embed_images(self, images: Sequence[Image.Image]) -> Array:
        """Return projected image embeddings."""

        def call(batch: Sequence[Image.Image]) -> list[Array]:
            inputs = self.processor(images=list(batch), return_tensors="pt")
            return list(to_numpy(_pooled(self.model.get_image_features(**self.on_device(inputs)))))

        return stacked(self.fitting(call, images))

    def embed_texts(self, texts: Sequence[str]) -> Array:
        """Return projected text embeddings; a text is cut at the model's 77 tokens."""

        def call(batch: Sequence[str]) -> list[Array]:
            # Padded to the model's length, as it was trained.
            inputs = self.tokenizer(
                list(batch), padding="max_length", truncation=True, max_length=self.max_length, return_tensors="pt"
            )
            wanted = {name: inputs[name] for name in ("input_ids", "attention_mask")}
            return list(to_numpy(_pooled(self.model.get_text_features(**self.on_device(wanted)))))

        return stacked(self.fitting(call, texts))


def _pooled(features: Any) -> torch.Tensor:
    # transformers 5 returns an output object, earlier ones the tensor.
    return getattr(features, "pooler_output", features)


def load_clip(spec: ModelSpec) -> Clip:
    """Load a CLIPModel."""
    model, _ = load_torch(spec, ["CLIPModel"])
    return Clip(spec, model)
