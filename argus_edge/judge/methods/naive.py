"""The naive split: one width for all rows, crepes's conformal regressor around a gradient-boosted mean."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from argus_edge.errors import MissingDependencyError
from argus_edge.judge.conformal import min_rows
from argus_edge.judge.methods.base import ConformalMethod, Rows
from argus_edge.judge.trees import Forest

Array = NDArray[Any]

__all__ = ["NaiveSplit", "crepes_thresholds"]


def crepes_thresholds(scores: Array, groups: Array, alpha: float, count: int) -> Array:
    """Return crepes's Mondrian threshold of each group's absolute or scaled residuals, shape (count,).

    crepes: Boström 2022, *crepes: a Python package for generating conformal regressors and predictive systems*, COPA.
    Groups with too few rows for alpha are infinite.
    """
    try:
        from crepes import ConformalRegressor
    except ImportError as error:
        raise MissingDependencyError("crepes", "judge", needed_for="a method of normalised residuals") from error

    thresholds = np.full(count, np.inf)
    large = np.flatnonzero(np.bincount(groups, minlength=count) >= min_rows(alpha))
    kept = np.isin(groups, large)
    if len(large):
        # crepes takes int(alpha · (n + 1)): a last-bit nudge keeps 0.1 · 10 at 1.
        confidence = 1 - alpha * (1 + 1e-12)
        regressor = ConformalRegressor().fit(scores[kept], bins=groups[kept])
        thresholds[large] = regressor.predict_int(np.zeros(len(large)), bins=large, confidence=confidence)[:, 1]
    return thresholds


class NaiveSplit(ConformalMethod):
    """A mean, plus and minus one quantile of the held-out absolute residuals.

    Papadopoulos, Proedrou, Vovk & Gammerman 2002, *Inductive confidence machines for regression*, ECML; Lei et al.
    2018. The mean is scikit-learn's gradient boosting; crepes calibrates, group by group.
    """

    paper: ClassVar[str] = "Papadopoulos et al. 2002; Lei et al. 2018"
    calibration_share: ClassVar[float] = 0.3
    package: ClassVar[str] = "crepes"
    cost: ClassVar[float] = 0.3

    def train(self, rows: Rows, labels: Array, rng: np.random.Generator) -> None:
        """Fit the mean."""
        from sklearn.ensemble import GradientBoostingRegressor

        model = GradientBoostingRegressor(random_state=int(rng.integers(2**31))).fit(rows.features, labels)
        self.mean = Forest.from_sklearn(
            list(model.estimators_[:, 0]), offset=float(model.init_.constant_[0, 0]), scale=model.learning_rate
        )

    def scores(self, rows: Rows, labels: Array) -> Array:
        """Return absolute residuals."""
        return np.abs(labels - self.mean(rows.features))

    def calibrate(self, rows: Rows, labels: Array) -> None:
        """Let crepes find the thresholds."""
        self.thresholds = crepes_thresholds(self.scores(rows, labels), rows.groups, self.alpha, self.group_count)

    def ends(self, rows: Rows, thresholds: Array) -> tuple[Array, Array]:
        """Return the mean, minus and plus the threshold."""
        mean = self.mean(rows.features)
        return mean - thresholds, mean + thresholds

    def model_state(self) -> dict[str, Any]:
        """Return the trees."""
        return {"mean": self.mean.state()}

    def load_model(self, state: dict[str, Any]) -> None:
        """Take over the trees."""
        self.mean = Forest.from_state(state["mean"])
