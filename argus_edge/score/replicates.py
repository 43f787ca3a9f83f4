"""Bootstrap replicates of every cell's ``s``: a weight matrix over images times per-image columns, then one ratio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from argus_edge.errors import InputError
from argus_edge.evaluate.metrics.bleu import bleu_from_sums
from argus_edge.schema.evaluation import Cell, Column, DatasetInfo, Measurement
from argus_edge.score.formulas import above_chance

Array = npt.NDArray[np.float64]
Condition = tuple[str, str, int]
"""(modality, perturbation, severity)"""

RETRIEVAL = ("i2t_hits", "i2t_queries", "t2i_hits", "t2i_queries")
CAPTIONING = ("captioned", "cider", "bleu")
REASONING = ("hits", "questions")


@dataclass(frozen=True)
class CellReplicates:
    """``s`` of one cell: the estimate and its replicates, clean and under each condition.

    Arrays have shape (1 + replicates,): the estimate itself comes first, with every image weighing 1.
    """

    clean: Array
    raw: float
    grid: dict[Condition, Array]


def decode(column: Column, where: str) -> Array:
    """Return a column as float64 of its shape.

    Raises
    ------
    InputError
        The column does not hold what it says.
    """
    try:
        raw = column.to_bytes()
    except ValueError as error:
        raise InputError(f"The eval report cannot be read: {error}.", where=where) from error
    return np.frombuffer(raw, dtype=np.dtype(column.dtype).newbyteorder("<")).reshape(column.shape).astype(np.float64)


def columns_of(measurement: Measurement, task: str, images: int, where: str) -> Array:
    """Return a measurement's per-image columns, shape (images, columns): 4 for retrieval, 12 captioning, 2 reasoning.

    Raises
    ------
    InputError
        A column is missing or not one row an image.
    """
    names = {"retrieval": RETRIEVAL, "captioning": CAPTIONING, "reasoning": REASONING}[task]
    parts = []
    for name in names:
        if name not in measurement.statistics:
            raise InputError(f"The eval report lacks the per-image statistic {name!r}.", where=where)
        values = decode(measurement.statistics[name], where)
        values = values.reshape(values.shape[0], -1) if values.size else values.reshape(0, 1)
        if len(values) != images:
            raise InputError(f"{name!r} has {len(values)} rows for {images} images.", where=where)
        parts.append(values)
    return np.hstack(parts)


def headline_of(task: str, sums: Array) -> Array:
    """Return a cell's headline metric from weighted sums of its columns.

    Parameters
    ----------
    task
        retrieval: mean of R@1 both ways; captioning: mean of BLEU-4 and min(1, CIDEr / 1.5); reasoning: accuracy.
    sums
        Shape (replicates, columns).
    """
    if task == "retrieval":
        return np.asarray((_ratio(sums[:, 0], sums[:, 1]) + _ratio(sums[:, 2], sums[:, 3])) / 2)
    if task == "reasoning":
        return _ratio(sums[:, 0], sums[:, 1])
    # CIDEr is a mean over the images that have references.
    cider = np.minimum(1.0, _ratio(sums[:, 1], sums[:, 0]) / 1.5)
    return np.asarray((bleu_from_sums(sums[:, 2:])[:, 3] + cider) / 2)


def _ratio(hits: Array, queries: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(queries > 0, hits / queries, 0.0)


def replicate_cell(cell: Cell, dataset: DatasetInfo, weights: Array, where: str) -> CellReplicates:
    """Return a cell's ``s`` and its replicates, clean and under every condition.

    One matrix product for all conditions: (1 + B, images) times (images, conditions x columns).
    """
    images = len(dataset.image_ids)
    measurements = cell.measurements
    stacked = [columns_of(measurement, cell.task, images, where) for measurement in measurements]
    widths = np.cumsum([0, *(block.shape[1] for block in stacked)])
    sums = weights @ np.hstack(stacked)
    headlines = {
        (measurement.modality, measurement.perturbation, measurement.severity): headline_of(
            cell.task, sums[:, widths[index] : widths[index + 1]]
        )
        for index, measurement in enumerate(measurements)
    }
    s = {condition: above_chance(metric, cell.chance) for condition, metric in headlines.items()}
    (clean,) = [condition for condition in s if condition[0] == "none"]
    return CellReplicates(
        clean=s[clean],
        raw=float(headlines[clean][0]),
        grid={condition: values for condition, values in s.items() if condition != clean},
    )


def replicate_all(
    cells: Mapping[tuple[str, str], tuple[Cell, DatasetInfo]],
    places: Sequence[tuple[str, str]],
    weights: Mapping[str, Array],
    where: str,
) -> list[CellReplicates]:
    """Return the replicates of a model's cells in the order of ``places``."""
    return [replicate_cell(*cells[place], weights[place[1]], where) for place in places]
