"""LXMERT in torch, on region features that the user has computed (H. Tan and M. Bansal. EMNLP 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from argus_edge.evaluate.models.base import Array, ModelSpec
from argus_edge.evaluate.models.regions import RegionFeatures, answer_names
from argus_edge.evaluate.models.torch_base import Torch, load_tokenizer, load_torch, stacked, to_numpy

__all__ = ["LxmertAnswerer", "LxmertMatcher", "load_lxmert"]

_MAX_LENGTH = 20  # LXMERT's own


class _Lxmert(Torch):
    takes_image_ids = True

    def __init__(self, spec: ModelSpec, model: Any) -> None:
        super().__init__(spec, model)
        self.tokenizer = load_tokenizer(self.location)
        self.regions = RegionFeatures(spec.features, spec.location)

    def _output(self, ids: Sequence[str], texts: Sequence[str]) -> Any:
        tokens = self.tokenizer(list(texts), padding=True, truncation=True, max_length=_MAX_LENGTH, return_tensors="pt")
        found = [self.regions.get(image_id) for image_id in ids]
        most = max(len(features) for features, _ in found)
        # Images with fewer regions are filled up and masked.
        mask = torch.tensor([[1.0] * len(f) + [0.0] * (most - len(f)) for f, _ in found])
        features = np.stack([np.pad(f, ((0, most - len(f)), (0, 0))) for f, _ in found])
        boxes = np.stack([np.pad(b, ((0, most - len(b)), (0, 0))) for _, b in found])
        return self.model(
            **self.on_device(
                {
                    **{
                        name: tokens[name]
                        for name in ("input_ids", "attention_mask", "token_type_ids")
                        if name in tokens
                    },
                    "visual_feats": torch.from_numpy(features),
                    "visual_pos": torch.from_numpy(boxes),
                    "visual_attention_mask": mask,
                }
            )
        )


class LxmertAnswerer(_Lxmert):
    """LxmertForQuestionAnswering: one of the answers that the checkpoint's configuration names."""

    def __init__(self, spec: ModelSpec, model: Any) -> None:
        super().__init__(spec, model)
        self.names = answer_names(model.config.id2label, model.config.num_qa_labels, spec.location)

    def answer(self, images: Sequence[str], questions: Sequence[str]) -> list[str]:
        """Return the likeliest answer to each question; ``images`` are ids."""

        def call(ids: Sequence[str], asked: Sequence[str]) -> list[str]:
            best = self._output(ids, asked).question_answering_score.argmax(dim=-1).tolist()
            return [self.names[index] for index in best]

        return self.fitting(call, images, questions)


class LxmertMatcher(_Lxmert):
    """LxmertForPreTraining: its cross-modal matching head scores a caption against an image."""

    def score_pairs(self, images: Sequence[str], texts: Sequence[str]) -> Array:
        """Return the log-odds of "matched"; ``images`` are ids."""

        def call(ids: Sequence[str], batch: Sequence[str]) -> list[Array]:
            odds = self._output(ids, batch).cross_relationship_score
            return list(to_numpy(odds[:, 1] - odds[:, 0]))

        return stacked(self.fitting(call, images, texts))


_ADAPTERS: dict[str, type[LxmertAnswerer | LxmertMatcher]] = {
    "LxmertForQuestionAnswering": LxmertAnswerer,
    "LxmertForPreTraining": LxmertMatcher,
}


def load_lxmert(spec: ModelSpec) -> LxmertAnswerer | LxmertMatcher:
    """Load an LXMERT checkpoint of one of two kinds."""
    model, architecture = load_torch(spec, list(_ADAPTERS))
    return _ADAPTERS[architecture](spec, model)
