"""What every task gives: the units that it needs under a condition, and the figures made from their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from argus_edge.evaluate.conditions import Condition
from argus_edge.evaluate.metrics import DocumentFrequencies
from argus_edge.evaluate.store import Result
from argus_edge.evaluate.units import Job, Op, Unit
from argus_edge.schema.evaluation import Column, Interval, Measurement, Metric
from argus_edge.score.formulas import above_chance

__all__ = [
    "CannotDo",
    "CellFacts",
    "Measured",
    "Task",
    "column",
    "interval",
    "joined_array",
    "joined_list",
    "measurement",
]


class CannotDo(Exception):
    """A model or a dataset does not lend itself to a task; the message is the reason that the report gives."""


@dataclass(frozen=True)
class CellFacts:
    """What a report says about a cell beside its measurements."""

    method: str
    headline: str
    chance: float
    chance_is: str
    prompt_ids: tuple[str, ...]
    gallery_images: int | None = None
    gallery_texts: int | None = None
    idf_sha256: str | None = None


@dataclass(frozen=True)
class Measured:
    """A cell under one condition: figures for the report, and one record an item."""

    measurement: Measurement
    records: dict[str, Sequence[Any]]


@dataclass(frozen=True)
class Setting:
    """What a task is set up from.

    Attributes
    ----------
    frequencies
        CIDEr's document frequencies of the dataset's whole split, or of a file; None where none can be had.
    """

    job: Job
    dataset: str
    capabilities: tuple[str, ...]
    frequencies: DocumentFrequencies | None = None


class Task(Protocol):
    """One task on one dataset with one model."""

    facts: CellFacts

    def __init__(self, setting: Setting) -> None:
        """Decide how the model does the task; raises :class:`CannotDo` where it cannot."""

    def ops(self) -> tuple[Op, ...]:
        """Return the kinds of units that it needs."""

    def applies(self, condition: Condition) -> bool:
        """Tell whether a condition changes what the task is given."""

    def units(self, condition: Condition) -> list[Unit]:
        """Return what is to be computed, in order; a part that the condition does not touch is the clean one."""

    def measure(self, condition: Condition, results: Mapping[Unit, Result], weights: npt.NDArray[Any]) -> Measured:
        """Return the figures from the units' results.

        Parameters
        ----------
        weights
            Bootstrap weights of the dataset's images, shape (1 + replicates, images).
        """


def joined_array(units: Sequence[Unit], results: Mapping[Unit, Result]) -> npt.NDArray[Any]:
    """Return the arrays of units one below the other; tables of another width are padded with NaN."""
    parts = [np.asarray(results[unit]) for unit in units]
    if len({part.shape[1:] for part in parts}) > 1:
        width = max(part.shape[1] for part in parts)
        parts = [np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=np.nan) for part in parts]
    return np.concatenate(parts)


def joined_list(units: Sequence[Unit], results: Mapping[Unit, Result]) -> list[Any]:
    """Return the lists of units one after the other."""
    return [item for unit in units for item in results[unit]]


def column(values: npt.ArrayLike, dtype: Literal["uint8", "uint16", "int32", "float64"] | None = None) -> Column:
    """Return an array as a column; without a type, the smallest of the integer types that holds it."""
    array = np.asarray(values)
    if dtype is None:
        largest = int(array.max(initial=0))
        dtype = "uint8" if largest < 1 << 8 else "uint16" if largest < 1 << 16 else "int32"
    raw = np.ascontiguousarray(array.astype(np.dtype(dtype).newbyteorder("<"))).tobytes()
    return Column.from_bytes(raw, dtype, list(array.shape))


def interval(bounds: tuple[float, float]) -> Interval | None:
    """Return an interval, or None where the bootstrap gives none."""
    low, high = bounds
    return Interval(low=low, high=high) if np.isfinite([low, high]).all() else None


def measurement(
    condition: Condition,
    headline: float,
    chance: float,
    metrics: dict[str, Metric],
    statistics: dict[str, Column],
) -> Measurement:
    """Return a cell's measurement under a condition, with chance taken off the headline."""
    return Measurement(
        modality=condition.modality,
        perturbation=condition.perturbation,
        severity=condition.severity,
        headline=headline,
        s=float(above_chance(np.asarray(headline), chance)),
        metrics=metrics,
        statistics=statistics,
    )
