"""Mondrian groups: none, the values of a column, or difficulty learned on rows of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argus_edge.errors import InputError
from argus_edge.judge.table import JudgeTable
from argus_edge.judge.trees import Forest

Array = NDArray[Any]

__all__ = ["DIFFICULTY", "Grouping", "difficulty_rows", "group_name"]

DIFFICULTY = "difficulty"
_MAX_GROUPS = 10_000
_DIFFICULTY_SHARE = 0.2
_FEWEST_TEACHERS = 30
_TREES, _LEAF = 50, 15


def group_name(cell: str) -> str:
    """Return the name of the group that a cell stands for; an empty cell is a group too."""
    return cell.strip()[:512] or "(none)"


def difficulty_rows(count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Split row numbers into those that teach difficulty (a fifth) and the rest."""
    order = rng.permutation(count)
    cut = round(count * _DIFFICULTY_SHARE)
    return np.sort(order[:cut]), np.sort(order[cut:])


@dataclass(frozen=True)
class Grouping:
    """How a row finds its group.

    Attributes
    ----------
    by
        ``None``, a column, or ``"difficulty"``.
    names
        Of the groups, in the order of their numbers.
    forest
        For difficulty: how far a human score is expected to lie from what the log-probabilities foretell.
    cuts
        Its values between the groups, rising.
    """

    by: str | None
    names: list[str]
    forest: Forest | None = None
    cuts: Array | None = None

    @classmethod
    def of_column(cls, table: JudgeTable, column: str) -> Grouping:
        """Make a group of each value of a column."""
        names = sorted({group_name(cell) for cell in set(table.column(column))})
        if len(names) > _MAX_GROUPS:
            raise InputError(f"Column {column!r} has {len(names)} values: too many groups.", where=table.path)
        return cls(column, names)

    @classmethod
    def of_difficulty(cls, features: Array, labels: Array, seed: int) -> Grouping:
        """Learn three groups of rising difficulty, equally large, from rows that serve nothing else.

        A first random forest foretells the human score; how far it is off out of fold is what a second one learns. (The
        judge's own error would mix in its bias, which a conformal method takes out.)

        Parameters
        ----------
        features, labels
            Log-probabilities (m, d) and human scores (m,) of the rows set aside; one group where they are too few.
        """
        from sklearn.ensemble import RandomForestRegressor
        from sklearn.model_selection import cross_val_predict

        model = RandomForestRegressor(_TREES, min_samples_leaf=_LEAF, max_features=0.5, random_state=seed)
        names, shares = ["easy", "medium", "hard"], [1 / 3, 2 / 3]
        if len(labels) < _FEWEST_TEACHERS:
            names, shares = ["all"], []
            foretold = np.full(len(labels), np.mean(labels))
        else:
            foretold = cross_val_predict(model, features, labels, cv=5)
        trees = model.fit(features, np.abs(labels - foretold)).estimators_
        forest = Forest.from_sklearn(trees, scale=1 / len(trees))
        return cls(DIFFICULTY, names, forest, np.quantile(forest(features), shares))

    def assign(self, table: JudgeTable) -> Array:
        """Return each row's group number, −1 where it is unknown (or its features are missing), shape (n,)."""
        if self.by is None:
            return np.zeros(len(table), dtype=int)
        if self.forest is not None and self.cuts is not None:
            groups = np.full(len(table), -1)
            readable = table.readable
            if readable.any():
                groups[readable] = np.searchsorted(self.cuts, self.forest(table.features[readable]), side="right")
            return groups
        numbers = {name: number for number, name in enumerate(self.names)}
        cells = table.column(self.by)
        known = {cell: numbers.get(group_name(cell), -1) for cell in set(cells)}
        return np.array([known[cell] for cell in cells], dtype=int)

    def state(self) -> dict[str, Any]:
        """Return what :meth:`from_state` needs."""
        state: dict[str, Any] = {"names": self.names}
        if self.forest is not None:
            state |= {"forest": self.forest.state(), "cuts": self.cuts}
        return state

    @classmethod
    def from_state(cls, by: str | None, state: dict[str, Any]) -> Grouping:
        """Rebuild a grouping.

        Raises
        ------
        ValueError, KeyError
            The state does not hold together.
        """
        names = [str(name) for name in state["names"]]
        if by != DIFFICULTY:
            return cls(by, names)
        forest, cuts = Forest.from_state(state["forest"]), np.asarray(state["cuts"], dtype=float)
        if cuts.shape != (len(names) - 1,) or not np.isfinite(cuts).all() or (np.diff(cuts) < 0).any():
            raise ValueError("the cuts do not match the groups")
        return cls(by, names, forest, cuts)
