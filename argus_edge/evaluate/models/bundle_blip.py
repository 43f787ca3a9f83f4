"""An exported BLIP: captioning (vision, decoder) or image-text matching (vision, matching head)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image

from argus_edge.evaluate.models.base import MAX_CAPTION_TOKENS, Array, ModelSpec
from argus_edge.evaluate.models.bundle_base import Bundle
from argus_edge.evaluate.models.bundle_decoder import BundleDecoder

__all__ = ["BlipCaptionBundle", "BlipMatchBundle", "load_blip_bundle"]


class BlipCaptionBundle(Bundle):
    """Continues the prompt; the image comes in through cross-attention."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        self._vision = self.runner("vision")
        self._decoder = BundleDecoder(self)
        self._tokenizer = self.tokenizer()

    def caption(self, images: Sequence[Image.Image], prompt: str) -> list[str]:
        """Return one caption an image, greedily, without the prompt."""
        start = self._decoder.generation.bos_token_id
        words = self._tokenizer(prompt, add_special_tokens=False)["input_ids"] if prompt else []
        ids = ([start] if start is not None else []) + words
        captions = []
        for image in images:
            seen = self._vision({"pixel_values": self.pixels([image])})
            generated = self._decoder.generate(ids, MAX_CAPTION_TOKENS, seen)
            captions.append(str(self._tokenizer.decode(generated, skip_special_tokens=True)).strip())
        return captions


class BlipMatchBundle(Bundle):
    """Scores an image and a text by the matching head."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        self._vision, self._matching = self.runner("vision"), self.runner("matching")
        self._tokenizer = self.tokenizer()
        self._longest = self._matching.component.dim("sequence").maximum
        self._last: tuple[Image.Image, Array] | None = None

    def _seen(self, image: Image.Image) -> Array:
        # One image is held against many texts, batch after batch: it is looked at once.
        if self._last is None or self._last[0] is not image:
            self._last = (image, self._vision({"pixel_values": self.pixels([image])})["image_embeds"])
        return self._last[1]

    def score_pairs(self, images: Sequence[Image.Image], texts: Sequence[str]) -> Array:
        """Return the log-odds of "matches"."""
        tokens = self._tokenizer(
            list(texts), padding=True, truncation=True, max_length=self._longest, return_tensors="np"
        )
        limit = self._matching.component.dim("batch").maximum
        parts = []
        for start in range(0, len(texts), limit):
            part = slice(start, start + limit)
            embeds = np.concatenate([self._seen(image) for image in images[part]])
            feeds = {name: tokens[name][part] for name in ("input_ids", "attention_mask")}
            scores = self._matching({**feeds, "image_embeds": embeds})["itm_score"].astype(np.float64)
            parts.append(scores[:, 1] - scores[:, 0])
        return np.concatenate(parts)


def load_blip_bundle(spec: ModelSpec) -> BlipCaptionBundle | BlipMatchBundle:
    """Load a BLIP bundle of one of two kinds, by its components."""
    bundle = BlipMatchBundle if "matching" in Bundle(spec).runners else BlipCaptionBundle
    return bundle(spec)
