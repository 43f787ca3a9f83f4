"""Conformalized quantile regression, symmetric and asymmetric: MAPIE's, on scikit-learn's gradient boosting."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from argus_edge.errors import MissingDependencyError
from argus_edge.judge.conformal import min_rows
from argus_edge.judge.methods.base import ConformalMethod, Rows
from argus_edge.judge.trees import Forest

Array = NDArray[Any]

__all__ = ["AsymmetricConformalizedQuantiles", "ConformalizedQuantiles"]


class ConformalizedQuantiles(ConformalMethod):
    """Two quantile regressions, moved apart by what held-out labels need.

    Romano, Patterson & Candès 2019, *Conformalized quantile regression*, NeurIPS. MAPIE's
    ``ConformalizedQuantileRegressor`` on gradient-boosted trees, 30 % of the rows for calibration: the published
    protocol. MAPIE is run once for each group; what is kept are the trees and the two corrections.
    """

    paper: ClassVar[str] = "Romano, Patterson & Candès 2019"
    calibration_share: ClassVar[float] = 0.3
    package: ClassVar[str] = "mapie"
    cost: ClassVar[float] = 0.8
    symmetric: ClassVar[bool] = True

    def train(self, rows: Rows, labels: Array, rng: np.random.Generator) -> None:
        """Fit the lower, the upper and the median regression."""
        from sklearn.ensemble import GradientBoostingRegressor

        seed = int(rng.integers(2**31))
        self._fitted = [
            GradientBoostingRegressor(loss="quantile", alpha=level, random_state=seed).fit(rows.features, labels)
            for level in (self.alpha / 2, 1 - self.alpha / 2, 0.5)
        ]
        self.lower, self.upper = (
            Forest.from_sklearn(
                list(model.estimators_[:, 0]), offset=float(model.init_.constant_[0, 0]), scale=model.learning_rate
            )
            for model in self._fitted[:2]
        )

    def calibrate(self, rows: Rows, labels: Array) -> None:
        """Let MAPIE find each group's corrections, shape (G, 2): how far down and how far up the ends move."""
        try:
            from mapie.regression import ConformalizedQuantileRegressor
        except ImportError as error:
            raise MissingDependencyError("mapie", "judge", needed_for="the method cqr") from error

        self.thresholds = np.full((self.group_count, 2), np.inf)
        needed = min_rows(self.alpha if self.symmetric else self.alpha / 2)
        for group in range(self.group_count):
            members = np.flatnonzero(rows.groups == group)
            if len(members) < needed:
                continue
            mapie = ConformalizedQuantileRegressor(self._fitted, confidence_level=1 - self.alpha, prefit=True)
            mapie.conformalize(rows.features[members], labels[members])
            one = rows.features[members[:1]]
            _, interval = mapie.predict_interval(one, symmetric_correction=self.symmetric)
            self.thresholds[group] = (
                self._fitted[0].predict(one)[0] - interval[0, 0, 0],
                interval[0, 1, 0] - self._fitted[1].predict(one)[0],
            )

    def scores(self, rows: Rows, labels: Array) -> Array:
        """Return how far each label lies outside the two quantiles (negative: inside)."""
        return np.maximum(self.lower(rows.features) - labels, labels - self.upper(rows.features))

    def ends(self, rows: Rows, thresholds: Array) -> tuple[Array, Array]:
        """Return the two quantiles, corrected."""
        return self.lower(rows.features) - thresholds[:, 0], self.upper(rows.features) + thresholds[:, 1]

    def model_state(self) -> dict[str, Any]:
        """Return the trees."""
        return {"lower": self.lower.state(), "upper": self.upper.state()}

    def load_model(self, state: dict[str, Any]) -> None:
        """Take over the trees."""
        self.lower, self.upper = Forest.from_state(state["lower"]), Forest.from_state(state["upper"])


class AsymmetricConformalizedQuantiles(ConformalizedQuantiles):
    """CQR with a correction of its own for either end, each at alpha/2.

    Romano, Patterson & Candès 2019, theorem 2.
    """

    symmetric: ClassVar[bool] = False
