"""The unit of work: a small, pure piece of inference, named by the hash of everything that its result depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from argus_edge._version import __version__
from argus_edge.evaluate.conditions import Condition, text_perturber
from argus_edge.evaluate.datasets import Dataset, Question
from argus_edge.evaluate.models.base import ModelSpec
from argus_edge.evaluate.prompts import Prompts

__all__ = ["SHARD_SIZES", "Job", "Op", "Unit", "shards", "unit_key"]

Op = Literal["embed_images", "embed_texts", "score_pairs", "caption", "answer", "choose"]

# Items a unit: what a killed run loses at most, and what a worker is given at a time. They never depend on the number
# of workers, so neither does the composition of a batch, nor a result.
SHARD_SIZES: dict[Op, int] = {
    "embed_images": 256,
    "embed_texts": 2048,
    "score_pairs": 8,
    "caption": 64,
    "answer": 128,
    "choose": 128,
}


@dataclass(frozen=True)
class Unit:
    """Items ``start`` to ``stop`` (images, gallery texts or questions) of a dataset under a condition."""

    op: Op
    dataset: str
    condition: Condition
    start: int
    stop: int

    def __str__(self) -> str:
        return f"{self.op} of {self.dataset} {self.start}–{self.stop - 1}, {self.condition}"


@dataclass(frozen=True)
class Content:
    """A dataset as it is evaluated on, with the content hash of each of its images."""

    dataset: Dataset
    image_hashes: tuple[str, ...]

    @cached_property
    def gallery(self) -> tuple[tuple[int, str, str], ...]:
        """Retrieval's texts: (index of the image, item id, caption)."""
        return tuple(
            (index, f"{self.dataset.images[index].id}#{number}", caption)
            for index, captions in enumerate(self.dataset.captions)
            for number, caption in enumerate(captions[: self.dataset.gallery_captions])
        )

    @cached_property
    def free_questions(self) -> tuple[Question, ...]:
        """Questions to be answered in the model's own words or from the closed answer set."""
        return tuple(question for question in self.dataset.questions if not question.choices)

    @cached_property
    def choice_questions(self) -> tuple[Question, ...]:
        """Questions that come with choices."""
        return tuple(question for question in self.dataset.questions if question.choices)


@dataclass(frozen=True)
class Job:
    """What every unit of a run shares; sent to each worker once.

    Attributes
    ----------
    choose_free
        Free questions are answered by choosing from the dataset's answer set, since the model cannot write.
    pair_images
        Images in the gallery of a model that scores pairs: its work grows with their square.
    software
        Package -> version, of what a result may depend on.
    """

    model: ModelSpec
    contents: Mapping[str, Content]
    prompts: Prompts
    seed: int
    batch_size: int
    choose_free: bool
    pair_images: int
    software: Mapping[str, str] = field(default_factory=dict)
    _memo: dict[tuple[str, Condition], list[str]] = field(default_factory=dict, repr=False, compare=False)

    def questions(self, dataset: str, op: Op) -> tuple[Question, ...]:
        """Return the questions that an op (``answer`` or ``choose``) of this run is about."""
        content = self.contents[dataset]
        if self.choose_free:
            return content.dataset.questions if op == "choose" else ()
        return content.choice_questions if op == "choose" else content.free_questions

    def choices(self, dataset: str, question: Question) -> tuple[str, ...]:
        """Return what may be chosen from."""
        return question.choices or self.contents[dataset].dataset.answer_set

    def count(self, op: Op, dataset: str) -> int:
        """Return how many items an op goes over."""
        content = self.contents[dataset]
        if op == "score_pairs":
            return min(self.pair_images, len(content.dataset.images))
        if op == "embed_texts":
            return len(content.gallery)
        if op in ("answer", "choose"):
            return len(self.questions(dataset, op))
        return len(content.dataset.images)

    def asked(self, unit: Unit) -> list[str]:
        """Return the texts that a unit's model is given, perturbed, in order; for pairs, the whole gallery."""
        perturb = text_perturber(unit.condition, self.seed)
        content = self.contents[unit.dataset]
        if unit.op == "embed_texts":
            part = content.gallery[unit.start : unit.stop]
            return [
                self.prompts.render("embed", self.model.family, caption=perturb(text, item)) for _, item, text in part
            ]
        if unit.op == "score_pairs":
            return self._pair_texts(unit.dataset, unit.condition)
        if unit.op in ("answer", "choose"):
            questions = self.questions(unit.dataset, unit.op)[unit.start : unit.stop]
            return [perturb(question.text, question.id) for question in questions]
        return []

    def _pair_texts(self, dataset: str, condition: Condition) -> list[str]:
        # The same for every image, so made once for a condition rather than once for a unit.
        key = (dataset, condition)
        if key not in self._memo:
            perturb = text_perturber(condition, self.seed)
            self._memo.clear()
            self._memo[key] = [
                self.prompts.render("match", self.model.family, caption=perturb(text, item))
                for _, item, text in self.pair_gallery(dataset)
            ]
        return self._memo[key]

    def pair_gallery(self, dataset: str) -> tuple[tuple[int, str, str], ...]:
        """Return the texts of the gallery that pairs are scored over: those of its first images."""
        images = self.count("score_pairs", dataset)
        return tuple(entry for entry in self.contents[dataset].gallery if entry[0] < images)

    def images(self, unit: Unit) -> list[int]:
        """Return the indices of the images that a unit's items are about, in order, as often as they come."""
        if unit.op == "embed_texts":
            return []
        if unit.op in ("answer", "choose"):
            return [question.image for question in self.questions(unit.dataset, unit.op)[unit.start : unit.stop]]
        return list(range(unit.start, unit.stop))


def shards(job: Job, op: Op, dataset: str, condition: Condition) -> Iterator[Unit]:
    """Yield the units that an op goes over a dataset in."""
    total, size = job.count(op, dataset), SHARD_SIZES[op]
    for start in range(0, total, size):
        yield Unit(op, dataset, condition, start, min(start + size, total))


_PROMPT_OF: dict[Op, Sequence[str]] = {
    "embed_images": (),
    "embed_texts": ("embed",),
    "score_pairs": ("match",),
    "caption": ("caption",),
    "answer": ("answer",),
    "choose": ("choose", "statement"),
}


def prompt_tasks(op: Op) -> Sequence[str]:
    """Return the prompts that an op uses."""
    return _PROMPT_OF[op]


def unit_key(job: Job, unit: Unit) -> str:
    """Return the name of a unit's result: the hash of all that it depends on.

    Two runs whose units have the same content (another dataset with the same images, another limit) share results.
    """
    content = job.contents[unit.dataset]
    model = job.model
    images = [
        # A perturbation is drawn per item, so the id counts where one is applied; so it does for a model fed by ids.
        (content.image_hashes[index], content.dataset.images[index].id, content.dataset.images[index].drawn)
        for index in job.images(unit)
    ]
    parts = [
        __version__,
        sorted(job.software.items()),
        [unit.op, model.kind, model.family, model.sha256],
        [model.compute.partition(":")[0], model.dtype, model.threads, job.batch_size],
        [job.prompts.template(task, model.family) for task in prompt_tasks(unit.op)],
        images,
        # A text's perturbation shows in the text itself.
        [unit.condition.perturbation, unit.condition.severity, job.seed] if unit.condition.modality == "image" else [],
        job.asked(unit),
    ]
    if unit.op == "choose":
        questions = job.questions(unit.dataset, "choose")[unit.start : unit.stop]
        parts.append([job.choices(unit.dataset, question) for question in questions])
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
