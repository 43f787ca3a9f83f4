"""Gemma 3 with vision: SigLIP tower and projector, decoder with its past (Gemma Team, 2025)."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from argus_edge.exporters.decoder import (
    PastCache,
    additive_mask,
    cache_argument,
    decoder_dims,
    flat_of,
    image_blocks,
    kv_cache,
    lengths,
    past_inputs,
    place_images,
    positions,
    present_outputs,
    put_images,
    reference_cache,
    total_mask,
)
from argus_edge.exporters.generative import GenerativeFamily
from argus_edge.exporters.plan import (
    Arrays,
    ComponentPlan,
    Piece,
    feature_input,
    float_output,
    image_input,
    token_input,
)
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


class Decoder(Piece):
    """Tokens, image features and the past to the next token's logits and the longer past."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.language_model = model.model.language_model
        self.lm_head = model.lm_head
        self.image_token = model.config.image_token_id
        self.vocab_size = model.config.text_config.vocab_size
        self.window = model.config.text_config.sliding_window

    def embed(self, input_ids: torch.Tensor, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the input embeddings and where they are an image's."""
        is_image = input_ids == self.image_token
        # The placeholder's id may lie beyond the vocabulary.
        embeds = self.language_model.embed_tokens(torch.where(is_image, 0, input_ids))
        return put_images(embeds, is_image, features), is_image

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, image_features: torch.Tensor, *past: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Return logits of shape (batch, 1, vocabulary) and the cache's keys and values."""
        length = input_ids.shape[1]
        embeds, is_image = self.embed(input_ids, image_features)
        blocks = image_blocks(is_image)
        cache = PastCache(past)
        hidden = self.language_model(
            inputs_embeds=embeds,
            attention_mask={
                "full_attention": additive_mask(attention_mask, length, blocks=blocks),
                "sliding_attention": additive_mask(attention_mask, length, window=self.window, blocks=blocks),
            },
            position_ids=positions(attention_mask, length),
            use_cache=True,
            **{cache_argument(self.language_model.forward): cache},
        ).last_hidden_state
        return (self.lm_head(hidden[:, -1:]), *cache.flat())

    def reference(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Use ``Gemma3Model.forward`` with transformers' own cache and masks."""
        input_ids, attention_mask, features, *past = inputs
        model = self.original[0].model
        embeds, is_image = self.embed(input_ids, features)
        # The original reads token types from the start of the sequence, the past included.
        types = torch.nn.functional.pad(is_image.long(), (past[0].shape[2], 0))
        cache = reference_cache(past)
        hidden = model(
            inputs_embeds=embeds,
            attention_mask=attention_mask,
            position_ids=positions(attention_mask, input_ids.shape[1]),
            token_type_ids=types if is_image.any() else None,
            use_cache=True,
            **{cache_argument(model.forward): cache},
        ).last_hidden_state
        return (self.lm_head(hidden[:, -1:]), *flat_of(cache))


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
        vision, text, kv = self.config.vision_config, self.config.text_config, self.kv()
        size, tokens = vision.image_size, self.image_tokens()
        return [
            ComponentPlan(
                name="vision",
                role="vision",
                inputs=(image_input("pixel_values", (size, size), "images"),),
                outputs=(float_output("image_features", "images", tokens, text.hidden_size),),
                dims=(SymbolicDim(name="images", minimum=1, maximum=16, typical=1),),
                cases=({"images": 1}, {"images": 2}, {"images": 3}),
                mac_dims=({"images": 1},),
                trace_dims={"images": 2},
                build=Vision,
            ),
            ComponentPlan(
                name="decoder",
                role="decoder",
                inputs=(
                    token_input("input_ids", self.plain_vocabulary()),
                    total_mask(),
                    feature_input("image_features", ("image_tokens", text.hidden_size)),
                    *past_inputs(kv),
                ),
                outputs=(float_output("logits", "batch", 1, text.vocab_size), *present_outputs(kv)),
                dims=decoder_dims(text.max_position_embeddings, self.prompt_tokens(), tokens),
                cases=self.cases(),
                mac_dims=self.mac_dims(),
                trace_dims=lengths(2, 3, 7, 4),
                build=Decoder,
                finish=self.finish,
                notes=("the tokens of one image must come in one call: they see each other both ways",),
            ),
        ]

    def finish(self, arrays: Arrays) -> Arrays:
        """Put placeholders where image features go."""
        return place_images(arrays, self.config.image_token_id, 1)

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
