"""OrdinalAPS: contiguous sets grown from the judge's own distribution over the ratings."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from argus_edge.judge.labelsets import mass_before, set_ends
from argus_edge.judge.methods.base import ConformalMethod, Rows
from argus_edge.judge.network import softmax

Array = NDArray[Any]

__all__ = ["OrdinalAdaptiveSets"]


class OrdinalAdaptiveSets(ConformalMethod):
    """Ordinal adaptive prediction sets of the judge's softmax, without a model of its own.

    Lu, Angelopoulos & Pomerantz 2022, *Improving trustworthiness of AI disease severity rating in medical imaging
    with ordinal conformal prediction sets*, MICCAI. The set grows until its mass exceeds the threshold; the threshold
    is searched on a grid, as in the paper. The published figures use 50,000 steps: an over-confident judge's scores
    all lie in the last one, so the sets fill the scale. The grid rounds upwards, which keeps the guarantee.
    With several judges their distributions are averaged.
    """

    paper: ClassVar[str] = "Lu, Angelopoulos & Pomerantz 2022"
    calibration_share: ClassVar[float] = 1.0
    cost: ClassVar[float] = 0.01
    steps: ClassVar[int] = 50_000

    def train(self, rows: Rows, labels: Array, rng: np.random.Generator) -> None:
        """Nothing is fitted: the judge's own distribution is used."""

    def _before(self, rows: Rows) -> Array:
        judges = rows.features.reshape(len(rows), -1, self.scale.levels)
        return mass_before(softmax(judges.astype(float)).mean(axis=1))

    def scores(self, rows: Rows, labels: Array) -> Array:
        """Return the mass accumulated before each label, rounded up to the grid."""
        before = self._before(rows)[np.arange(len(rows)), labels.astype(int) - 1]
        return np.ceil(before * self.steps) / self.steps

    def ends(self, rows: Rows, thresholds: Array) -> tuple[Array, Array]:
        """Return the ends of the sets that hold more than the threshold, or all labels."""
        return set_ends(self._before(rows) <= thresholds[:, None])

    def model_state(self) -> dict[str, Any]:
        """Nothing beyond the threshold."""
        return {}

    def load_model(self, state: dict[str, Any]) -> None:
        """Nothing beyond the threshold."""
