"""Gemma 3 with vision: SigLIP tower and projector, decoder with its past (Gemma Team, 2025)."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from argus_edge.exporters.decoder import (
    PastCache,
    additive_mask,
    image_blocks,
    kv_cache,
    positions,
    reference_cache,
)
from argus_edge.exporters.generative import GenerativeFamily, ImageDecoder
from argus_edge.exporters.plan import ComponentPlan, Piece, float_output, image_input
from argus_edge.schema.bundle import ImagePreprocess, KvCache, SymbolicDim


class Vision(Piece):
    """Pixels to image features in the decoder's space."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.vision_tower = model.model.vision_tower
        self.projector = model.model.multi_modal_projector

    def forward(self, pixel_values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return image_features of shape (images, tokens per image, width)."""
        return (self.projector(self.vision_tower(pixel_values=pixel_values).last_hidden_state),)

    def reference(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Use ``Gemma3ForConditionalGeneration.get_image_features``."""
        features = self.original[0].get_image_features(pixel_values=inputs[0])
        return (getattr(features, "pooler_output", features),)


class Decoder(ImageDecoder):
    """Tokens, image features and the past to the next token's logits and the longer past."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.window = model.config.text_config.sliding_window

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, image_features: torch.Tensor, *past: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Return logits of shape (batch, 1, vocabulary) and the cache's keys and values."""
        length = input_ids.shape[1]
        blocks = image_blocks(input_ids == self.image_token)
        masks = {
            "full_attention": additive_mask(attention_mask, length, blocks=blocks),
            "sliding_attention": additive_mask(attention_mask, length, window=self.window, blocks=blocks),
        }
        embeds = self.embed(input_ids, image_features)
        return self.decode(PastCache(past), embeds, masks, positions(attention_mask, length))

    def reference(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Use ``Gemma3Model.forward`` with transformers' own cache and masks."""
        input_ids, attention_mask, features, *past = inputs
        is_image = input_ids == self.image_token
        # The original reads token types from the start of the sequence, the past included.
        types = torch.nn.functional.pad(is_image.long(), (past[0].shape[2], 0))
        return self.decode(
            reference_cache(past),
            self.embed(input_ids, features),
            attention_mask,
            positions(attention_mask, input_ids.shape[1]),
            model=self.original[0].model,
            token_type_ids=types if is_image.any() else None,
        )


class Gemma3Family(GenerativeFamily):
    """Gemma3ForConditionalGeneration."""

    name: ClassVar[str] = "gemma3"
    architectures: ClassVar[dict[str, str]] = {
        "Gemma3ForConditionalGeneration": "Gemma3ForConditionalGeneration",
    }

    def kv(self) -> KvCache:
        """Return the cache's layout."""
        text = self.config.text_config
        return kv_cache(text.num_hidden_layers, text.num_key_value_heads, text.head_dim)

    def image_tokens(self) -> int:
        """Return the placeholders per image."""
        return int(self.config.mm_tokens_per_image)

    def components(self) -> list[ComponentPlan]:
        """Return the vision tower with the projector, and the decoder."""
        size, width = self.config.vision_config.image_size, self.config.text_config.hidden_size
        return [
            ComponentPlan(
                name="vision",
                role="vision",
                inputs=(image_input("pixel_values", (size, size), "images"),),
                outputs=(float_output("image_features", "images", self.image_tokens(), width),),
                dims=(SymbolicDim(name="images", minimum=1, maximum=16, typical=1),),
                cases=({"images": 1}, {"images": 2}, {"images": 3}),
                mac_dims=({"images": 1},),
                trace_dims={"images": 2},
                build=Vision,
            ),
            self.decoder_plan(
                Decoder, notes=("the tokens of one image must come in one call: they see each other both ways",)
            ),
        ]

    def preprocess(self) -> ImagePreprocess:
        """SigLIP's: stretched, bilinear, to -1..1."""
        size = self.config.vision_config.image_size
        return ImagePreprocess(
            height=size,
            width=size,
            resize="stretch",
            resample="bilinear",
            rescale=1 / 255,
            mean=[0.5] * 3,
            std=[0.5] * 3,
            layout="NCHW",
        )
