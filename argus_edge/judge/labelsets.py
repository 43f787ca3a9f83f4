"""Contiguous label sets grown from the mode of a distribution over an ordinal scale."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

__all__ = ["mass_before", "set_ends"]


def mass_before(probabilities: Array) -> Array:
    """Mass that the growing set held before it took in each label.

    The set starts at the mode and takes in, one at a time, the more probable of its two neighbours; a tie goes
    upwards. The order is that of OrdinalAPS (Lu, Angelopoulos & Pomerantz 2022, MICCAI), the mass that of the set
    without the label, so that the mode has 0 and the set is never empty.

    Parameters
    ----------
    probabilities
        Shape (n, K), rows sum to 1.

    Returns
    -------
    Array
        Shape (n, K), values in [0, 1), rising away from the mode on either side.
    """
    n, levels = probabilities.shape
    rows = np.arange(n)
    low = probabilities.argmax(axis=1)
    high = low.copy()
    mass = probabilities[rows, low].astype(float)
    before = np.zeros((n, levels))
    for _ in range(levels - 1):
        below = np.where(low > 0, probabilities[rows, np.maximum(low - 1, 0)], -1.0)
        above = np.where(high < levels - 1, probabilities[rows, np.minimum(high + 1, levels - 1)], -1.0)
        label = np.where(above >= below, high + 1, low - 1)
        before[rows, label] = mass
        mass = mass + probabilities[rows, label]
        low = np.minimum(low, label)
        high = np.maximum(high, label)
    return before


def set_ends(included: Array) -> tuple[Array, Array]:
    """Return the smallest and the largest label (from 1) of each row's set, shape (n,) each.

    Parameters
    ----------
    included
        Whether a label is in the set, shape (n, K); at least one label a row.
    """
    levels = included.shape[1]
    return included.argmax(axis=1) + 1.0, levels - included[:, ::-1].argmax(axis=1).astype(float)
