"""BLIP: captioning (vision, decoder with its past) and image-text matching (Li et al., 2022)."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from argus_edge.exporters.clip import MEAN, STD
from argus_edge.exporters.decoder import (
    PastCache,
    additive_mask,
    cache_argument,
    decoder_dims,
    hiding,
    kv_cache,
    lengths,
    pad_left,
    past_inputs,
    positions,
    present_outputs,
    total_mask,
)
from argus_edge.exporters.plan import (
    ComponentPlan,
    Family,
    Piece,
    feature_input,
    float_output,
    hide_tail,
    image_input,
    mask_input,
    token_input,
)
from argus_edge.schema.bundle import Generation, ImagePreprocess, KvCache, Step, SymbolicDim, TensorSpec, UnitOfWork

CROSS_KEY, CROSS_VALUE = "cross_key_values.{layer}.key", "cross_key_values.{layer}.value"
CAPTION_TOKENS = 4  # "a picture of" with its start token


class CaptionVision(Piece):
    """Pixels to the keys and values that the decoder's cross-attention looks at, computed once per image."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.vision_model = model.vision_model
        layers = model.text_decoder.bert.encoder.layer
        self.cross = torch.nn.ModuleList(
            module for layer in layers for module in (layer.crossattention.self.key, layer.crossattention.self.value)
        )
        self.heads = model.config.text_config.num_attention_heads

    def forward(self, pixel_values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return keys and values alternately, each of shape (batch, heads, patches + 1, head_dim)."""
        return self.project(self.vision_model(pixel_values=pixel_values).last_hidden_state)

    def project(self, image_embeds: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the keys and values of image embeddings."""
        found = []
        for projection in self.cross:
            flat = projection(image_embeds)
            found.append(flat.reshape(flat.shape[0], flat.shape[1], self.heads, -1).transpose(1, 2))
        return tuple(found)

    def reference(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Let the original decoder fill its own cross-attention cache."""
        from transformers import DynamicCache, EncoderDecoderCache

        model = self.original[0]
        embeds = model.vision_model(pixel_values=inputs[0]).last_hidden_state
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        start = torch.full((embeds.shape[0], 1), model.config.text_config.bos_token_id)
        model.text_decoder(
            input_ids=start,
            encoder_hidden_states=embeds,
            use_cache=True,
            **{cache_argument(model.text_decoder.forward): cache},
        )
        return tuple(t for layer in cache.cross_attention_cache.layers for t in (layer.keys, layer.values))


class CaptionDecoder(Piece):
    """Tokens, the image's keys and values, and the past to the next token's logits and the longer past."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.decoder = model.text_decoder
        self.layers = model.config.text_config.num_hidden_layers

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, *states: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Return logits of shape (batch, 1, vocabulary) and the self-attention's keys and values."""
        cross, past = states[: 2 * self.layers], states[2 * self.layers :]
        length = input_ids.shape[1]
        own = PastCache(past)
        hidden = self.decoder.bert(
            input_ids=input_ids,
            attention_mask=additive_mask(attention_mask, length, dtype=self.decoder.dtype),
            position_ids=positions(attention_mask, length),
            encoder_hidden_states=input_ids,  # says that there is an image; its keys and values are in the cache
            is_decoder=True,
            use_cache=True,
            **{cache_argument(self.decoder.bert.forward): _two_caches(own, cross)},
        ).last_hidden_state
        return (self.decoder.cls(hidden[:, -1:]), *own.flat())

    def reference(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Use ``BlipTextLMHeadModel.forward`` with transformers' own caches and masks."""
        from transformers import DynamicCache, EncoderDecoderCache

        input_ids, attention_mask, *states = inputs
        cross, past = states[: 2 * self.layers], states[2 * self.layers :]
        caches = DynamicCache(), DynamicCache()
        for cache, flat in zip(caches, (past, cross), strict=True):
            for layer in range(self.layers):
                if flat[2 * layer].shape[2]:
                    cache.update(flat[2 * layer].clone(), flat[2 * layer + 1].clone(), layer)
        both = EncoderDecoderCache(*caches)
        both.is_updated = dict.fromkeys(range(self.layers), True)
        logits = self.decoder(
            input_ids=input_ids,
            attention_mask=attention_mask,
            position_ids=positions(attention_mask, input_ids.shape[1]),
            encoder_hidden_states=cross[0],
            use_cache=True,
            **{cache_argument(self.decoder.forward): both},
        ).logits
        own = (t for layer in caches[0].layers for t in (layer.keys, layer.values))
        return (logits[:, -1:], *own)


def _two_caches(own: PastCache, cross: tuple[torch.Tensor, ...]) -> Any:
    """Return a cache of which the cross-attention part is given, in the class that BLIP's attention asks for."""
    from transformers import EncoderDecoderCache

    class Given(EncoderDecoderCache):
        def __init__(self) -> None:
            self.self_attention_cache = own
            self.cross_attention_cache = _Layers(cross)
            self.is_updated = dict.fromkeys(range(len(cross) // 2), True)

        def get_seq_length(self, layer_idx: int = 0) -> int:
            return own.get_seq_length(layer_idx)

    return Given()


class _Layers:
    def __init__(self, flat: tuple[torch.Tensor, ...]) -> None:
        self.layers = [_Layer(key, value) for key, value in zip(flat[0::2], flat[1::2], strict=True)]


class _Layer:
    def __init__(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        self.keys, self.values = keys, values


class MatchingVision(Piece):
    """Pixels to image embeddings."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.vision_model = model.vision_model

    def forward(self, pixel_values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return image_embeds of shape (batch, patches + 1, width)."""
        return (self.vision_model(pixel_values=pixel_values).last_hidden_state,)


class Matching(Piece):
    """Tokens and image embeddings to the scores of "does not match" and "matches"."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.text_encoder = model.text_encoder
        self.itm_head = model.itm_head

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, image_embeds: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Return itm_score of shape (batch, 2)."""
        hidden = self.text_encoder(
            input_ids=input_ids,
            attention_mask=hiding(attention_mask != 0, self.text_encoder.dtype)[:, None, None, :],
            encoder_hidden_states=image_embeds,
        ).last_hidden_state
        return (self.itm_head(hidden[:, 0]),)

    def reference(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Use the original's text encoder with its own masks, as ``BlipForImageTextRetrieval.forward`` does."""
        hidden = self.text_encoder(
            input_ids=inputs[0],
            attention_mask=inputs[1],
            encoder_hidden_states=inputs[2],
            encoder_attention_mask=torch.ones(inputs[2].shape[:-1], dtype=torch.long),
        ).last_hidden_state
        return (self.itm_head(hidden[:, 0]),)


class BlipFamily(Family):
    """BlipForConditionalGeneration and BlipForImageTextRetrieval."""

    name: ClassVar[str] = "blip"
    architectures: ClassVar[dict[str, str]] = {
        "BlipForConditionalGeneration": "BlipForConditionalGeneration",
        "BlipForImageTextRetrieval": "BlipForImageTextRetrieval",
    }

    def components(self) -> list[ComponentPlan]:
        """Return vision and decoder, or vision and matching head."""
        return self._captioning() if self._captions else self._matching()

    @property
    def _captions(self) -> bool:
        return self.architecture == "BlipForConditionalGeneration"

    @property
    def _patches(self) -> int:
        vision = self.config.vision_config
        return (vision.image_size // vision.patch_size) ** 2 + 1

    def _kv(self) -> KvCache:
        text = self.config.text_config
        return kv_cache(text.num_hidden_layers, text.num_attention_heads, text.hidden_size // text.num_attention_heads)

    def _cross(self) -> list[TensorSpec]:
        kv = self._kv()
        return [
            feature_input(name.format(layer=layer), ("batch", kv.kv_heads, self._patches, kv.head_dim))
            for layer in range(kv.layers)
            for name in (CROSS_KEY, CROSS_VALUE)
        ]

    def _vision(self, build: type[Piece], outputs: tuple[TensorSpec, ...], notes: tuple[str, ...]) -> ComponentPlan:
        size = self.config.vision_config.image_size
        return ComponentPlan(
            name="vision",
            role="vision",
            inputs=(image_input("pixel_values", (size, size)),),
            outputs=outputs,
            dims=(SymbolicDim(name="batch", minimum=1, maximum=64, typical=1),),
            cases=({"batch": 1}, {"batch": 2}, {"batch": 3}),
            mac_dims=({"batch": 1},),
            trace_dims={"batch": 2},
            build=build,
            notes=notes,
        )

    def _captioning(self) -> list[ComponentPlan]:
        text, kv = self.config.text_config, self._kv()
        projected = tuple(float_output(spec.name, *spec.shape) for spec in self._cross())
        return [
            self._vision(
                CaptionVision,
                projected,
                ("holds the decoder's cross-attention projections, so that they run once per image",),
            ),
            ComponentPlan(
                name="decoder",
                role="decoder",
                inputs=(
                    token_input("input_ids", text.vocab_size),
                    total_mask(),
                    *self._cross(),
                    *past_inputs(kv),
                ),
                outputs=(float_output("logits", "batch", 1, text.vocab_size), *present_outputs(kv)),
                dims=decoder_dims(text.max_position_embeddings, CAPTION_TOKENS, None),
                cases=(lengths(1, 0, 5), lengths(1, 6, 1), lengths(2, 3, 4)),
                mac_dims=(lengths(1, 0, CAPTION_TOKENS), lengths(1, CAPTION_TOKENS, 1)),
                trace_dims=lengths(2, 3, 5),
                build=CaptionDecoder,
                finish=pad_left,
            ),
        ]

    def _matching(self) -> list[ComponentPlan]:
        text, vision = self.config.text_config, self.config.vision_config
        embeds = ("batch", self._patches, vision.hidden_size)
        longest = text.max_position_embeddings
        typical = min(35, longest)  # what the authors pad captions to
        short = max(2, typical // 3)
        return [
            self._vision(MatchingVision, (float_output("image_embeds", *embeds),), ()),
            ComponentPlan(
                name="matching",
                role="head",
                inputs=(
                    token_input("input_ids", text.vocab_size),
                    mask_input("attention_mask"),
                    feature_input("image_embeds", embeds),
                ),
                outputs=(float_output("itm_score", "batch", 2),),
                dims=(
                    SymbolicDim(name="batch", minimum=1, maximum=64, typical=1),
                    SymbolicDim(name="sequence", minimum=1, maximum=longest, typical=typical),
                ),
                cases=(
                    {"batch": 1, "sequence": typical},
                    {"batch": 2, "sequence": short},
                    {"batch": 3, "sequence": short + 1},
                ),
                mac_dims=({"batch": 1, "sequence": typical},),
                trace_dims={"batch": 2, "sequence": short + 3},
                build=Matching,
                finish=hide_tail,
            ),
        ]

    def generation(self) -> Generation | None:
        """Return how to write a caption: the image comes in through cross-attention, not through the prompt."""
        if not self._captions:
            return None
        text = self.config.text_config
        return Generation(
            decoder="decoder",
            kv=self._kv(),
            attention_mask="attention_mask",
            vocab_size=text.vocab_size,
            bos_token_id=text.bos_token_id,
            eos_token_ids=[text.sep_token_id],
            pad_token_id=text.pad_token_id,
            context_length=text.max_position_embeddings,
        )

    def unit_of_work(self) -> UnitOfWork:
        """Captioning: vision, prompt, caption. Matching: one image against one text."""
        if not self._captions:
            fed = {"image_embeds": "vision.image_embeds"}
            return UnitOfWork(
                task="matching",
                description="one image matched against one text, batch 1",
                steps=[
                    Step(component="vision", phase="encode"),
                    Step(component="matching", phase="encode", bindings=fed),
                ],
            )
        fed = {spec.name: f"vision.{spec.name}" for spec in self._cross()}
        return UnitOfWork(
            task="captioning",
            description="one image seen, output tokens written (32 unless set); batch 1, image preprocessing apart",
            steps=[
                Step(component="vision", phase="encode"),
                Step(component="decoder", phase="prefill", bindings=fed),
                Step(component="decoder", phase="decode", bindings=fed),
            ],
        )

    def preprocess(self) -> ImagePreprocess:
        """BLIP's: stretched, bicubic, CLIP's statistics."""
        size = self.config.vision_config.image_size
        return ImagePreprocess(
            height=size,
            width=size,
            resize="stretch",
            resample="bicubic",
            rescale=1 / 255,
            mean=MEAN,
            std=STD,
            layout="NCHW",
        )
