"""Judged metrics: which cell of which model a judge's calibrated mean is the metric of, and which only ranks."""

from __future__ import annotations

import string
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from argus_edge.errors import InputError
from argus_edge.reports import Found
from argus_edge.schema.judge import JudgeCalibration, JudgedMean
from argus_edge.schema.score import JudgedScore
from argus_edge.score.cohort import Member

Array = npt.NDArray[np.float64]
Place = tuple[str, str]
"""(task, dataset)"""

SHORTEST_HASH = 8


@dataclass(frozen=True)
class Graded:
    """One model's judged mean in one cell, with the file that it is from."""

    mean: JudgedMean
    source: Found[JudgeCalibration]

    @property
    def judge(self) -> str:
        """The judge, or the judges whose features were used together."""
        return " + ".join(self.source.artifact.judges)

    @property
    def reason(self) -> str:
        """Why the advice is what it is."""
        return next(task.reason for task in self.source.artifact.tasks if task.task == self.mean.task)


@dataclass(frozen=True)
class Judged:
    """What the judge files say of a cohort.

    Attributes
    ----------
    cells
        The cells whose metric is the judged one: for each, one mean a member, in the members' order.
    scores
        Every judged mean of a member, entered or not, for the report.
    notes
        What was left out before it came to a cell, and why.
    """

    cells: dict[Place, list[Graded]] = field(default_factory=dict)
    scores: list[JudgedScore] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def _member_of(mean: JudgedMean, members: Sequence[Member], where: str) -> int | None:
    """Return the member that a judged mean is of: by its name, by the beginning of its hash, or the only one."""
    if mean.model is None:
        return 0 if len(members) == 1 else None
    name = mean.model
    found = [index for index, member in enumerate(members) if member.name == name]
    if not found and len(name) >= SHORTEST_HASH and set(name.lower()) <= set(string.hexdigits):
        found = [index for index, member in enumerate(members) if member.key.startswith(name.lower())]
    if len(found) > 1:
        raise InputError(
            f"The judge's table names a model {name!r}, and {len(found)} eval reports are of models of that name.",
            where=where,
            next_step="write the beginning of the model's sha256 in the column `model`, as the eval report has it",
        )
    return found[0] if found else None


def _sorted_in(
    members: Sequence[Member], judges: Sequence[Found[JudgeCalibration]]
) -> tuple[dict[Place, dict[int, Graded]], list[str]]:
    by_place: dict[Place, dict[int, Graded]] = {}
    notes: list[str] = []
    for found in judges:
        for mean in found.artifact.judged:
            where = f"{found.label}: judged {mean.task}" + (f" of {mean.model}" if mean.model else "")
            if mean.cell is None:
                notes.append(
                    f"{where} is left out: it names no cell. Its rows need the columns task (captioning, reasoning "
                    "or retrieval) and dataset."
                )
                continue
            index = _member_of(mean, members, str(found.path))
            if index is None:
                whose = "no eval report is of that model" if mean.model else "its rows need the column model"
                notes.append(f"{where} is left out: {whose}.")
                continue
            known = by_place.setdefault(mean.cell, {}).setdefault(index, Graded(mean, found))
            if known.mean is not mean:
                raise InputError(
                    f"{members[index].name} is judged twice in {mean.cell[0]} on {mean.cell[1]}.",
                    where=f"{known.source.path} ({known.mean.task}) and {found.path} ({mean.task})",
                    next_step="leave one of the judge files out, or fit with --by task",
                )
    return by_place, list(dict.fromkeys(notes))


def judged_cells(members: Sequence[Member], judges: Sequence[Found[JudgeCalibration]]) -> Judged:
    """Decide which judged means are a metric, and which give ranks or nothing.

    A cell's metric is the judged one if every model of the cohort is judged in it and the advice is to score for all
    of them; there is no comparing a judged metric with another one.

    Raises
    ------
    InputError
        A model is judged twice in a cell, a name fits several models, or the models of a cell are on different scales.
    """
    by_place, notes = _sorted_in(members, judges)
    judged = Judged(notes=notes)
    for place, graded in by_place.items():
        first = next(iter(graded.values()))
        for other in graded.values():
            if other.source.artifact.levels != first.source.artifact.levels:
                raise InputError(
                    f"The models are judged on different scales in {place[0]} on {place[1]}: "
                    f"1..{first.source.artifact.levels} and 1..{other.source.artifact.levels}.",
                    where=f"{first.source.path} and {other.source.path}",
                    next_step="judge them all on one scale",
                )
        lacking = [member.name for index, member in enumerate(members) if index not in graded]
        entered = not lacking and all(each.mean.advice == "score" for each in graded.values())
        if entered:
            judged.cells[place] = [graded[index] for index in range(len(members))]
        ranks = _ranks(graded)
        for index, each in sorted(graded.items()):
            reason = each.reason
            if lacking and each.mean.advice == "score":
                reason = f"not judged for {', '.join(lacking)}; the models of a cell are compared on one metric"
            elif not entered and each.mean.advice == "score":
                reason = "another model of the cell is not to be scored by its judge"
            judged.scores.append(
                JudgedScore(
                    task=place[0],
                    dataset=place[1],
                    model=members[index].name,
                    judge=each.judge,
                    advice=each.mean.advice,
                    entered=entered,
                    reason=reason,
                    value=each.mean.unit_mean,
                    low=each.mean.unit_lower,
                    high=each.mean.unit_upper,
                    labelled=each.mean.labelled,
                    unlabelled=each.mean.unlabelled,
                    rank=None if each.mean.advice == "do not use" else ranks.get(index),
                )
            )
    return judged


def _ranks(graded: dict[int, Graded]) -> dict[int, int]:
    """Return each member's place by the judge's mean; none where it was not one judge that saw them all."""
    if len({each.judge for each in graded.values()}) > 1:
        return {}
    order = sorted(graded, key=lambda index: -graded[index].mean.judge_mean)
    return {index: place for place, index in enumerate(order, start=1)}


def judged_replicates(mean: JudgedMean, place: Place, model: str, replicates: int, seed: int) -> Array:
    """Return a judged cell's ``s`` with its replicates, shape (1 + replicates,): the estimate comes first.

    Drawn from the law of the prediction-powered mean's interval (t around the estimate), as
    :meth:`argus_edge.judge.ppi.PoweredMean.draws` does, in units of [0, 1], where 0 is the worst rating and stands for
    chance. Models and cells are drawn independently: the rows they share would only bring models closer together.
    """
    rng = np.random.default_rng([seed, zlib.crc32(" on ".join(place).encode()), zlib.crc32(model.encode())])
    drawn = mean.unit_mean + mean.unit_standard_error * rng.standard_t(mean.degrees_of_freedom, replicates)
    return np.clip(np.concatenate([[mean.unit_mean], drawn]), 0.0, 1.0)
