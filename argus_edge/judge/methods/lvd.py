"""LVD: locally valid intervals from residuals weighted by a learned kernel."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from argus_edge.judge.methods.base import ConformalMethod, Rows
from argus_edge.judge.network import Perceptron

Array = NDArray[Any]

__all__ = ["LocallyValidDiscriminative", "fit_kernel", "weighted_quantiles"]


def fit_kernel(points: Array, labels: Array, dimensions: int, rng: np.random.Generator, iterations: int = 3) -> Array:
    """Improve a random linear map for Gaussian kernel regression (leave-one-out error), stopping early.

    Weinberger & Tesauro 2007, *Metric learning for kernel regression*, AISTATS; the kernel is
    exp(−mean((A(x − x'))²)), as in LVD. Run to the optimum the kernel gets so narrow that half of the rows have no
    neighbour; the published run, Adam at 1e-3, hardly leaves its start either.

    Parameters
    ----------
    points, labels
        Shapes (n, d) and (n,); n of a few hundred.

    Returns
    -------
    Array
        The map A transposed, shape (d, dimensions).
    """
    from scipy.optimize import minimize

    shape = (points.shape[1], dimensions)
    start = rng.uniform(-1, 1, shape) / np.sqrt(shape[0])

    def loss(flat: Array) -> tuple[float, Array]:
        mapped = points @ flat.reshape(shape)
        squares = (mapped**2).sum(axis=1)
        distance = np.maximum(squares[:, None] + squares - 2 * mapped @ mapped.T, 0) / dimensions
        kernel = np.exp(-distance)
        np.fill_diagonal(kernel, 0)
        total = np.maximum(kernel.sum(axis=1), 1e-7)
        predicted = kernel @ labels / total
        error = predicted - labels
        # d loss / d distance_ij, then symmetrised: distance depends on both rows alike.
        slope = -kernel * (2 * error / (len(labels) * total))[:, None] * (labels - predicted[:, None])
        slope = slope + slope.T
        gradient = points.T @ (slope.sum(axis=1)[:, None] * mapped - slope @ mapped) * (2 / dimensions)
        return float(np.mean(error**2)), gradient.ravel()

    return minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": iterations}).x.reshape(shape)


def weighted_quantiles(values: Array, weights: Array, level: float) -> Array:
    """Smallest value at which the weights, sorted by value, reach a level of 1.

    Parameters
    ----------
    values
        Ascending, shape (n,).
    weights
        Shape (m, n), rows sum to at most 1; what is missing sits at infinity.
    """
    reached = weights.cumsum(axis=1) >= level - 1e-12
    index = reached.argmax(axis=1)
    return np.where(reached.any(axis=1), values[index], np.inf)


class LocallyValidDiscriminative(ConformalMethod):
    """A mean, plus and minus a quantile of the residuals of *similar* calibration rows.

    Lin, Trivedi & Sun 2021, *Locally valid and discriminative prediction intervals for deep learning models*,
    NeurIPS. A network gives the mean and the embedding; the kernel is learned on it; the new row itself has weight
    at infinity, so a row without similar ones has an unbounded interval. Unlike in the published run, the residuals
    are those of rows that the network was not trained on.
    """

    paper: ClassVar[str] = "Lin, Trivedi & Sun 2021"
    calibration_share: ClassVar[float] = 0.5
    cost: ClassVar[float] = 0.8
    dimensions: ClassVar[int] = 10
    kernel_rows: ClassVar[int] = 500
    # Every new row is held against all rows that are kept, so there is an end to them; of a group so many at least.
    most_kept: ClassVar[int] = 20_000
    most_of_group: ClassVar[int] = 1_000

    def train(self, rows: Rows, labels: Array, rng: np.random.Generator) -> None:
        """Fit the mean and the kernel."""

        def gradient(outputs: Array, target: Array) -> Array:
            return (outputs - target[:, None]) * np.float32(2 / len(outputs))

        self.network = Perceptron([rows.features.shape[1], 100, 100, 1], rng).fit(
            rows.features, labels.astype(np.float32), gradient, rng, epochs=30, batch_size=100, learning_rate=1e-3
        )
        hidden = self.network.hidden(rows.features).astype(float)
        self.center, self.spread = hidden.mean(axis=0), np.maximum(hidden.std(axis=0), 1e-3)
        some = rng.permutation(len(rows))[: self.kernel_rows]
        points = (hidden[some] - self.center) / self.spread
        self.map = fit_kernel(points, labels[some].astype(float), self.dimensions, rng)

    def _embed(self, rows: Rows) -> Array:
        return (self.network.hidden(rows.features).astype(float) - self.center) / self.spread @ self.map

    def scores(self, rows: Rows, labels: Array) -> Array:
        """Return absolute residuals."""
        return np.abs(labels - self.network(rows.features)[:, 0].astype(float))

    def calibrate(self, rows: Rows, labels: Array) -> None:
        """Keep the residuals, ascending, and where they lie."""
        if len(rows) > self.most_kept:
            # The rows of a group come in random order, so its first ones are a random choice.
            most = max(self.most_of_group, self.most_kept // self.group_count)
            groups = range(self.group_count)
            kept = np.concatenate([np.flatnonzero(rows.groups == group)[:most] for group in groups])
            rows, labels = rows.take(kept), labels[kept]
        residuals = self.scores(rows, labels)
        order = np.argsort(residuals, kind="stable")
        self.residuals, self.points = residuals[order], self._embed(rows)[order]
        self.point_groups = rows.groups[order]
        self.thresholds = np.where(self.group_rows > 0, 0.0, np.inf)

    def ends(self, rows: Rows, thresholds: Array) -> tuple[Array, Array]:
        """Return the mean, minus and plus the local quantile among the row's own group."""
        mean = self.network(rows.features)[:, 0].astype(float)
        mapped = self._embed(rows)
        reach = np.empty(len(rows))
        for start in range(0, len(rows), 512):
            part = slice(start, start + 512)
            distance = (mapped[part] ** 2).sum(axis=1)[:, None] + (self.points**2).sum(axis=1)
            distance = np.maximum(distance - 2 * mapped[part] @ self.points.T, 0) / self.dimensions
            kernel = np.exp(-distance) * (self.point_groups == rows.groups[part, None])
            weights = kernel / (kernel.sum(axis=1, keepdims=True) + 1)
            reach[part] = weighted_quantiles(self.residuals, weights, 1 - self.alpha)
        return mean - reach, mean + reach

    def model_state(self) -> dict[str, Any]:
        """Return the network, the kernel and the calibration residuals."""
        names = ("center", "spread", "map", "residuals", "points", "point_groups")
        return {"network": self.network.state(), **{name: getattr(self, name) for name in names}}

    def load_model(self, state: dict[str, Any]) -> None:
        """Take over :meth:`model_state`."""
        self.network = Perceptron.from_state(state["network"])
        for name in ("center", "spread", "map", "residuals", "points"):
            setattr(self, name, np.asarray(state[name], dtype=float))
        self.point_groups = np.asarray(state["point_groups"], dtype=int)
        count, width = len(self.residuals), self.network.sizes[-2]
        if self.map.shape != (width, self.dimensions) or self.points.shape != (count, self.dimensions):
            raise ValueError("the kernel does not match its points")
        if self.point_groups.shape != (count,) or self.center.shape != (width,) or self.spread.shape != (width,):
            raise ValueError("the points do not match their groups")
