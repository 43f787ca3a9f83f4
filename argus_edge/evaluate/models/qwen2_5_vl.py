"""Qwen2.5-VL in torch (S. Bai et al., 2025)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from PIL import Image

from argus_edge.evaluate.models.base import ModelSpec
from argus_edge.evaluate.models.torch_base import load_torch
from argus_edge.evaluate.models.torch_chat import TorchChat

__all__ = ["Qwen25Vl", "load_qwen2_5_vl"]


class Qwen25Vl(TorchChat):
    """An image takes as many tokens as its size asks for.

    The whole processor wants torchvision, for videos; its image processor and its tokenizer do not.
    """

    def image_inputs(self, images: Sequence[Image.Image]) -> tuple[dict[str, torch.Tensor], list[int]]:
        """Return flattened patches and each image's grid."""
        inputs = self.processor(images=list(images), return_tensors="pt")
        merged = self.model.config.vision_config.spatial_merge_size**2
        counts = (inputs["image_grid_thw"].prod(dim=-1) // merged).tolist()
        return {name: inputs[name] for name in ("pixel_values", "image_grid_thw")}, counts

    def token_types(self, is_image: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return 1 for image tokens, which have positions of their own on three axes."""
        return {"mm_token_type_ids": is_image.int()}


def load_qwen2_5_vl(spec: ModelSpec) -> Qwen25Vl:
    """Load a Qwen2_5_VLForConditionalGeneration."""
    model, _ = load_torch(spec, ["Qwen2_5_VLForConditionalGeneration"])
    return Qwen25Vl(spec, model)
