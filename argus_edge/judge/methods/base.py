"""What every conformal method has: a fit on labelled rows, intervals for new ones, and a state without pickle."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from argus_edge.judge.conformal import group_thresholds, thresholds_of_rows
from argus_edge.judge.scale import Intervals, Scale

Array = NDArray[Any]

__all__ = ["ConformalMethod", "Rows"]


@dataclass(frozen=True)
class Rows:
    """Rows of a table as a method sees them.

    Attributes
    ----------
    features
        Log-probabilities of the labels 1..K, one judge after the other, shape (n, J·K), all finite.
    groups
        Mondrian group of each row, 0 … G − 1, or −1 where it was unknown at calibration, shape (n,).
    """

    features: Array
    groups: Array

    def __len__(self) -> int:
        return len(self.features)

    def take(self, index: Array) -> Rows:
        """Return some of the rows."""
        return Rows(self.features[index], self.groups[index])


# A model of a dozen features learns no more from more rows, and takes longer; what is left calibrates.
MOST_TRAINING_ROWS = 20_000


def at_most_training(rows: Array, seed: int) -> tuple[Array, Array]:
    """Split row numbers into at most :data:`MOST_TRAINING_ROWS` of them, drawn at random, and the others."""
    if len(rows) <= MOST_TRAINING_ROWS:
        return rows, rows[:0]
    order = np.random.default_rng([seed, 4]).permutation(len(rows))
    return rows[order[:MOST_TRAINING_ROWS]], rows[order[MOST_TRAINING_ROWS:]]


class ConformalMethod(ABC):
    """A split-conformal method: a model from one share of the labelled rows, thresholds from the other.

    Parameters
    ----------
    scale
        The rating scale.
    alpha
        Share of new rows that may be missed.
    group_count
        Number of Mondrian groups, 1 for none.
    """

    paper: ClassVar[str] = ""
    calibration_share: ClassVar[float] = 0.5
    # Whether the group (the task) may also be a feature of the model.
    uses_group: ClassVar[bool] = False
    # A package of the extra that this method needs beside scikit-learn and scipy.
    package: ClassVar[str] = ""
    # Seconds for a fit to a thousand rows on one core, to say beforehand how long a run takes.
    cost: ClassVar[float] = 1.0

    def __init__(self, scale: Scale, alpha: float, group_count: int = 1) -> None:
        self.scale, self.alpha, self.group_count = scale, alpha, group_count
        self.thresholds: Array = np.full(group_count, np.inf)
        self.group_rows: Array = np.zeros(group_count, dtype=int)

    def fit(self, rows: Rows, labels: Array, seed: int) -> ConformalMethod:
        """Train on one part of the rows and calibrate on the other.

        Parameters
        ----------
        rows, labels
            Labelled rows, and their integer labels on the scale, shape (n,).
        seed
            Decides the split and every random number of the model.
        """
        rng = np.random.default_rng(seed)
        train, held = self._split(rows.groups, rng)
        train, spare = at_most_training(train, seed)
        held = np.concatenate([held, spare])
        self.train(rows.take(train), labels[train], rng)
        self.group_rows = np.bincount(rows.groups[held], minlength=self.group_count)
        self.calibrate(rows.take(held), labels[held])
        return self

    def _split(self, groups: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Split within each group, so that a small group keeps its share of calibration rows."""
        train, held = [], []
        for group in range(self.group_count):
            members = rng.permutation(np.flatnonzero(groups == group))
            cut = round(len(members) * (1 - self.calibration_share))
            train.append(members[:cut])
            held.append(members[cut:])
        return np.concatenate(train), np.concatenate(held)

    @abstractmethod
    def train(self, rows: Rows, labels: Array, rng: np.random.Generator) -> None:
        """Fit the model on the training share."""

    @abstractmethod
    def scores(self, rows: Rows, labels: Array) -> Array:
        """Return the nonconformity of labels, shape (n,)."""

    @abstractmethod
    def ends(self, rows: Rows, thresholds: Array) -> tuple[Array, Array]:
        """Return lower and upper ends of the labels whose nonconformity is at most each row's finite threshold."""

    def calibrate(self, rows: Rows, labels: Array) -> None:
        """Set one threshold for each group from the calibration share."""
        self.thresholds = group_thresholds(self.scores(rows, labels), rows.groups, self.alpha, self.group_count)

    def predict(self, rows: Rows) -> Intervals:
        """Return intervals; a row of a group without a finite threshold has an unbounded one."""
        thresholds = thresholds_of_rows(self.thresholds, rows.groups)
        lower, upper = np.full(len(rows), -np.inf), np.full(len(rows), np.inf)
        known = np.flatnonzero(np.isfinite(thresholds.reshape(len(rows), -1)).all(axis=1))
        if len(known):
            lower[known], upper[known] = self.ends(rows.take(known), thresholds[known])
        return Intervals.build(lower, upper, self.scale)

    @abstractmethod
    def model_state(self) -> dict[str, Any]:
        """Return the model as numbers, strings, arrays, and dictionaries of them."""

    @abstractmethod
    def load_model(self, state: dict[str, Any]) -> None:
        """Take over :meth:`model_state`.

        Raises
        ------
        ValueError, KeyError
            The state does not hold together.
        """

    def state(self) -> dict[str, Any]:
        """Return everything that :meth:`predict` needs."""
        return {"thresholds": self.thresholds, "group_rows": self.group_rows, "model": self.model_state()}

    def load(self, state: dict[str, Any]) -> ConformalMethod:
        """Take over :meth:`state`."""
        self.thresholds = np.asarray(state["thresholds"], dtype=float)
        self.group_rows = np.asarray(state["group_rows"], dtype=int)
        if self.thresholds.shape[:1] != (self.group_count,) or self.group_rows.shape != (self.group_count,):
            raise ValueError("the thresholds do not match the groups")
        self.load_model(state["model"])
        return self
