"""Ensembles of regression trees as plain arrays, so that a calibration file holds no pickle."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

__all__ = ["Forest"]

_FIELDS = {"roots": np.int32, "left": np.int32, "right": np.int32, "feature": np.int32, "threshold": np.float64}


class Forest:
    """``offset + scale · Σ tree(x)`` over binary trees stored one after the other.

    Nodes of all trees share one numbering; ``left`` and ``right`` of a leaf are −1, and a child always comes after
    its parent, so that evaluation ends.
    """

    def __init__(self, arrays: dict[str, Array], offset: float, scale: float) -> None:
        for name, kind in _FIELDS.items():
            setattr(self, name, np.asarray(arrays[name], dtype=kind))
        self.value = np.asarray(arrays["value"], dtype=np.float64)
        self.offset, self.scale = float(offset), float(scale)
        self._check()

    roots: Array
    left: Array
    right: Array
    feature: Array
    threshold: Array

    def _check(self) -> None:
        nodes = np.arange(len(self.value))
        inner = self.left >= 0
        sound = (
            all(len(getattr(self, name)) == len(nodes) for name in _FIELDS if name != "roots")
            and bool(np.all((self.roots >= 0) & (self.roots < len(nodes))))
            and bool(np.all((self.left > nodes) & (self.right > nodes) | ~inner))
            and bool(np.all((self.left < len(nodes)) & (self.right < len(nodes))))
            and bool(np.all((self.feature >= 0) | ~inner))
        )
        if not sound:
            raise ValueError("the trees do not hold together")

    @classmethod
    def from_sklearn(cls, trees: list[Any], *, offset: float = 0.0, scale: float = 1.0) -> Forest:
        """Copy fitted ``sklearn.tree`` regressors."""
        parts: dict[str, list[Array]] = {name: [] for name in (*_FIELDS, "value")}
        start = 0
        for tree in trees:
            inner = tree.tree_
            parts["roots"].append(np.array([start]))
            for name, children in (("left", inner.children_left), ("right", inner.children_right)):
                parts[name].append(np.where(children >= 0, children + start, -1))
            parts["feature"].append(inner.feature)
            parts["threshold"].append(inner.threshold)
            parts["value"].append(inner.value[:, 0, 0])
            start += inner.node_count
        return cls({name: np.concatenate(arrays) for name, arrays in parts.items()}, offset, scale)

    def leaves(self, features: Array) -> Array:
        """Return the leaf that each row reaches in each tree, shape (n, trees)."""
        # scikit-learn compares in single precision.
        values = np.asarray(features, dtype=np.float32)
        node = np.broadcast_to(self.roots, (len(values), len(self.roots))).copy()
        rows = np.arange(len(values))[:, None]
        while True:
            inner = self.left[node] >= 0
            if not inner.any():
                return node
            goes_left = values[rows, np.maximum(self.feature[node], 0)] <= self.threshold[node]
            node = np.where(inner, np.where(goes_left, self.left[node], self.right[node]), node)

    def __call__(self, features: Array) -> Array:
        """Return the ensemble's value, shape (n,)."""
        result = np.empty(len(features))
        for start in range(0, len(features), 4096):
            rows = slice(start, start + 4096)
            result[rows] = self.value[self.leaves(features[rows])].sum(axis=1)
        return self.offset + self.scale * result

    def state(self) -> dict[str, Any]:
        """Return what :meth:`from_state` needs."""
        return {
            **{name: getattr(self, name) for name in (*_FIELDS, "value")},
            "offset": self.offset,
            "scale": self.scale,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Forest:
        """Rebuild a forest, checking that every walk ends at a leaf.

        Raises
        ------
        ValueError
            The arrays do not describe trees.
        """
        return cls(state, state["offset"], state["scale"])
