"""Captioning: one caption an image against its references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from argus_edge.errors import InputError
from argus_edge.evaluate.conditions import Condition
from argus_edge.evaluate.metrics import CaptionReferences, interval_of_bleu, interval_of_ratio
from argus_edge.evaluate.models.base import MAX_CAPTION_TOKENS
from argus_edge.evaluate.store import Result
from argus_edge.evaluate.tasks.base import (
    CannotDo,
    CellFacts,
    Measured,
    Setting,
    column,
    interval,
    joined_list,
    measurement,
)
from argus_edge.evaluate.units import Op, Unit, shards
from argus_edge.schema.evaluation import Metric

__all__ = ["Captioning"]


class Captioning:
    """BLEU-1 to 4, ROUGE-L and CIDEr over the images that have reference captions."""

    def __init__(self, setting: Setting) -> None:
        if "caption" not in setting.capabilities:
            raise CannotDo("the model does not describe images")
        self._job, self._dataset = setting.job, setting.dataset
        self._data = setting.job.contents[setting.dataset].dataset
        self._captioned = np.array([bool(captions) for captions in self._data.captions])
        try:
            self._references = CaptionReferences(
                [captions for captions in self._data.captions if captions], setting.frequencies
            )
        except InputError as error:
            others = ", or leave captioning out: --tasks retrieval,reasoning"
            raise InputError(
                error.what, where=f"captioning on {setting.dataset}", next_step=(error.next_step or "") + others
            ) from error
        self.facts = CellFacts(
            method=f"greedy generation, at most {MAX_CAPTION_TOKENS} tokens",
            headline="mean of BLEU-4 and CIDEr/1.5 (at most 1)",
            chance=0.0,
            chance_is="none for captions",
            prompt_ids=(self._job.prompts.id("caption", self._job.model.family),),
            idf_sha256=self._references.frequencies.sha256,
        )

    def ops(self) -> tuple[Op, ...]:
        """One caption an image."""
        return ("caption",)

    def applies(self, condition: Condition) -> bool:
        """Only the image is an input: the prompt is the tool's own."""
        return condition.modality != "text"

    def units(self, condition: Condition) -> list[Unit]:
        """Return the units over all images."""
        return list(shards(self._job, "caption", self._dataset, condition))

    def measure(self, condition: Condition, results: Mapping[Unit, Result], weights: npt.NDArray[Any]) -> Measured:
        """Return the caption metrics."""
        everything = joined_list(self.units(condition), results)
        captions = [text for text, wanted in zip(everything, self._captioned, strict=True) if wanted]
        scores = self._references.score(captions)
        bleu, rouge, cider = (self._whole(part) for part in (scores.bleu, scores.rouge, scores.cider))
        present = self._captioned.astype(np.uint8)
        figures = scores.metrics()
        bounds = {f"bleu_{n}": interval_of_bleu(bleu, weights, n) for n in range(1, 5)}
        bounds["rouge_l"] = interval_of_ratio(rouge, present, weights)
        bounds["cider"] = interval_of_ratio(cider, present, weights)
        metrics = {
            name: Metric(value=value, interval=interval(bounds[name]), n=len(captions))
            for name, value in figures.items()
        }
        statistics = {
            "cider": column(cider, "float64"),
            "bleu": column(bleu, "uint16"),
            "captioned": column(present),
        }
        images = [ref for ref, wanted in zip(self._data.images, self._captioned, strict=True) if wanted]
        return Measured(
            measurement(condition, scores.headline, 0.0, metrics, statistics),
            {
                "image_id": [ref.id for ref in images],
                "caption": captions,
                "cider": scores.cider.tolist(),
                "rouge_l": scores.rouge.tolist(),
            },
        )

    def _whole(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return a column over all images, 0 where an image has no reference."""
        whole = np.zeros((len(self._captioned), *values.shape[1:]), values.dtype)
        whole[self._captioned] = values
        return whole
