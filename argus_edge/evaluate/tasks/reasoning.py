"""Reasoning: questions answered in words, by choice, or by the best of the dataset's answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from argus_edge.evaluate.conditions import Condition
from argus_edge.evaluate.datasets import Question
from argus_edge.evaluate.metrics import (
    answers_match,
    constant_answer_chance,
    interval_of_ratio,
    normalize_answer,
    score_answers,
)
from argus_edge.evaluate.metrics.answers import choose_answer
from argus_edge.evaluate.models.base import MAX_ANSWER_TOKENS
from argus_edge.evaluate.store import Result
from argus_edge.evaluate.tasks.base import (
    CannotDo,
    CellFacts,
    Measured,
    Setting,
    column,
    interval,
    joined_array,
    joined_list,
    measurement,
)
from argus_edge.evaluate.units import Op, Unit, shards
from argus_edge.schema.evaluation import Metric

__all__ = ["Reasoning"]

# Candidates that a model which can only choose is given for a free question.
MAX_CANDIDATES = 1000


@dataclass(frozen=True)
class _Given:
    """What a model answered to one question."""

    question: Question
    answer: str
    correct: bool


class Reasoning:
    """Accuracy over questions, or over groups of questions that must all be right (VCR's Q->AR)."""

    def __init__(self, setting: Setting) -> None:
        job, dataset, capabilities = setting.job, setting.dataset, setting.capabilities
        self._job, self._dataset = job, dataset
        content = job.contents[dataset].dataset
        self._data = content
        can_choose = bool({"choose", "embed", "score_pairs"} & set(capabilities))
        free, given = job.questions(dataset, "answer"), job.questions(dataset, "choose")
        if given and not can_choose:
            raise CannotDo("the model cannot choose among given answers")
        if free and "answer" not in capabilities:
            raise CannotDo("the model cannot answer in words")
        candidates = len(content.answer_set)
        if any(not question.choices for question in given) and not 2 <= candidates <= MAX_CANDIDATES:
            raise CannotDo(f"the model can only choose among answers, and the dataset has {candidates} of them")
        self._grouped = any(question.group for question in content.questions)
        chance = self._chance()
        if chance >= 1:
            raise CannotDo("every question of a type has the same answer, so a constant answer is always right")
        family = job.model.family
        prompts = []
        if free:
            prompts.append(job.prompts.id("answer", family))
        if given:
            prompts.append(job.prompts.id("choose" if "choose" in capabilities else "statement", family))
        methods = []
        if free:
            methods.append(f"free answers of at most {MAX_ANSWER_TOKENS} tokens")
        if given:
            methods.append("choice among answers")
        self.facts = CellFacts(
            method=" and ".join(methods),
            headline="Q->AR accuracy" if self._grouped else "accuracy",
            chance=chance,
            chance_is="a random choice" if self._all_choices() else "the best constant answer of each question type",
            prompt_ids=tuple(prompts),
        )

    def _all_choices(self) -> bool:
        return all(question.choices for question in self._data.questions)

    def _chance(self) -> float:
        """Return what guessing gets: one in the number of choices, or the best constant answer of the type."""
        if self._grouped:
            groups: dict[str, float] = {}
            for question in self._data.questions:
                groups[question.group] = groups.get(question.group, 1.0) / len(question.choices)
            return float(np.mean(list(groups.values())))
        free = [question for question in self._data.questions if not question.choices]
        constant = constant_answer_chance(
            [normalize_answer(question.answers[0]) for question in free], [question.type for question in free]
        )
        chosen = sum(1 / len(question.choices) for question in self._data.questions if question.choices)
        return (constant * len(free) + chosen) / len(self._data.questions)

    def ops(self) -> tuple[Op, ...]:
        """Free answers, choices, or both."""
        wanted: tuple[Op, ...] = ("answer", "choose")
        return tuple(op for op in wanted if self._job.questions(self._dataset, op))

    def applies(self, condition: Condition) -> bool:
        """Images and questions are both inputs."""
        return True

    def units(self, condition: Condition) -> list[Unit]:
        """Return the units over free questions and over those with choices."""
        return [unit for op in self.ops() for unit in shards(self._job, op, self._dataset, condition)]

    def measure(self, condition: Condition, results: Mapping[Unit, Result], weights: npt.NDArray[Any]) -> Measured:
        """Return accuracy, overall and by question type."""
        given = self._given(self.units(condition), results)
        headline, columns, count = self._headline(given)
        metrics = {
            "accuracy": Metric(
                value=headline,
                interval=interval(interval_of_ratio(columns["hits"], columns["questions"], weights)),
                n=count,
            )
        }
        if self._grouped:
            metrics["q_ar"] = metrics["accuracy"]
        for kind in sorted({answer.question.type for answer in given if answer.question.type}):
            scores = self._score([answer for answer in given if answer.question.type == kind])
            statistics = scores.statistics()
            metrics[kind if self._grouped else f"accuracy.{kind}"] = Metric(
                value=scores.accuracy,
                interval=interval(interval_of_ratio(statistics["hits"], statistics["questions"], weights)),
                n=len(scores.correct),
            )
        return Measured(
            measurement(
                condition,
                headline,
                self.facts.chance,
                metrics,
                {name: column(values) for name, values in columns.items()},
            ),
            self._records(given),
        )

    def _score(self, given: Sequence[_Given]) -> Any:
        return score_answers(
            [answer.correct for answer in given],
            [answer.question.image for answer in given],
            len(self._data.images),
        )

    def _headline(self, given: Sequence[_Given]) -> tuple[float, dict[str, npt.NDArray[Any]], int]:
        if not self._grouped:
            scores = self._score(given)
            return scores.accuracy, scores.statistics(), len(scores.correct)
        right: dict[str, bool] = {}
        image: dict[str, int] = {}
        for answer in given:
            group = answer.question.group
            right[group] = right.get(group, True) and answer.correct
            image[group] = answer.question.image
        scores = score_answers(list(right.values()), list(image.values()), len(self._data.images))
        return scores.accuracy, scores.statistics(), len(right)

    def _given(self, units: Sequence[Unit], results: Mapping[Unit, Result]) -> list[_Given]:
        given = []
        answers = [unit for unit in units if unit.op == "answer"]
        texts = joined_list(answers, results)
        for question, text in zip(self._job.questions(self._dataset, "answer"), texts, strict=True):
            given.append(_Given(question, text, self._is_right(question, text)))
        chosen = [unit for unit in units if unit.op == "choose"]
        table = joined_array(chosen, results) if chosen else np.empty((0, 0))
        for question, row in zip(self._job.questions(self._dataset, "choose"), table, strict=True):
            choices = self._job.choices(self._dataset, question)
            given.append(_choice(question, choices, row[: len(choices)]))
        order = {question.id: number for number, question in enumerate(self._data.questions)}
        return sorted(given, key=lambda answer: order[answer.question.id])

    def _is_right(self, question: Question, text: str) -> bool:
        if self._data.closed_answers:
            named = choose_answer(text, self._data.answer_set)
            return named is not None and answers_match(named, question.answers)
        return answers_match(text, question.answers)

    def _records(self, given: Sequence[_Given]) -> dict[str, Any]:
        images = self._data.images
        return {
            "image_id": [images[answer.question.image].id for answer in given],
            "question_id": [answer.question.id for answer in given],
            "type": [answer.question.type for answer in given],
            "answer": [answer.answer for answer in given],
            "expected": [" | ".join(answer.question.answers) for answer in given],
            "correct": [answer.correct for answer in given],
        }


def _choice(question: Question, choices: Sequence[str], scores: npt.NDArray[Any]) -> _Given:
    """Return what was chosen; a right answer that only ties with a wrong one is not chosen."""
    if question.correct is not None:
        # Letter by letter: two choices may differ by no more than an article.
        right = np.array([choice == choices[question.correct] for choice in choices])
    else:
        accepted = {normalize_answer(answer) for answer in question.answers}
        right = np.array([normalize_answer(choice) in accepted for choice in choices])
    best_right = scores[right].max(initial=-np.inf)
    best_wrong = scores[~right].max(initial=-np.inf)
    return _Given(question, choices[int(np.argmax(scores))], bool(best_right > best_wrong))
