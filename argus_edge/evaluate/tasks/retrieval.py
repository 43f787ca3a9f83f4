"""Retrieval both ways: by the cosine of embeddings, or by scores of pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from argus_edge.evaluate.conditions import CLEAN, Condition
from argus_edge.evaluate.metrics import (
    RetrievalScores,
    interval_of_ratio,
    retrieval_chance,
    retrieval_from_embeddings,
    retrieval_from_scores,
)
from argus_edge.evaluate.store import Result
from argus_edge.evaluate.tasks.base import (
    CannotDo,
    CellFacts,
    Measured,
    Setting,
    column,
    interval,
    joined_array,
    measurement,
)
from argus_edge.evaluate.units import Op, Unit, shards
from argus_edge.schema.evaluation import Metric

__all__ = ["Retrieval"]

_RANKS = (1, 5, 10)


class Retrieval:
    """The gallery is the dataset's images and their captions, any of an image's captions counting as right."""

    def __init__(self, setting: Setting) -> None:
        job, dataset, capabilities = setting.job, setting.dataset, setting.capabilities
        self._job, self._dataset = job, dataset
        self._content = job.contents[dataset]
        images = len(self._content.dataset.images)
        self._pairs = "embed" not in capabilities
        if self._pairs and "score_pairs" not in capabilities:
            raise CannotDo("the model neither embeds images and texts nor scores pairs")
        self._gallery = job.pair_gallery(dataset) if self._pairs else self._content.gallery
        gallery_images = job.count("score_pairs", dataset) if self._pairs else images
        if gallery_images < 2:
            raise CannotDo("a gallery of one image has nothing to retrieve")
        self._owners = np.array([index for index, _, _ in self._gallery], np.int64)
        prompt = "match" if self._pairs else "embed"
        self._gallery_images = gallery_images
        self.facts = CellFacts(
            method="scores of image-text pairs" if self._pairs else "cosine of embeddings",
            headline="mean of R@1 both ways",
            chance=retrieval_chance(self._owners, gallery_images),
            chance_is="a random order of the gallery",
            prompt_ids=(job.prompts.id(prompt, job.model.family),),
            gallery_images=gallery_images,
            gallery_texts=len(self._gallery),
        )

    def ops(self) -> tuple[Op, ...]:
        """Embeddings of both sides, or scores of pairs."""
        return ("score_pairs",) if self._pairs else ("embed_images", "embed_texts")

    def applies(self, condition: Condition) -> bool:
        """Images and captions are both inputs."""
        return True

    def units(self, condition: Condition) -> list[Unit]:
        """Return the units; with embeddings, the side that is not perturbed is the clean one."""
        if self._pairs:
            return list(shards(self._job, "score_pairs", self._dataset, condition))
        return self._side("embed_images", condition) + self._side("embed_texts", condition)

    def _side(self, op: Op, condition: Condition) -> list[Unit]:
        own = {"embed_images": "image", "embed_texts": "text"}[op]
        return list(shards(self._job, op, self._dataset, condition if condition.modality == own else CLEAN))

    def _scores(self, condition: Condition, results: Mapping[Unit, Result]) -> RetrievalScores:
        if self._pairs:
            return retrieval_from_scores(joined_array(self.units(condition), results), self._owners)
        images = joined_array(self._side("embed_images", condition), results)
        texts = joined_array(self._side("embed_texts", condition), results)
        return retrieval_from_embeddings(images, texts, self._owners)

    def measure(self, condition: Condition, results: Mapping[Unit, Result], weights: npt.NDArray[Any]) -> Measured:
        """Return R@1/5/10 and median rank both ways."""
        scores = self._scores(condition, results)
        metrics: dict[str, Metric] = {}
        asked = {"i2t": int((scores.image_to_text > 0).sum()), "t2i": len(scores.text_to_image)}
        for direction, count in asked.items():
            for k in _RANKS:
                columns = {name: self._whole(values) for name, values in scores.statistics(k).items()}
                bounds = interval_of_ratio(columns[f"{direction}_hits"], columns[f"{direction}_queries"], weights)
                metrics[f"r{k}_{direction}"] = Metric(
                    value=scores.recall(direction, k), interval=interval(bounds), n=count
                )
            metrics[f"medr_{direction}"] = Metric(
                value=scores.median_rank(direction),
                interval=interval(scores.median_rank_interval(direction)),
                higher_is_better=False,
                n=count,
            )
        statistics = {name: column(self._whole(values)) for name, values in scores.statistics(1).items()}
        return Measured(
            measurement(condition, scores.headline, self.facts.chance, metrics, statistics), self._records(scores)
        )

    def _whole(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return a per-image column over all of the dataset's images: those outside the gallery ask nothing."""
        return np.pad(values, (0, len(self._content.dataset.images) - len(values)))

    def _records(self, scores: RetrievalScores) -> dict[str, Any]:
        images = self._content.dataset.images
        asking = np.flatnonzero(scores.image_to_text > 0)
        return {
            "direction": ["i2t"] * len(asking) + ["t2i"] * len(self._gallery),
            "image_id": [images[i].id for i in asking] + [images[index].id for index, _, _ in self._gallery],
            "query": [images[i].id for i in asking] + [item for _, item, _ in self._gallery],
            "rank": np.concatenate([scores.image_to_text[asking], scores.text_to_image]).astype(np.int32),
        }
