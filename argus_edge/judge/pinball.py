"""The quantile (pinball) loss of a network that gives many quantiles at once, without crossings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from argus_edge.judge.network import LossGradient

Array = NDArray[Any]

__all__ = ["pinball_gradient"]


def pinball_gradient(levels: Array) -> LossGradient:
    """Return the gradient of the mean pinball loss of sorted outputs.

    Parameters
    ----------
    levels
        Ascending quantile levels, shape (q,). The outputs are sorted before they meet their levels, so quantiles
        never cross (Sesia & Romano 2021, section 3; Koenker & Bassett 1978 for the loss).
    """
    wanted = np.asarray(levels, dtype=np.float32)

    def gradient(outputs: Array, target: Array) -> Array:
        order = np.argsort(outputs, axis=1)
        ordered = np.take_along_axis(outputs, order, axis=1)
        slope = np.where(target[:, None] > ordered, -wanted, 1 - wanted).astype(np.float32)
        result = np.empty_like(outputs)
        np.put_along_axis(result, order, slope / np.float32(outputs.size), axis=1)
        return result

    return gradient
