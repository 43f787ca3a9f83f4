"""CHR: conformal histogram regression, nested shortest intervals of an estimated conditional histogram."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from argus_edge.judge.methods.base import ConformalMethod, Rows
from argus_edge.judge.network import Perceptron
from argus_edge.judge.pinball import pinball_gradient

Array = NDArray[Any]

__all__ = ["HistogramRegression", "histogram_of_quantiles", "nested_windows"]

QUANTILES = np.arange(1, 100) / 100
# Masses that the nested intervals hold; the conformal threshold is one of them.
LEVELS = np.concatenate(
    [np.arange(0.04, 0.8, 0.04), np.arange(0.8, 0.978, 0.004), [0.98, 0.985, 0.99, 0.9925, 0.995, 0.9975, 0.999]]
)


def histogram_of_quantiles(quantiles: Array, edges: Array) -> Array:
    """Spread estimated quantiles over bins.

    Parameters
    ----------
    quantiles
        At levels 0.01 … 0.99, ascending, shape (n, 99).
    edges
        Ascending bin edges, shape (b + 1,); all mass is put between the first and the last.

    Returns
    -------
    Array
        Mass of each bin, shape (n, b), rows sum to 1, none quite zero.
    """
    levels = np.concatenate([[0.0], QUANTILES, [1.0]])
    nudge = np.arange(len(levels)) * 1e-7  # equal quantiles stay a function
    n = len(quantiles)
    inner = np.clip(quantiles, edges[0] + 1e-3, edges[-1] - 1e-3)
    points = np.hstack([np.full((n, 1), edges[0]), inner, np.full((n, 1), edges[-1])]) + nudge
    mass = np.stack([np.diff(np.interp(edges, row, levels)) for row in points]) + 1e-6
    return mass / mass.sum(axis=1, keepdims=True)


def nested_windows(mass: Array, levels: Array, start: float) -> tuple[Array, Array]:
    """Shortest windows of bins that hold each level, each inside the next (Sesia & Romano 2021, section 2.2).

    Parameters
    ----------
    mass
        Bin masses, shape (n, b).
    levels
        Ascending masses wanted, shape (m,).
    start
        The window of the level nearest to it is the shortest of all; the others are the shortest that it contains, or
        that contain it.

    Returns
    -------
    tuple
        First and last bin of each window, shape (m, n) each.
    """
    n, bins = mass.shape
    first, last = np.triu_indices(bins)
    order = np.argsort(last - first, kind="stable")
    first, last = first[order].astype(np.int16), last[order].astype(np.int16)
    cumulative = np.hstack([np.zeros((n, 1)), mass.cumsum(axis=1)]).astype(np.float32)
    held = cumulative[:, last + 1] - cumulative[:, first]
    middle = int(np.abs(levels - start).argmin())
    low, high = np.empty((len(levels), n), np.int16), np.empty((len(levels), n), np.int16)

    def shortest(index: int, allowed: Array | None) -> None:
        enough = held >= min(levels[index], 1 - 1e-5)
        pick = (enough if allowed is None else enough & allowed).argmax(axis=1)
        low[index], high[index] = first[pick], last[pick]

    shortest(middle, None)
    for index in range(middle + 1, len(levels)):
        shortest(index, (first <= low[index - 1][:, None]) & (last >= high[index - 1][:, None]))
    for index in range(middle - 1, -1, -1):
        shortest(index, (first >= low[index + 1][:, None]) & (last <= high[index + 1][:, None]))
    return low, high


class HistogramRegression(ConformalMethod):
    """Shortest intervals of a histogram made from 99 estimated quantiles, widened or narrowed by calibration.

    Sesia & Romano 2021, *Conformal prediction using conditional histograms*, NeurIPS. The quantiles come from a
    network of two hidden layers of 128 with dropout; the nonconformity of a label is the smallest mass whose nested
    interval holds it. Not randomised: the same row always gets the same interval. The published figures for judges
    leave the calibration out and under-cover; here it is done.
    """

    paper: ClassVar[str] = "Sesia & Romano 2021"
    calibration_share: ClassVar[float] = 0.2
    cost: ClassVar[float] = 1.2
    epochs: ClassVar[int] = 80

    def _edges(self) -> Array:
        return np.linspace(0, self.scale.levels + 1, 61)

    def train(self, rows: Rows, labels: Array, rng: np.random.Generator) -> None:
        """Fit the quantile network."""
        self.network = Perceptron([rows.features.shape[1], 128, 128, len(QUANTILES)], rng).fit(
            rows.features,
            labels.astype(np.float32),
            pinball_gradient(QUANTILES),
            rng,
            epochs=self.epochs,
            batch_size=128,
            learning_rate=1e-3,
            dropout=0.1,
        )

    def _windows(self, rows: Rows) -> tuple[Array, Array]:
        """Ends of the nested intervals on the scale, shape (m, n) each."""
        edges = self._edges()
        quantiles = np.sort(self.network(rows.features).astype(float), axis=1)
        parts = [
            nested_windows(histogram_of_quantiles(quantiles[start : start + 1024], edges), LEVELS, 1 - self.alpha)
            for start in range(0, len(rows), 1024)
        ]
        low, high = (np.concatenate(ends, axis=1) for ends in zip(*parts, strict=True))
        return edges[low], edges[high + 1]

    def scores(self, rows: Rows, labels: Array) -> Array:
        """Return the smallest level whose interval holds the label, or 1."""
        low, high = self._windows(rows)
        inside = (low <= labels + 1e-9) & (high >= labels - 1e-9)
        return np.where(inside.any(axis=0), LEVELS[inside.argmax(axis=0)], 1.0)

    def ends(self, rows: Rows, thresholds: Array) -> tuple[Array, Array]:
        """Return the interval of each row's level; level 1 is the whole scale."""
        low, high = self._windows(rows)
        index = np.minimum(np.searchsorted(LEVELS, thresholds - 1e-9), len(LEVELS) - 1)
        row = np.arange(len(rows))
        whole = thresholds >= 1
        return np.where(whole, 1, low[index, row]), np.where(whole, self.scale.levels, high[index, row])

    def model_state(self) -> dict[str, Any]:
        """Return the network."""
        return {"network": self.network.state()}

    def load_model(self, state: dict[str, Any]) -> None:
        """Take over the network."""
        self.network = Perceptron.from_state(state["network"])
        if self.network.sizes[-1] != len(QUANTILES):
            raise ValueError("the network does not match the quantiles")
