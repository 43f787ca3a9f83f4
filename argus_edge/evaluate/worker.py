"""One worker: a loaded model that carries out units of work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from argus_edge.errors import ArgusError, RunFailedError
from argus_edge.evaluate.conditions import image_perturber
from argus_edge.evaluate.datasets.images import ImageBrokenError
from argus_edge.evaluate.datasets.index import open_image
from argus_edge.evaluate.models import load_model
from argus_edge.evaluate.models.base import ModelSpec, as_matrix, capabilities_of, takes_image_ids
from argus_edge.evaluate.models.derived import chooser_for
from argus_edge.evaluate.models.user_class import told
from argus_edge.evaluate.store import Result
from argus_edge.evaluate.units import Job, Unit

__all__ = ["ModelFacts", "Worker"]

T = TypeVar("T")

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class ModelFacts:
    """What a loaded model says about itself."""

    capabilities: tuple[str, ...]
    takes_image_ids: bool


class Worker:
    """Loads a model once and runs units of a job with it.

    Raises
    ------
    ArgusError
        The model cannot be loaded.
    """

    def __init__(self, spec: ModelSpec) -> None:
        self._model = load_model(spec)
        self._loaders = ThreadPoolExecutor(max(1, spec.threads))
        self.facts = ModelFacts(capabilities_of(self._model), takes_image_ids(self._model))

    def begin(self, job: Job) -> None:
        """Take a job; units can be run from now on."""
        self._job = job
        self._chooser = chooser_for(self._model, self._statement)

    def close(self) -> None:
        """End the threads that open images."""
        self._loaders.shutdown()

    def run(self, unit: Unit) -> Result:
        """Carry out one unit.

        Raises
        ------
        RunFailedError
            The model fails, or gives what it should not.
        """
        try:
            result: Result = getattr(self, f"_{unit.op}")(unit)
        except ArgusError:
            raise
        except ImageBrokenError as error:
            raise RunFailedError(f"An image changed while it was evaluated: {error}.", where=str(unit)) from error
        except (Exception, SystemExit) as error:  # whatever a model raises is shown with the items that it was given
            raise RunFailedError(
                f"The model failed: {told(error)}",
                where=str(unit),
                next_step="what was done is kept: mend the cause and give the same command again",
            ) from error
        return result

    def _statement(self, question: str, choice: str) -> str:
        return self._job.prompts.render("statement", self._job.model.family, question=question, choice=choice)

    def _prepare(self, unit: Unit, index: int) -> Any:
        """Return what the model is given for an image: the picture, or its id."""
        ref = self._job.contents[unit.dataset].dataset.images[index]
        if self.facts.takes_image_ids:
            return ref.id
        return open_image(ref, image_perturber(unit.condition, self._job.seed, ref.id))

    def _batches(self, unit: Unit) -> Iterator[tuple[slice, list[Any]]]:
        """Yield (items, their images) batch by batch; the next batch is decoded while the model works."""
        indices, size = self._job.images(unit), self._job.batch_size
        parts = [slice(start, min(start + size, len(indices))) for start in range(0, len(indices), size)]

        def begin(part: slice) -> dict[int, Any]:
            wanted = dict.fromkeys(indices[part])
            return {index: self._loaders.submit(self._prepare, unit, index) for index in wanted}

        following = begin(parts[0]) if parts else {}
        for number, part in enumerate(parts):
            current = {index: future.result() for index, future in following.items()}
            following = begin(parts[number + 1]) if number + 1 < len(parts) else {}
            yield part, [current[index] for index in indices[part]]

    def _embed_images(self, unit: Unit) -> Result:
        return np.concatenate(
            [
                as_matrix(self._model.embed_images(images), len(images), "embed_images")
                for _, images in self._batches(unit)
            ]
        )

    def _embed_texts(self, unit: Unit) -> Result:
        parts = _in_batches(self._job.asked(unit), self._job.batch_size)
        return np.concatenate([as_matrix(self._model.embed_texts(part), len(part), "embed_texts") for part in parts])

    def _score_pairs(self, unit: Unit) -> Result:
        texts = self._job.asked(unit)
        rows = []
        for _, images in self._batches(unit):
            for image in images:
                parts = _in_batches(texts, self._job.batch_size)
                scores = [_scores(self._model.score_pairs([image] * len(part), part), len(part)) for part in parts]
                rows.append(np.concatenate(scores))
        return np.stack(rows)

    def _caption(self, unit: Unit) -> Result:
        prompt = self._job.prompts.render("caption", self._job.model.family)
        return [
            text
            for _, images in self._batches(unit)
            for text in _texts(self._model.caption(images, prompt), len(images), "caption")
        ]

    def _answer(self, unit: Unit) -> Result:
        family = self._job.model.family
        asked = [self._job.prompts.render("answer", family, question=text) for text in self._job.asked(unit)]
        return [
            text
            for part, images in self._batches(unit)
            for text in _texts(self._model.answer(images, asked[part]), len(images), "answer")
        ]

    def _choose(self, unit: Unit) -> Result:
        """Return the scores of the choices, one row a question, padded with NaN."""
        questions = self._job.questions(unit.dataset, "choose")[unit.start : unit.stop]
        choices = [self._job.choices(unit.dataset, question) for question in questions]
        asked = self._job.asked(unit)
        if "choose" in self.facts.capabilities:
            asked = [self._choice_prompt(text, options) for text, options in zip(asked, choices, strict=True)]
        table = np.full((len(questions), max(map(len, choices))), np.nan)
        for part, images in self._batches(unit):
            given = choices[part]
            rows = self._chooser.choose(images, asked[part], given)  # type: ignore[union-attr]  # planned for
            if len(rows) != len(given):
                raise ValueError(f"choose returned {len(rows)} rows for {len(given)} questions")
            for number, (row, options) in enumerate(zip(rows, given, strict=True), part.start):
                table[number, : len(options)] = _scores(row, len(options))
        return table

    def _choice_prompt(self, question: str, choices: Sequence[str]) -> str:
        listed = "\n".join(f"{letter}. {choice}" for letter, choice in zip(_LETTERS, choices, strict=False))
        return self._job.prompts.render("choose", self._job.model.family, question=question, choices=listed)


def _in_batches(items: Sequence[T], size: int) -> list[Sequence[T]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def _scores(values: Any, count: int) -> Any:
    row = np.asarray(values, dtype=np.float64)
    if row.shape != (count,):
        raise ValueError(f"the scores have the shape {row.shape} for {count} candidates")
    if not np.isfinite(row).all():
        raise ValueError("a score is not finite")
    return row


def _texts(values: Any, count: int, what: str) -> list[str]:
    texts = list(values)
    if len(texts) != count or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{what} must return one text for each of {count} images")
    return texts
