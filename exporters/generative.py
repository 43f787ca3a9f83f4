"""What vision-language models that write text have in common as families."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch

from argus_edge.exporters.decoder import (
    cache_argument,
    decoder_dims,
    flat_of,
    lengths,
    past_inputs,
    place_images,
    present_outputs,
    put_images,
    total_mask,
)
from argus_edge.exporters.plan import Arrays, ComponentPlan, Family, Piece, feature_input, float_output, token_input
from argus_edge.schema.bundle import Generation, KvCache, Step, TensorSpec, UnitOfWork

# Text tokens around the image in a typical prompt: template, question, turn marks.
TEXT_TOKENS = 32


def id_list(value: Any) -> list[int]:
    """Return an id, a list of ids or nothing as a list."""
    if value is None:
        return []
    return [int(v) for v in value] if isinstance(value, (list, tuple)) else [int(value)]


class ImageDecoder(Piece):
    """A language model with image features in its prompt: tokens and the past to logits and the longer past."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.language_model = model.model.language_model
        self.lm_head = model.lm_head
        self.image_token = model.config.image_token_id

    def embed(self, input_ids: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        """Return the input embeddings with image features in their places."""
        is_image = input_ids == self.image_token
        # The placeholder's id may lie beyond the vocabulary.
        return put_images(self.language_model.embed_tokens(torch.where(is_image, 0, input_ids)), is_image, features)

    def decode(
        self, cache: Any, embeds: torch.Tensor, mask: Any, position_ids: torch.Tensor, *, model: Any = None, **more: Any
    ) -> tuple[torch.Tensor, ...]:
        """Return logits of shape (batch, 1, vocabulary) and the cache's keys and values.

        Parameters
        ----------
        cache
            The past, ours or transformers' own; it is extended.
        mask
            A mask over tokens, or one that is added to scores for each kind of attention.
        model
            What is run; the language model by default.
        """
        model = model or self.language_model
        hidden = model(
            inputs_embeds=embeds,
            attention_mask=mask,
            position_ids=position_ids,
            use_cache=True,
            **{cache_argument(model.forward): cache},
            **more,
        ).last_hidden_state
        return (self.lm_head(hidden[:, -1:]), *flat_of(cache))


class GenerativeFamily(Family):
    """Vision, then a decoder that sees image features in its prompt."""

    @abstractmethod
    def kv(self) -> KvCache:
        """Return the cache's layout."""

    @abstractmethod
    def image_tokens(self) -> int:
        """Return the placeholders per image."""

    def prompt_tokens(self) -> int:
        """Return the length of a typical prompt with one image."""
        return self.image_tokens() + TEXT_TOKENS

    def plain_vocabulary(self) -> int:
        """Return an id below which there are only plain tokens: image placeholders lie above."""
        vocabulary, image = int(self.config.text_config.vocab_size), int(self.config.image_token_id)
        return min(vocabulary, image) if image > vocabulary // 2 else vocabulary

    def cases(self) -> tuple[dict[str, int], ...]:
        """Return a prefill with image tokens, a decode step, and a batch with padding and a past."""
        image = min(8, self.image_tokens())
        return (lengths(1, 0, image + 4, image), lengths(1, 9, 1, 0), lengths(2, 3, 4, 2))

    def mac_dims(self) -> tuple[dict[str, int], ...]:
        """Return a typical prefill and the first decode step after it."""
        prompt = self.prompt_tokens()
        return (lengths(1, 0, prompt, self.image_tokens()), lengths(1, prompt, 1, 0))

    def decoder_plan(
        self, build: type[ImageDecoder], *, more_inputs: tuple[TensorSpec, ...] = (), notes: tuple[str, ...] = ()
    ) -> ComponentPlan:
        """Return the decoder's plan; ``more_inputs`` come after the mask."""
        text, kv = self.config.text_config, self.kv()
        return ComponentPlan(
            name="decoder",
            role="decoder",
            inputs=(
                token_input("input_ids", self.plain_vocabulary()),
                total_mask(),
                *more_inputs,
                feature_input("image_features", ("image_tokens", text.hidden_size)),
                *past_inputs(kv),
            ),
            outputs=(float_output("logits", "batch", 1, text.vocab_size), *present_outputs(kv)),
            dims=decoder_dims(text.max_position_embeddings, self.prompt_tokens(), self.image_tokens()),
            cases=self.cases(),
            mac_dims=self.mac_dims(),
            trace_dims=lengths(2, 5, 7, 4),
            build=build,
            finish=self.finish,
            notes=notes,
        )

    def finish(self, arrays: Arrays) -> Arrays:
        """Put placeholders where image features go."""
        return place_images(arrays, self.config.image_token_id, 1)

    def generation(self) -> Generation:
        """Return how to generate with the decoder."""
        text = self.config.text_config
        eos = id_list(getattr(self.config, "eos_token_id", None)) or id_list(getattr(text, "eos_token_id", None))
        return Generation(
            decoder="decoder",
            kv=self.kv(),
            attention_mask="attention_mask",
            image_features="image_features",
            image_features_dim="image_tokens",
            vocab_size=text.vocab_size,
            bos_token_id=getattr(text, "bos_token_id", None),
            eos_token_ids=eos,
            pad_token_id=getattr(text, "pad_token_id", None),
            image_token_id=self.config.image_token_id,
            image_tokens=self.image_tokens(),
            context_length=text.max_position_embeddings,
        )

    def unit_of_work(self) -> UnitOfWork:
        """Answering: vision, prefill and decoding."""
        fed = {"image_features": "vision.image_features"}
        return UnitOfWork(
            task="answering",
            description="one image seen, one prompt read, output tokens written (32 unless set); batch 1, "
            "image preprocessing apart",
            steps=[
                Step(component="vision", phase="encode"),
                Step(component="decoder", phase="prefill", bindings=fed),
                Step(component="decoder", phase="decode"),
            ],
        )
