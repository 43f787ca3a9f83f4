"""The fp32 evaluation that a smaller file's quality is held against, and whether the two belong together."""

from __future__ import annotations

from collections.abc import Sequence

from argus_edge.reports import Found
from argus_edge.schema.evaluation import EvalReport
from argus_edge.score.cohort import check_evals


def is_original(found: Found[EvalReport]) -> bool:
    """Say whether a report is of the model as it was trained, in fp32."""
    return found.artifact.model.precision in ("fp32", "float32")


def original_of(found: Found[EvalReport], evals: Sequence[Found[EvalReport]], dataset: str) -> Found[EvalReport] | None:
    """Return the newest fp32 report of the same model on a dataset: the report itself where it is of the fp32 model."""
    if is_original(found):
        return found
    info = found.artifact.model
    source = info.source_id or info.name
    known = [
        each
        for each in evals
        if is_original(each)
        and (each.artifact.model.source_id or each.artifact.model.name) == source
        and any(cell.dataset == dataset for cell in each.artifact.cells)
    ]
    return max(known, key=lambda each: each.artifact.created, default=None)


def check_same_data(one: Found[EvalReport], other: Found[EvalReport], dataset: str) -> None:
    """Refuse two reports of which one has another dataset hash, split, gallery or prompt for a dataset.

    What they were perturbed with does not matter: a drop is between clean figures.

    Raises
    ------
    InputError
        Naming both files and what differs.
    """
    check_evals([_only(one, dataset), _only(other, dataset)])


def _only(found: Found[EvalReport], dataset: str) -> Found[EvalReport]:
    report = found.artifact
    cells = [cell for cell in report.cells if cell.dataset == dataset]
    used = {prompt for cell in cells for prompt in cell.prompt_ids}
    only = report.model_copy(
        update={
            "cells": cells,
            "datasets": [each for each in report.datasets if each.name == dataset],
            "prompts": {name: text for name, text in report.prompts.items() if name in used or not used},
            "perturbations": [],
        }
    )
    return Found(found.path, found.sha256, only)
