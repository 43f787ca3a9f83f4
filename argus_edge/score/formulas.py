"""P, CDC, RR, E and ARGUS as pure functions of arrays; every one works on single values and on bootstrap replicates.

Arrays of cell scores have the cells on their last axis; any axes before it (replicates) are carried along. The source
of every formula is the project's documentation (docs/score.md), after the ARGUS-EVAL paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
CellKey = tuple[str, str]
"""(task, dataset)"""


def above_chance(metric: Array, chance: float) -> Array:
    """Return ``s = max(0, (metric - chance) / (1 - chance))``.

    A model at chance gets 0, so that being steadily useless does not look reliable.
    """
    return np.maximum(0.0, (metric - chance) / (1.0 - chance))


def dataset_scores(cells: Sequence[CellKey], s: Array) -> dict[str, Array]:
    """Return ``s_D``, the mean over the tasks of each dataset.

    Parameters
    ----------
    cells
        (task, dataset) of each column of ``s``.
    s
        Shape (..., cells).

    Returns
    -------
    dict
        Dataset to an array of shape (...).
    """
    names = list(dict.fromkeys(dataset for _, dataset in cells))
    return {
        name: s[..., [index for index, (_, dataset) in enumerate(cells) if dataset == name]].mean(axis=-1)
        for name in names
    }


def capability(cells: Sequence[CellKey], s: Array) -> Array:
    """Return P, the mean of ``s_D`` over datasets; shape (...) from (..., cells)."""
    return np.mean(list(dataset_scores(cells, s).values()), axis=0)


def _one_less_variation(values: Array, squared_errors: Array | None) -> Array:
    """Return ``max(0, 1 - sd / mean)`` over the last axis, NaN where the mean is 0.

    With ``squared_errors`` (same last axis) the variance is debiased: less ``(k - 1) / k`` times the mean squared
    standard error, floored at 0, which is the share of the population variance over k noisy values that the noise
    alone explains.
    """
    count = values.shape[-1]
    mean = values.mean(axis=-1)
    variance = values.var(axis=-1)
    if squared_errors is not None:
        variance = np.maximum(0.0, variance - (count - 1) / count * squared_errors.mean(axis=-1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(mean > 0, np.maximum(0.0, 1.0 - np.sqrt(variance) / mean), np.nan)


def consistency_by_task(cells: Sequence[CellKey], s: Array, squared_errors: Array | None = None) -> Array:
    """Return CDC, the mean over tasks of ``max(0, 1 - sd / mean)`` of ``s`` over that task's datasets.

    Parameters
    ----------
    cells
        (task, dataset) of each column.
    s
        Shape (..., cells).
    squared_errors
        Shape (cells,): squared standard error of each ``s``; given, the variances are debiased.

    Returns
    -------
    Array
        Shape (...); NaN where no task gives one. A task with fewer than two datasets or a mean of 0 gives none.
    """
    parts = []
    for task in dict.fromkeys(task for task, _ in cells):
        columns = [index for index, (of, _) in enumerate(cells) if of == task]
        if len(columns) >= 2:
            errors = None if squared_errors is None else squared_errors[columns]
            parts.append(_one_less_variation(s[..., columns], errors))
    return _mean_of_present(parts, s.shape[:-1])


def consistency_all(cells: Sequence[CellKey], s: Array, squared_errors: Array | None = None) -> Array:
    """Return CDC in the paper's literal reading: one sd and mean over all ``s_D`` at once.

    Parameters as for :func:`consistency_by_task`; the squared error of a dataset is that of the mean of its tasks.
    NaN with fewer than two datasets.
    """
    by_dataset = dataset_scores(cells, s)
    if len(by_dataset) < 2:
        return np.full(s.shape[:-1], np.nan)
    errors = None
    if squared_errors is not None:
        errors = np.array(
            [
                np.mean(own) / len(own)
                for own in (
                    [squared_errors[index] for index, (_, dataset) in enumerate(cells) if dataset == name]
                    for name in by_dataset
                )
            ]
        )
    return _one_less_variation(np.stack(list(by_dataset.values()), axis=-1), errors)


def _mean_of_present(parts: Sequence[Array], shape: tuple[int, ...]) -> Array:
    """Return the mean over ``parts`` of what is not NaN; NaN where nothing is."""
    if not parts:
        return np.full(shape, np.nan)
    stacked = np.stack(parts, axis=-1)
    present = ~np.isnan(stacked)
    with np.errstate(invalid="ignore"):
        return np.where(present, stacked, 0.0).sum(axis=-1) / np.where(
            present.any(axis=-1), present.sum(axis=-1), np.nan
        )


def mean_perturbed(grid: Mapping[tuple[str, str, int], Array]) -> Array | None:
    """Return a cell's ``s`` under perturbation: the mean over severities, then perturbations, then modalities.

    Parameters
    ----------
    grid
        (modality, perturbation, severity) to ``s``; only where the perturbation applies to the cell.

    Returns
    -------
    Array or None
        None where nothing applies.
    """
    if not grid:
        return None
    modalities = []
    for modality in sorted({modality for modality, _, _ in grid}):
        names = sorted({name for of, name, _ in grid if of == modality})
        modalities.append(
            np.mean([np.mean([s for (_, of, _), s in grid.items() if of == name], axis=0) for name in names], axis=0)
        )
    return np.asarray(np.mean(modalities, axis=0))


def robustness(perturbed: Array, clean: Array) -> Array:
    """Return RR, P under perturbation over P clean; NaN where P is 0. Not capped."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(clean > 0, perturbed / clean, np.nan)


def lower_is_better(x: Array, reference: Array) -> Array:
    """Return an efficiency term of latency, memory or MACs: ``min(1, ref / x)``."""
    return np.minimum(1.0, reference / x)


def higher_is_better(x: Array, reference: Array) -> Array:
    """Return an efficiency term of throughput: ``min(1, x / ref)``."""
    return np.minimum(1.0, x / reference)


def argus(parts: Sequence[Array], weights: Sequence[float]) -> Array:
    """Return ``wP·P + wCDC·CDC + wRR·min(1, RR) + wE·E``; NaN where a part is NaN.

    Parameters
    ----------
    parts
        P, CDC, RR, E, arrays of one shape.
    weights
        Four weights that sum to 1.
    """
    p, cdc, rr, e = parts
    return weights[0] * p + weights[1] * cdc + weights[2] * np.minimum(1.0, rr) + weights[3] * e
