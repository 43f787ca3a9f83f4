"""The default: contiguous label sets calibrated directly on the integer scale."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from argus_edge.judge.labelsets import mass_before, set_ends
from argus_edge.judge.methods.base import ConformalMethod, Rows
from argus_edge.judge.network import softmax

Array = NDArray[Any]

__all__ = ["IntegerIntervals", "Multinomial"]


class Multinomial:
    """Multinomial logistic model of the human label on standardised log-probabilities and the group.

    scikit-learn fits it; what is kept are the coefficients.
    """

    def __init__(self, levels: int, group_count: int) -> None:
        self.levels, self.group_count = levels, group_count
        self.center = self.spread = self.weights = self.bias = np.zeros(0)

    def _design(self, rows: Rows) -> Array:
        scaled = (rows.features - self.center) / self.spread
        if self.group_count == 1:
            return scaled
        return np.hstack([scaled, rows.groups[:, None] == np.arange(self.group_count)])

    def fit(self, rows: Rows, labels: Array) -> Multinomial:
        """Fit with scikit-learn's default L2 penalty; a label that nobody gave gets no mass."""
        from sklearn.linear_model import LogisticRegression

        self.center, self.spread = rows.features.mean(axis=0), np.maximum(rows.features.std(axis=0), 1e-6)
        design = self._design(rows)
        present = np.unique(labels).astype(int)
        self.weights = np.zeros((design.shape[1], self.levels))
        self.bias = np.full(self.levels, -50.0)
        self.bias[present - 1] = 0.0
        if len(present) == 1:
            return self
        model = LogisticRegression(max_iter=2000).fit(design, labels.astype(int))
        if len(present) == 2:
            self.weights[:, present[1] - 1], self.bias[present[1] - 1] = model.coef_[0], model.intercept_[0]
        else:
            self.weights[:, present - 1], self.bias[present - 1] = model.coef_.T, model.intercept_
        return self

    def __call__(self, rows: Rows) -> Array:
        """Return the distribution over the labels, shape (n, K)."""
        return softmax(self._design(rows) @ self.weights + self.bias)

    def state(self) -> dict[str, Any]:
        """Return what :meth:`load` needs."""
        return {"center": self.center, "spread": self.spread, "weights": self.weights, "bias": self.bias}

    def load(self, state: dict[str, Any]) -> Multinomial:
        """Take over :meth:`state`."""
        self.center, self.spread = np.asarray(state["center"], float), np.asarray(state["spread"], float)
        self.weights, self.bias = np.asarray(state["weights"], float), np.asarray(state["bias"], float)
        rows = len(self.center) + (self.group_count if self.group_count > 1 else 0)
        if self.weights.shape != (rows, self.levels) or self.bias.shape != (self.levels,):
            raise ValueError("the logistic model does not match the scale and the groups")
        return self


class IntegerIntervals(ConformalMethod):
    """Label sets grown contiguously from the mode of a multinomial logistic model.

    The nonconformity of a label is the mass that the set held *before* taking it in: sets are deterministic, never
    empty, and need no boundary adjustment. The order of growth is OrdinalAPS's (Lu et al. 2022), the model and the
    score are this project's; one threshold for each group makes it Mondrian (Vovk et al. 2005).
    """

    paper: ClassVar[str] = "this project; growth after Lu, Angelopoulos & Pomerantz 2022"
    cost: ClassVar[float] = 0.1
    uses_group: ClassVar[bool] = True

    def train(self, rows: Rows, labels: Array, rng: np.random.Generator) -> None:
        """Fit the multinomial model."""
        self.model = Multinomial(self.scale.levels, self.group_count).fit(rows, labels)

    def scores(self, rows: Rows, labels: Array) -> Array:
        """Return the mass accumulated before each label."""
        return mass_before(self.model(rows))[np.arange(len(rows)), labels.astype(int) - 1]

    def ends(self, rows: Rows, thresholds: Array) -> tuple[Array, Array]:
        """Return the ends of the label sets."""
        return set_ends(mass_before(self.model(rows)) <= thresholds[:, None])

    def model_state(self) -> dict[str, Any]:
        """Return the coefficients."""
        return self.model.state()

    def load_model(self, state: dict[str, Any]) -> None:
        """Take over the coefficients."""
        self.model = Multinomial(self.scale.levels, self.group_count).load(state)
