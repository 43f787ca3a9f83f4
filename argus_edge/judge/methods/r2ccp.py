"""R2CCP: conformal prediction of a number by classifying it into bins."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from argus_edge.judge.methods.base import ConformalMethod, Rows
from argus_edge.judge.network import Perceptron, softmax

Array = NDArray[Any]

__all__ = ["RegressionAsClassification", "density_hull"]


def density_hull(grid: Array, density: Array, cut: Array) -> tuple[Array, Array]:
    """Ends of where a piecewise-linear density reaches a cut-off.

    Parameters
    ----------
    grid, density
        Equally spaced points, shape (g,), and the density at them, shape (n, g).
    cut
        Shape (n,). A row whose density stays below has the ends of the grid, as published.
    """
    rows = np.arange(len(density))
    step = grid[1] - grid[0]
    above = density >= cut[:, None]
    first = above.argmax(axis=1)
    last = density.shape[1] - 1 - above[:, ::-1].argmax(axis=1)
    lower, upper = grid[first].copy(), grid[last].copy()
    inner = first > 0
    outside, inside = density[rows[inner], first[inner] - 1], density[rows[inner], first[inner]]
    lower[inner] -= step * (inside - cut[inner]) / (inside - outside)
    inner = last < density.shape[1] - 1
    outside, inside = density[rows[inner], last[inner] + 1], density[rows[inner], last[inner]]
    upper[inner] += step * (inside - cut[inner]) / (inside - outside)
    empty = ~above.any(axis=1)
    lower[empty], upper[empty] = grid[0], grid[-1]
    return lower, upper


class RegressionAsClassification(ConformalMethod):
    """A network gives a density over 50 points of the scale; the set is where it is high enough.

    Guha, Natarajan, Möllenhoff, Khan & Ndiaye 2024, *Conformal prediction via regression-as-classification*, ICLR.
    Loss of a row: Σ_k p_k |y − y_k|^½ less τ times the entropy, τ = 1/5. The density is linear between the points;
    its negative is the nonconformity. As published for judges, the interval is the hull of the set. Two hidden
    layers of 256, Adam, a fifth of the rows for calibration.
    """

    paper: ClassVar[str] = "Guha et al. 2024"
    calibration_share: ClassVar[float] = 0.2
    cost: ClassVar[float] = 0.9
    points: ClassVar[int] = 50
    entropy_weight: ClassVar[float] = 0.2

    def train(self, rows: Rows, labels: Array, rng: np.random.Generator) -> None:
        """Fit the network that gives the density."""
        self.grid = np.linspace(1, self.scale.levels, self.points)
        distance = np.sqrt(np.abs(self.scale.labels[:, None] - self.grid)).astype(np.float32)

        def gradient(logits: Array, target: Array) -> Array:
            density = softmax(logits)
            cost = distance[target] + np.float32(self.entropy_weight) * np.log(density + np.float32(1e-30))
            return density * (cost - (density * cost).sum(axis=1, keepdims=True)) / np.float32(len(logits))

        self.network = Perceptron([rows.features.shape[1], 256, 256, self.points], rng).fit(
            rows.features,
            labels.astype(int) - 1,
            gradient,
            rng,
            epochs=60,
            batch_size=64,
            learning_rate=1e-3,
            standardise=False,
        )

    def _density(self, rows: Rows) -> Array:
        return softmax(self.network(rows.features).astype(float))

    def scores(self, rows: Rows, labels: Array) -> Array:
        """Return minus the density at each label."""
        density = self._density(rows)
        position = (labels - self.grid[0]) / (self.grid[1] - self.grid[0])
        index = np.minimum(position.astype(int), self.points - 2)
        share = position - index
        row = np.arange(len(rows))
        return -(density[row, index] * (1 - share) + density[row, index + 1] * share)

    def ends(self, rows: Rows, thresholds: Array) -> tuple[Array, Array]:
        """Return the hull of the points where the density is high enough."""
        return density_hull(self.grid, self._density(rows), -thresholds)

    def model_state(self) -> dict[str, Any]:
        """Return the network and its grid."""
        return {"network": self.network.state()}

    def load_model(self, state: dict[str, Any]) -> None:
        """Take over the network."""
        self.grid = np.linspace(1, self.scale.levels, self.points)
        self.network = Perceptron.from_state(state["network"])
        if self.network.sizes[-1] != self.points:
            raise ValueError("the network does not match the grid")
