"""An exported LXMERT for question answering, on region features that the user has computed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from argus_edge.errors import InputError
from argus_edge.evaluate.models.base import ModelSpec
from argus_edge.evaluate.models.bundle_base import Bundle
from argus_edge.evaluate.models.regions import RegionFeatures, answer_names

__all__ = ["LxmertBundle", "load_lxmert_bundle"]

_MAX_LENGTH = 20  # LXMERT's own


class LxmertBundle(Bundle):
    """Answers with one of the answers that the model's configuration names; ``images`` are ids."""

    takes_image_ids = True

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        self._encoder = self.runner("encoder")
        shapes = {output.name: output.shape for output in self._encoder.component.outputs}
        if "question_answering_score" not in shapes:
            raise InputError(
                "The bundle gives LXMERT's hidden states; only its question answering can be evaluated.",
                where=str(self.folder),
                next_step="export an LxmertForQuestionAnswering",
            )
        self._regions = RegionFeatures(spec.features, spec.location)
        self._tokenizer = self.tokenizer()
        path = self.folder / "processor" / "config.json"
        try:
            labels = json.loads(path.read_text(encoding="utf-8")).get("id2label")
        except (OSError, ValueError, AttributeError):
            labels = None
        self._names = answer_names(labels, int(shapes["question_answering_score"][-1]), str(path))

    def answer(self, images: Sequence[str], questions: Sequence[str]) -> list[str]:
        """Return the likeliest answer to each question."""
        found = []
        for image_id, question in zip(images, questions, strict=True):
            features, boxes = self._regions.get(image_id)
            tokens: dict[str, Any] = dict(
                self._tokenizer([question], truncation=True, max_length=_MAX_LENGTH, return_tensors="np")
            )
            tokens.setdefault("token_type_ids", np.zeros_like(tokens["input_ids"]))
            scores = self._encoder({**tokens, "visual_feats": features[None], "visual_pos": boxes[None]})
            found.append(self._names[int(scores["question_answering_score"][0].argmax())])
        return found


def load_lxmert_bundle(spec: ModelSpec) -> LxmertBundle:
    """Load an LXMERT bundle."""
    return LxmertBundle(spec)
