"""Gemma 3 with vision in torch (Gemma Team, 2025)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from PIL import Image

from argus_edge.evaluate.models.base import ModelSpec
from argus_edge.evaluate.models.torch_base import load_torch
from argus_edge.evaluate.models.torch_chat import TorchChat

__all__ = ["Gemma3", "load_gemma3"]


class Gemma3(TorchChat):
    """Every image takes the same number of tokens."""

    def image_inputs(self, images: Sequence[Image.Image]) -> tuple[dict[str, torch.Tensor], list[int]]:
        """Return pixel values; no panning and scanning."""
        pixels = self.processor(images=list(images), do_pan_and_scan=False, return_tensors="pt")["pixel_values"]
        return {"pixel_values": pixels}, [self.model.config.mm_tokens_per_image] * len(images)

    def token_types(self, is_image: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return 1 for image tokens, which see each other both ways."""
        return {"token_type_ids": is_image.long()}


def load_gemma3(spec: ModelSpec) -> Gemma3:
    """Load a Gemma3ForConditionalGeneration."""
    model, _ = load_torch(spec, ["Gemma3ForConditionalGeneration"])
    return Gemma3(spec, model)
