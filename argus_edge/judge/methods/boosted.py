"""Boosted conformal intervals: a centre and a spread boosted until the calibrated intervals are short."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from argus_edge.judge.boosting import Boosted, boost_lengths, choose_rounds
from argus_edge.judge.methods.base import ConformalMethod, Rows
from argus_edge.judge.methods.naive import crepes_thresholds
from argus_edge.judge.network import Perceptron
from argus_edge.judge.pinball import pinball_gradient
from argus_edge.judge.trees import Forest

Array = NDArray[Any]

__all__ = ["BoostedLocal", "BoostedQuantiles"]


class _Boosted(ConformalMethod):
    """Centre ± threshold · spread, both boosted for length; crepes calibrates the normalised residuals.

    Xie, Barber & Candès 2024, *Boosted conformal prediction intervals*, NeurIPS. The published run for judges trains
    and calibrates on the same rows and so under-covers; here the two are apart.
    """

    calibration_share: ClassVar[float] = 0.3
    package: ClassVar[str] = "crepes"
    cost: ClassVar[float] = 1.5
    rounds: ClassVar[int] = 300
    learning_rate: ClassVar[float] = 0.02

    @abstractmethod
    def train_base(self, rows: Rows, labels: Array, rng: np.random.Generator) -> None:
        """Fit the centre and the spread to start from."""

    @abstractmethod
    def base(self, rows: Rows) -> tuple[Array, Array]:
        """Return the centre and the spread to start from, shape (n,) each."""

    def train(self, rows: Rows, labels: Array, rng: np.random.Generator) -> None:
        """Fit the base, choose the number of rounds by cross-validation, and boost."""
        self.train_base(rows, labels, rng)
        center, spread = self.base(rows)
        arguments = (rows.features, labels.astype(float), center, spread, self.alpha, self.learning_rate)
        best = choose_rounds(*arguments, rounds=self.rounds, folds=5, rng=rng)
        self.boosted = boost_lengths(*arguments, rounds=best)

    def _center_spread(self, rows: Rows) -> tuple[Array, Array]:
        center, spread = self.base(rows)
        return self.boosted.apply(rows.features, center, spread)

    def scores(self, rows: Rows, labels: Array) -> Array:
        """Return absolute residuals in units of the spread."""
        center, spread = self._center_spread(rows)
        return np.abs(labels - center) / spread

    def calibrate(self, rows: Rows, labels: Array) -> None:
        """Let crepes find the thresholds."""
        self.thresholds = crepes_thresholds(self.scores(rows, labels), rows.groups, self.alpha, self.group_count)

    def ends(self, rows: Rows, thresholds: Array) -> tuple[Array, Array]:
        """Return the centre, minus and plus the threshold times the spread."""
        center, spread = self._center_spread(rows)
        return center - thresholds * spread, center + thresholds * spread

    def model_state(self) -> dict[str, Any]:
        """Return the base and the boosted trees."""
        return {"base": self.base_state(), "boosted": self.boosted.state()}

    def load_model(self, state: dict[str, Any]) -> None:
        """Take over :meth:`model_state`."""
        self.load_base(state["base"])
        self.boosted = Boosted.from_state(state["boosted"])

    @abstractmethod
    def base_state(self) -> dict[str, Any]:
        """Return the base model."""

    @abstractmethod
    def load_base(self, state: dict[str, Any]) -> None:
        """Take over the base model."""


class BoostedLocal(_Boosted):
    """Boosted LCP: starts from random forests of the mean and of the absolute residual.

    The local score is that of Papadopoulos, Gammerman & Vovk 2008 and Lei et al. 2018; boosting: Xie et al. 2024.
    """

    paper: ClassVar[str] = "Xie, Barber & Candès 2024 (local score)"

    def train_base(self, rows: Rows, labels: Array, rng: np.random.Generator) -> None:
        """Fit two forests, as published: at least 40 rows a leaf, one feature a split."""
        from sklearn.ensemble import RandomForestRegressor

        def forest(target: Array) -> Any:
            leaf = min(40, max(1, len(target) // 10))
            model = RandomForestRegressor(
                200, min_samples_leaf=leaf, max_features=1, random_state=int(rng.integers(2**31))
            )
            return model.fit(rows.features, target)

        mean = forest(labels)
        spread = forest(np.abs(labels - mean.predict(rows.features)))
        self.mean, self.spread = (Forest.from_sklearn(list(model), scale=1 / len(model)) for model in (mean, spread))

    def base(self, rows: Rows) -> tuple[Array, Array]:
        """Return the forests' values."""
        return self.mean(rows.features), np.maximum(self.spread(rows.features), 1e-3)

    def base_state(self) -> dict[str, Any]:
        """Return both forests."""
        return {"mean": self.mean.state(), "spread": self.spread.state()}

    def load_base(self, state: dict[str, Any]) -> None:
        """Take over both forests."""
        self.mean, self.spread = Forest.from_state(state["mean"]), Forest.from_state(state["spread"])


class BoostedQuantiles(_Boosted):
    """Boosted CQR: starts from a network's two outer quantiles (Romano et al. 2019); boosting: Xie et al. 2024."""

    paper: ClassVar[str] = "Xie, Barber & Candès 2024 (CQR score)"

    def train_base(self, rows: Rows, labels: Array, rng: np.random.Generator) -> None:
        """Fit the quantile network: two hidden layers of 64, dropout 0.1."""
        levels = np.array([self.alpha / 2, 1 - self.alpha / 2])
        self.network = Perceptron([rows.features.shape[1], 64, 64, 2], rng).fit(
            rows.features,
            labels.astype(np.float32),
            pinball_gradient(levels),
            rng,
            epochs=100,
            batch_size=64,
            learning_rate=5e-4,
            dropout=0.1,
        )

    def base(self, rows: Rows) -> tuple[Array, Array]:
        """Return the quantiles' middle and half distance."""
        quantiles = np.sort(self.network(rows.features).astype(float), axis=1)
        return quantiles.mean(axis=1), np.maximum((quantiles[:, 1] - quantiles[:, 0]) / 2, 1e-3)

    def base_state(self) -> dict[str, Any]:
        """Return the network."""
        return {"network": self.network.state()}

    def load_base(self, state: dict[str, Any]) -> None:
        """Take over the network."""
        self.network = Perceptron.from_state(state["network"])
        if self.network.sizes[-1] != 2:
            raise ValueError("the network does not give two quantiles")
