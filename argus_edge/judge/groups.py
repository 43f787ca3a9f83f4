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
_NAMES = {1: ["all"], 2: ["easy", "hard"], 3: ["easy", "medium", "hard"]}


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
    tree
        For difficulty: a tree of the judge's absolute error on the log-probabilities.
    leaves
        Its leaves, easiest first.
    """

    by: str | None
    names: list[str]
    tree: Forest | None = None
    leaves: Array | None = None

    @classmethod
    def of_column(cls, table: JudgeTable, column: str) -> Grouping:
        """Make a group of each value of a column."""
        names = sorted({group_name(cell) for cell in table.column(column)})
        if len(names) > _MAX_GROUPS:
            raise InputError(f"Column {column!r} has {len(names)} values: too many groups.", where=table.path)
        return cls(column, names)

    @classmethod
    def of_difficulty(cls, features: Array, errors: Array, seed: int) -> Grouping:
        """Learn up to three groups of rising error from rows that serve nothing else.

        Parameters
        ----------
        features, errors
            Log-probabilities (m, d), and the judge's absolute errors (m,), of the rows set aside.
        """
        from sklearn.tree import DecisionTreeRegressor

        leaf = max(5, len(errors) // 5)
        model = DecisionTreeRegressor(max_leaf_nodes=3, min_samples_leaf=leaf, random_state=seed).fit(features, errors)
        tree = Forest.from_sklearn([model])
        leaves = np.flatnonzero(tree.left < 0)
        leaves = leaves[np.argsort(tree.value[leaves], kind="stable")]
        return cls(DIFFICULTY, list(_NAMES[len(leaves)]), tree, leaves)

    def assign(self, table: JudgeTable) -> Array:
        """Return each row's group number, −1 where it is unknown (or its features are missing), shape (n,)."""
        if self.by is None:
            return np.zeros(len(table), dtype=int)
        if self.tree is not None and self.leaves is not None:
            place = np.full(len(self.tree.value), -1)
            place[self.leaves] = np.arange(len(self.leaves))
            groups = np.full(len(table), -1)
            readable = table.readable
            if readable.any():
                groups[readable] = place[self.tree.leaves(table.features[readable])[:, 0]]
            return groups
        numbers = {name: number for number, name in enumerate(self.names)}
        return np.array([numbers.get(group_name(cell), -1) for cell in table.column(self.by)], dtype=int)

    def state(self) -> dict[str, Any]:
        """Return what :meth:`from_state` needs."""
        state: dict[str, Any] = {"names": self.names}
        if self.tree is not None:
            state |= {"tree": self.tree.state(), "leaves": self.leaves}
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
        tree, leaves = Forest.from_state(state["tree"]), np.asarray(state["leaves"], dtype=int)
        if len(leaves) != len(names) or leaves.min(initial=0) < 0 or leaves.max(initial=0) >= len(tree.value):
            raise ValueError("the leaves do not match the groups")
        return cls(by, names, tree, leaves)
