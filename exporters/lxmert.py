"""LXMERT: text and region features to joint representations or answers (Tan and Bansal, 2019).

The region features come from a Faster R-CNN that is no part of the model: the bundle is labelled "encoder only".
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from argus_edge.exporters.plan import (
    ComponentPlan,
    Family,
    Piece,
    feature_input,
    float_output,
    hide_tail,
    mask_input,
    token_input,
)
from argus_edge.schema.bundle import Step, SymbolicDim, TensorSpec, UnitOfWork, ValueRange

# The published detector gives 36 regions an image; questions are padded to 20 tokens.
REGIONS, QUESTION_TOKENS = 36, 20


class Encoder(Piece):
    """LXMERT with or without its question-answering head."""

    def __init__(self, model: Any, *, answers: bool) -> None:
        super().__init__()
        self.model = model
        self.answers = answers

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        token_type_ids: torch.Tensor,
        visual_feats: torch.Tensor,
        visual_pos: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """Return the answers' scores, or language, vision and pooled outputs."""
        found = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
            visual_feats=visual_feats,
            visual_pos=visual_pos,
            return_dict=True,
        )
        if self.answers:
            return (found.question_answering_score,)
        return found.language_output, found.vision_output, found.pooled_output


class LxmertFamily(Family):
    """LxmertModel and LxmertForQuestionAnswering."""

    name: ClassVar[str] = "lxmert"
    encoder_only: ClassVar[bool] = True
    architectures: ClassVar[dict[str, str]] = {
        "LxmertModel": "LxmertModel",
        "LxmertForPreTraining": "LxmertModel",
        "LxmertForQuestionAnswering": "LxmertForQuestionAnswering",
    }

    @property
    def _answers(self) -> bool:
        return self.architecture == "LxmertForQuestionAnswering"

    def components(self) -> list[ComponentPlan]:
        """Return the one component."""
        config = self.config
        width = config.hidden_size
        outputs = (
            (float_output("question_answering_score", "batch", config.num_qa_labels),)
            if self._answers
            else (
                float_output("language_output", "batch", "sequence", width),
                float_output("vision_output", "batch", "regions", width),
                float_output("pooled_output", "batch", width),
            )
        )
        return [
            ComponentPlan(
                name="encoder",
                role="encoder",
                inputs=(
                    token_input("input_ids", config.vocab_size),
                    mask_input("attention_mask"),
                    TensorSpec(
                        name="token_type_ids",
                        dtype="int64",
                        shape=["batch", "sequence"],
                        values=ValueRange(minimum=0, maximum=max(0, config.type_vocab_size - 1), fill="zeros"),
                    ),
                    feature_input("visual_feats", ("batch", "regions", config.visual_feat_dim)),
                    TensorSpec(
                        name="visual_pos",
                        dtype="float32",
                        shape=["batch", "regions", config.visual_pos_dim],
                        values=ValueRange(minimum=0.0, maximum=1.0, fill="uniform"),
                    ),
                ),
                outputs=outputs,
                dims=(
                    SymbolicDim(name="batch", minimum=1, maximum=64, typical=1),
                    SymbolicDim(
                        name="sequence",
                        minimum=1,
                        maximum=config.max_position_embeddings,
                        typical=min(QUESTION_TOKENS, config.max_position_embeddings),
                    ),
                    SymbolicDim(name="regions", minimum=1, maximum=200, typical=REGIONS),
                ),
                cases=(
                    {"batch": 1, "sequence": min(QUESTION_TOKENS, config.max_position_embeddings), "regions": REGIONS},
                    {"batch": 2, "sequence": 7, "regions": 10},
                    {"batch": 3, "sequence": 4, "regions": 5},
                ),
                mac_dims=(
                    {"batch": 1, "sequence": min(QUESTION_TOKENS, config.max_position_embeddings), "regions": REGIONS},
                ),
                trace_dims={"batch": 2, "sequence": 5, "regions": 7},
                build=lambda model: Encoder(model, answers=self._answers),
                finish=hide_tail,
                notes=(
                    "encoder only: region features of a Faster R-CNN are inputs, its time is not in this component",
                ),
            )
        ]

    def unit_of_work(self) -> UnitOfWork:
        """One question, regions given."""
        return UnitOfWork(
            task="answering",
            description="one question over given region features, batch 1 (encoder only: the detector is not included)",
            steps=[Step(component="encoder", phase="encode")],
        )
