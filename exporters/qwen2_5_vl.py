"""Qwen2.5-VL: windowed vision tower at a fixed image size, decoder with its past (Bai et al., 2025)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch

from argus_edge.errors import InputError
from argus_edge.exporters.decoder import PastCache, additive_mask, kv_cache, reference_cache
from argus_edge.exporters.generative import GenerativeFamily, ImageDecoder
from argus_edge.exporters.plan import Arrays, ComponentPlan, Piece, float_output, image_input
from argus_edge.schema.bundle import Generation, ImagePreprocess, KvCache, TensorSpec, ValueRange

# Windows to a side: 4 x 112 = 448 pixels, 256 image tokens; near the middle of what the model's processor makes of
# photographs, and the number of tokens that Gemma 3 uses, so that the two compare on equal work.
WINDOWS = 4


class Vision(Piece):
    """An image of fixed size to image features in the decoder's space.

    The original takes patches of any grid and splits them into windows by data-dependent lengths, which no exporter
    can express. At a size that is a multiple of the window all windows are equal, so that attention over a window is
    one batched product.
    """

    def __init__(self, model: Any, side: int) -> None:
        super().__init__()
        self.visual = model.model.visual
        vision = model.config.vision_config
        self.patch, self.temporal, self.merge = vision.patch_size, vision.temporal_patch_size, vision.spatial_merge_size
        self.grid = side // self.patch
        window = vision.window_size // self.patch
        self.windows = (self.grid // window) ** 2
        self.grid_thw = torch.tensor([[1, self.grid, self.grid]])
        order, places = _window_order(self.grid, self.merge, window // self.merge)
        self.register_buffer("order", torch.from_numpy(order), persistent=False)
        self.register_buffer("back", torch.from_numpy(np.argsort(order)), persistent=False)
        units = self.merge**2
        with torch.no_grad():
            cos, sin = self.visual.rotary_pos_emb(torch.zeros(1), torch.from_numpy(places))
        for name, table in (("cos", cos), ("sin", sin)):
            table = table.reshape(-1, units, table.shape[-1])[order].reshape(-1, table.shape[-1])
            self.register_buffer(name, table.float(), persistent=False)

    def patches(self, pixel_values: torch.Tensor) -> torch.Tensor:
        """Cut an image of shape (1, 3, side, side) as Qwen2-VL's image processor does: (patches, values)."""
        n, m, p = self.grid // self.merge, self.merge, self.patch
        cut = pixel_values.reshape(3, n, m, p, n, m, p).permute(1, 4, 2, 5, 0, 3, 6)
        still = cut.reshape(self.grid**2, 3, 1, p * p).expand(-1, -1, self.temporal, -1)
        return still.reshape(self.grid**2, 3 * self.temporal * p * p)

    def forward(self, pixel_values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return image_features of shape (image tokens, width)."""
        hidden = self.visual.patch_embed(self.patches(pixel_values))
        units = self.merge**2
        hidden = hidden.reshape(-1, units, hidden.shape[-1]).index_select(0, self.order).reshape(-1, hidden.shape[-1])
        for index, block in enumerate(self.visual.blocks):
            windows = 1 if index in self.visual.fullatt_block_indexes else self.windows
            hidden = hidden + self.attend(block.attn, block.norm1(hidden), windows)
            hidden = hidden + block.mlp(block.norm2(hidden))
        return (self.visual.merger(hidden).index_select(0, self.back),)

    def attend(self, attention: Any, hidden: torch.Tensor, windows: int) -> torch.Tensor:
        """Attend within each of ``windows`` equal runs of patches."""
        from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import apply_rotary_pos_emb_vision

        count, heads = hidden.shape[0], attention.num_heads
        query, key, value = attention.qkv(hidden).reshape(count, 3, heads, -1).unbind(1)
        query, key = apply_rotary_pos_emb_vision(query, key, self.cos, self.sin)
        query, key, value = (
            tensor.reshape(windows, count // windows, heads, -1).transpose(1, 2) for tensor in (query, key, value)
        )
        weights = torch.softmax(query @ key.transpose(2, 3) * attention.scaling, dim=-1)
        return attention.proj((weights @ value).transpose(1, 2).reshape(count, -1))

    def reference(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Use the original tower on the same patches."""
        return (self.visual(self.patches(inputs[0]), grid_thw=self.grid_thw).pooler_output,)


def _window_order(grid: int, merge: int, window: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the order of merged units that makes windows contiguous, and each patch's (row, column).

    Both in the processor's order of patches, where the ``merge`` x ``merge`` patches of a unit are neighbours.
    """
    side = grid // merge
    units = np.arange(side * side).reshape(side // window, window, side // window, window)
    order = units.transpose(0, 2, 1, 3).ravel()
    rows, columns = np.divmod(np.arange(grid * grid).reshape(side, merge, side, merge).transpose(0, 2, 1, 3), grid)
    return order, np.stack([rows.ravel(), columns.ravel()], axis=1)


class Decoder(ImageDecoder):
    """Tokens, their three-axis positions, image features and the past to logits and the longer past."""

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        position_ids: torch.Tensor,
        image_features: torch.Tensor,
        *past: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """Return logits of shape (batch, 1, vocabulary) and the cache's keys and values."""
        masks = {"full_attention": additive_mask(attention_mask, input_ids.shape[1])}
        return self.decode(PastCache(past), self.embed(input_ids, image_features), masks, position_ids)

    def reference(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Use the original's language model with transformers' own cache and masks."""
        input_ids, attention_mask, position_ids, features, *past = inputs
        return self.decode(reference_cache(past), self.embed(input_ids, features), attention_mask, position_ids)


class Qwen25VlFamily(GenerativeFamily):
    """Qwen2_5_VLForConditionalGeneration."""

    name: ClassVar[str] = "qwen2_5_vl"
    architectures: ClassVar[dict[str, str]] = {
        "Qwen2_5_VLForConditionalGeneration": "Qwen2_5_VLForConditionalGeneration",
    }

    def kv(self) -> KvCache:
        """Return the cache's layout."""
        text = self.config.text_config
        head_dim = text.hidden_size // text.num_attention_heads
        return kv_cache(text.num_hidden_layers, text.num_key_value_heads, head_dim)

    def side(self) -> int:
        """Return the image's height and width in pixels."""
        vision = self.config.vision_config
        if vision.window_size % (vision.patch_size * vision.spatial_merge_size):
            raise InputError(
                f"The vision window of {vision.window_size} pixels is no multiple of the merged patch.",
                where="config.json",
            )
        return WINDOWS * int(vision.window_size)

    def image_tokens(self) -> int:
        """Return the placeholders per image."""
        vision = self.config.vision_config
        return (self.side() // (vision.patch_size * vision.spatial_merge_size)) ** 2

    def components(self) -> list[ComponentPlan]:
        """Return the vision tower and the decoder."""
        text = self.config.text_config
        if "sliding_attention" in (getattr(text, "layer_types", None) or []):
            raise InputError("Qwen2.5-VL with sliding-window layers is not supported.", where="config.json")
        side, tokens = self.side(), self.image_tokens()
        return [
            ComponentPlan(
                name="vision",
                role="vision",
                inputs=(image_input("pixel_values", (side, side)).model_copy(update={"shape": [1, 3, side, side]}),),
                outputs=(float_output("image_features", tokens, text.hidden_size),),
                dims=(),
                cases=({}, {}, {}),
                mac_dims=({},),
                trace_dims={},
                build=lambda model: Vision(model, side),
                notes=(f"one image of {side} x {side} pixels a call, {tokens} image tokens",),
            ),
            self.decoder_plan(
                Decoder,
                more_inputs=(
                    TensorSpec(
                        name="position_ids",
                        dtype="int64",
                        shape=[3, "batch", "sequence"],
                        values=ValueRange(minimum=0, maximum=text.max_position_embeddings - 1, fill="positions"),
                    ),
                ),
            ),
        ]

    def finish(self, arrays: Arrays) -> Arrays:
        """Put placeholders where image features go, and let the three position axes differ there."""
        arrays = super().finish(arrays)
        is_image = arrays["input_ids"] == self.config.image_token_id
        arrays["position_ids"][1][is_image] //= 2
        arrays["position_ids"][2][is_image] += 1
        return arrays

    def generation(self) -> Generation:
        """Return how to generate with the decoder: positions come from outside."""
        return super().generation().model_copy(update={"position_ids": "position_ids", "position_axes": 3})

    def preprocess(self) -> ImagePreprocess:
        """Qwen2-VL's, at the fixed size; the tower cuts its own patches."""
        from argus_edge.exporters.clip import MEAN, STD

        return ImagePreprocess(
            height=self.side(),
            width=self.side(),
            resize="stretch",
            resample="bicubic",
            rescale=1 / 255,
            mean=MEAN,
            std=STD,
            layout="NCHW",
        )
