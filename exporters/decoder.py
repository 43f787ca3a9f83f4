"""What decoders with a key-value cache share: masks, positions, image slots, the cache itself, their inputs."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from argus_edge.exporters.plan import Arrays, feature_input, float_output, mask_input
from argus_edge.schema.bundle import KvCache, SymbolicDim, TensorSpec

PAST_KEY, PAST_VALUE = "past_key_values.{layer}.key", "past_key_values.{layer}.value"
PRESENT_KEY, PRESENT_VALUE = "present.{layer}.key", "present.{layer}.value"


class PastCache:
    """The cache that transformers' attention layers write to: what came before, then what is new.

    Every layer keeps the whole past, layers with a sliding window too: the mask hides what they must not see, and all
    layers have the same shape.
    """

    def __init__(self, flat: Sequence[torch.Tensor]) -> None:
        self.keys, self.values = list(flat[0::2]), list(flat[1::2])
        # What transformers asks a cache about its layers.
        self.is_sliding = self.is_linear = self.is_dummy = [False] * len(self.keys)

    def update(
        self, key: torch.Tensor, value: torch.Tensor, layer: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append a layer's new keys and values; return all of them."""
        self.keys[layer] = torch.cat([self.keys[layer], key], dim=2)
        self.values[layer] = torch.cat([self.values[layer], value], dim=2)
        return self.keys[layer], self.values[layer]

    def get_seq_length(self, layer: int = 0) -> int:
        """Return the number of cached positions."""
        return self.keys[layer].shape[2]

    def flat(self) -> list[torch.Tensor]:
        """Return keys and values alternately, by layer."""
        return [tensor for pair in zip(self.keys, self.values, strict=True) for tensor in pair]


def cache_argument(function: Any) -> str:
    """Return the name of the argument that takes the cache: it changed within transformers 5."""
    return "cache" if "cache" in inspect.signature(function).parameters else "past_key_values"


def reference_cache(flat: Sequence[torch.Tensor]) -> Any:
    """Return transformers' own cache holding the past, for runs of the original."""
    from transformers import DynamicCache

    cache = DynamicCache()
    for layer, (key, value) in enumerate(zip(flat[0::2], flat[1::2], strict=True)):
        if key.shape[2]:
            cache.update(key.clone(), value.clone(), layer)
    return cache


def flat_of(cache: Any) -> list[torch.Tensor]:
    """Return the keys and values of a cache, ours or transformers' own, alternately, by layer."""
    if isinstance(cache, PastCache):
        return cache.flat()
    return [tensor for layer in cache.layers for tensor in (layer.keys, layer.values)]


def positions(attention_mask: torch.Tensor, length: int) -> torch.Tensor:
    """Return the positions of the new tokens, shape (batch, length): padding on the left counts for nothing."""
    return (attention_mask.cumsum(-1) - 1).clamp(min=0)[:, attention_mask.shape[1] - length :]


def additive_mask(
    attention_mask: torch.Tensor,
    length: int,
    *,
    window: int | None = None,
    blocks: torch.Tensor | None = None,
    dtype: torch.dtype = torch.float32,
) -> torch.Tensor:
    """Return the mask that is added to attention scores: 0 where a query sees a key, the least float where not.

    Parameters
    ----------
    attention_mask
        Shape (batch, total), 1 for tokens and 0 for padding; total = past + length.
    length
        Number of new tokens.
    window
        A key is seen by the ``window`` queries from its own on; None: by all from its own on.
    blocks
        Shape (batch, length): tokens of one block (>= 0) see each other both ways. -1: none.
    dtype
        Of the attention's scores.

    Returns
    -------
    torch.Tensor
        Of shape (batch, 1, length, total).
    """
    total = attention_mask.shape[1]
    keys = torch.arange(total, device=attention_mask.device)
    queries = torch.arange(length, device=attention_mask.device) + (total - length)
    seen = (keys[None, :] <= queries[:, None])[None, None]
    if blocks is not None:
        before = torch.full_like(attention_mask[:, : total - length], -1)
        of_keys = torch.cat([before, blocks], dim=1)
        seen = seen | ((blocks[:, None, :, None] == of_keys[:, None, None, :]) & (blocks >= 0)[:, None, :, None])
    if window is not None:
        seen = seen & (keys[None, :] > queries[:, None] - window)[None, None]
    seen = seen & (attention_mask != 0)[:, None, None, :]
    return hiding(seen, dtype)


