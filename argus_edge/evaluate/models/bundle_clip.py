"""An exported CLIP: image tower and text tower in onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image

from argus_edge.evaluate.models.base import Array, ModelSpec
from argus_edge.evaluate.models.bundle_base import Bundle

__all__ = ["ClipBundle", "load_clip_bundle"]


class ClipBundle(Bundle):
    """Embeds images and texts."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        self._image, self._text = self.runner("image"), self.runner("text")
        self._tokenizer = self.tokenizer()
        self._length = self._text.component.dim("sequence").maximum

    def embed_images(self, images: Sequence[Image.Image]) -> Array:
        """Return image embeddings."""
        limit = self._image.component.dim("batch").maximum
        pixels = self.pixels(images)
        parts = [self._image({"pixel_values": pixels[i : i + limit]}) for i in range(0, len(pixels), limit)]
        return np.concatenate([part["image_embeds"] for part in parts])

    def embed_texts(self, texts: Sequence[str]) -> Array:
        """Return text embeddings; a text is cut at the model's 77 tokens."""
        limit = self._text.component.dim("batch").maximum
        parts = []
        for start in range(0, len(texts), limit):
            tokens = self._tokenizer(
                list(texts[start : start + limit]),
                padding="max_length",
                truncation=True,
                max_length=self._length,
                return_tensors="np",
            )
            parts.append(self._text({name: tokens[name] for name in ("input_ids", "attention_mask")})["text_embeds"])
        return np.concatenate(parts)


def load_clip_bundle(spec: ModelSpec) -> ClipBundle:
    """Load a CLIP bundle."""
    return ClipBundle(spec)
