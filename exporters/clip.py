"""CLIP: an image tower and a text tower with normalised embeddings (Radford et al., 2021)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch

from argus_edge.exporters.plan import (
    Arrays,
    ComponentPlan,
    Family,
    Piece,
    float_output,
    hide_tail,
    image_input,
    mask_input,
    token_input,
)
from argus_edge.schema.bundle import ImagePreprocess, Step, SymbolicDim, UnitOfWork

# openai/clip's published statistics of its training images, per channel.
MEAN = [0.48145466, 0.4578275, 0.40821073]
STD = [0.26862954, 0.26130258, 0.27577711]


class ImageTower(Piece):
    """Pixels to a unit-length embedding."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.vision_model = model.vision_model
        self.visual_projection = model.visual_projection

    def forward(self, pixel_values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return image_embeds of shape (batch, projection)."""
        pooled = self.vision_model(pixel_values=pixel_values).pooler_output
        return (torch.nn.functional.normalize(self.visual_projection(pooled), dim=-1),)

    def reference(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Use ``CLIPModel.get_image_features``."""
        return (_unit(self.original[0].get_image_features(pixel_values=inputs[0])),)


class TextTower(Piece):
    """Token ids to a unit-length embedding."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.text_model = model.text_model
        self.text_projection = model.text_projection

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return text_embeds of shape (batch, projection)."""
        pooled = self.text_model(input_ids=input_ids, attention_mask=attention_mask).pooler_output
        return (torch.nn.functional.normalize(self.text_projection(pooled), dim=-1),)

    def reference(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Use ``CLIPModel.get_text_features``."""
        return (_unit(self.original[0].get_text_features(input_ids=inputs[0], attention_mask=inputs[1])),)


def _unit(features: Any) -> torch.Tensor:
    # transformers 5 returns an output object from get_*_features, earlier ones the tensor.
    return torch.nn.functional.normalize(getattr(features, "pooler_output", features), dim=-1)


class ClipFamily(Family):
    """CLIPModel and its two towers."""

    name: ClassVar[str] = "clip"
    architectures: ClassVar[dict[str, str]] = {"CLIPModel": "CLIPModel"}

    def components(self) -> list[ComponentPlan]:
        """Return the image tower and the text tower."""
        vision, text = self.config.vision_config, self.config.text_config
        batch = SymbolicDim(name="batch", minimum=1, maximum=64, typical=1)
        longest = text.max_position_embeddings
        sequence = SymbolicDim(name="sequence", minimum=1, maximum=longest, typical=longest)
        short = max(2, longest // 4)
        return [
            ComponentPlan(
                name="image",
                role="image-encoder",
                inputs=(image_input("pixel_values", (vision.image_size, vision.image_size)),),
                outputs=(float_output("image_embeds", "batch", self.config.projection_dim),),
                dims=(batch,),
                cases=({"batch": 1}, {"batch": 2}, {"batch": 3}),
                mac_dims=({"batch": 1},),
                trace_dims={"batch": 2},
                build=ImageTower,
            ),
            ComponentPlan(
                name="text",
                role="text-encoder",
                inputs=(token_input("input_ids", text.vocab_size), mask_input("attention_mask")),
                outputs=(float_output("text_embeds", "batch", self.config.projection_dim),),
                dims=(batch, sequence),
                cases=(
                    {"batch": 1, "sequence": longest},
                    {"batch": 2, "sequence": short},
                    {"batch": 3, "sequence": short // 2 + 1},
                ),
                mac_dims=({"batch": 1, "sequence": longest},),
                trace_dims={"batch": 2, "sequence": short + 1},
                build=TextTower,
                finish=self._end_of_text,
            ),
        ]

    def _end_of_text(self, arrays: Arrays) -> Arrays:
        """Put one end-of-text token into each row, at a different place: its position is what CLIP pools."""
        text = self.config.text_config
        # Checkpoints from before transformers 4.31 say eos_token_id 2 and mean the largest id.
        end = text.vocab_size - 1 if text.eos_token_id == 2 else text.eos_token_id
        ids = arrays["input_ids"]
        ids[ids == end] = 3 if end != 3 else 4
        rows = np.arange(ids.shape[0])
        ids[rows, np.maximum(ids.shape[1] - 1 - rows, 0)] = end
        return hide_tail(arrays)

    def unit_of_work(self) -> UnitOfWork:
        """Retrieval: one image and one text embedded."""
        return UnitOfWork(
            task="retrieval",
            description="one image plus one text embedded, batch 1",
            steps=[Step(component="image", phase="encode"), Step(component="text", phase="encode")],
        )

    def preprocess(self) -> ImagePreprocess:
        """CLIP's own: shortest edge, centre crop, bicubic."""
        size = self.config.vision_config.image_size
        return ImagePreprocess(
            height=size,
            width=size,
            resize="shortest-edge-then-centre-crop",
            resample="bicubic",
            rescale=1 / 255,
            mean=MEAN,
            std=STD,
            layout="NCHW",
        )