def hiding(seen: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return 0 where something is seen and the least number of ``dtype`` where not: scores and mask are of one type."""
    return torch.where(seen, 0.0, torch.finfo(dtype).min).to(dtype)


def image_blocks(is_image: torch.Tensor) -> torch.Tensor:
    """Return the number of the image that each token belongs to, -1 for text; shape (batch, length)."""
    before = torch.cat([torch.zeros_like(is_image[:, :1]), is_image[:, :-1]], dim=1)
    starts = (is_image & ~before).to(torch.int64)
    return torch.where(is_image, starts.cumsum(1) - 1, -1)


def put_images(embeds: torch.Tensor, is_image: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
    """Replace the embeddings of image placeholders by image features, in order.

    Parameters
    ----------
    embeds
        Shape (batch, length, width).
    is_image
        Shape (batch, length).
    features
        Shape (image tokens, width); may be empty when there is no placeholder.
    """
    index = is_image.flatten().to(torch.int64).cumsum(0) * is_image.flatten()
    rows = torch.cat([torch.zeros_like(embeds[0, :1]), features.to(embeds.dtype)], dim=0)[index]
    return torch.where(is_image[..., None], rows.reshape(embeds.shape), embeds)


def decoder_dims(context: int, prompt: int, image_tokens: int | None) -> tuple[SymbolicDim, ...]:
    """Return the symbolic dims of a decoder; ``prompt`` is the typical number of new tokens at prefill."""
    longest = max(2, context)
    dims = [
        SymbolicDim(name="batch", minimum=1, maximum=16, typical=1),
        SymbolicDim(name="sequence", minimum=1, maximum=longest, typical=min(prompt, longest)),
        SymbolicDim(name="past", minimum=0, maximum=longest - 1, typical=0),
        SymbolicDim(
            name="total", minimum=1, maximum=longest, typical=min(prompt, longest), sum_of=["past", "sequence"]
        ),
    ]
    if image_tokens is not None:
        dims.append(
            SymbolicDim(name="image_tokens", minimum=0, maximum=max(longest, image_tokens), typical=image_tokens)
        )
    return tuple(dims)


def past_inputs(kv: KvCache) -> list[TensorSpec]:
    """Return the specs of the cache's inputs, keys and values alternately."""
    shape = ("batch", kv.kv_heads, "past", kv.head_dim)
    return [
        feature_input(name.format(layer=layer), shape) for layer in range(kv.layers) for name in (PAST_KEY, PAST_VALUE)
    ]


def present_outputs(kv: KvCache) -> list[TensorSpec]:
    """Return the specs of the cache's outputs, keys and values alternately."""
    return [
        float_output(name.format(layer=layer), "batch", kv.kv_heads, "total", kv.head_dim)
        for layer in range(kv.layers)
        for name in (PRESENT_KEY, PRESENT_VALUE)
    ]


def kv_cache(layers: int, kv_heads: int, head_dim: int) -> KvCache:
    """Return the layout of a float32 cache."""
    return KvCache(
        layers=layers,
        kv_heads=kv_heads,
        head_dim=head_dim,
        layout=["batch", "kv_heads", "past", "head_dim"],
        dtype="float32",
        past_key=PAST_KEY,
        past_value=PAST_VALUE,
        present_key=PRESENT_KEY,
        present_value=PRESENT_VALUE,
        bytes_per_token=2 * layers * kv_heads * head_dim * 4,
    )


def total_mask() -> TensorSpec:
    """Return the spec of the mask over past and new tokens."""
    return mask_input("attention_mask", ("batch", "total"))


def lengths(batch: int, past: int, sequence: int, image_tokens: int | None = None) -> dict[str, int]:
    """Return the lengths of a decoder's symbolic dims."""
    found = {"batch": batch, "sequence": sequence, "past": past, "total": past + sequence}
    return found if image_tokens is None else {**found, "image_tokens": image_tokens}


def place_images(arrays: Arrays, image_token: int, other_token: int) -> Arrays:
    """Put as many placeholders into the first row, after its first token, as there are image features.

    Rows after the first get one position of padding on the left, so that a mask folded into a constant cannot pass.
    """
    ids = arrays["input_ids"]
    ids[ids == image_token] = other_token
    count = arrays["image_features"].shape[0]
    start = min(1, ids.shape[1] - count)
    ids[0, start : start + count] = image_token
    return pad_left(arrays)


def pad_left(arrays: Arrays) -> Arrays:
    """Mask the first position of every row but the first."""
    mask: np.ndarray = arrays["attention_mask"]
    if mask.shape[0] > 1 and mask.shape[1] > 1:
        mask[1:, 0] = 0
    return arrays
