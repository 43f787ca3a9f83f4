"""Prediction-powered inference: a mean of human scores from few labels and many judge scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argus_edge.errors import UsageError

Array = NDArray[Any]

__all__ = ["FEWEST_LABELS", "TRUSTED_LABELS", "PoweredMean", "labels_for_width", "powered_mean"]

# statistics: below 30 labels the tuning is noise, from 100 its interval holds.
FEWEST_LABELS = 30
TRUSTED_LABELS = 100


@dataclass(frozen=True)
class PoweredMean:
    """A mean with its interval.

    Attributes
    ----------
    mean, lower, upper, standard_error
        In the units of the labels.
    degrees_of_freedom
        Of the t law that the interval and :meth:`draws` use.
    weight
        λ: how much the predictions count; 0 is the mean of the labels alone.
    labelled, unlabelled
        n and N.
    labelled_width
        Width of the interval from the labelled rows alone.
    note
        What a reader must know, or ``None``.
    """

    mean: float
    lower: float
    upper: float
    standard_error: float
    degrees_of_freedom: int
    weight: float
    labelled: int
    unlabelled: int
    labelled_width: float
    note: str | None

    @property
    def width(self) -> float:
        """Upper less lower."""
        return self.upper - self.lower

    def draws(self, size: int, rng: np.random.Generator) -> Array:
        """Draw plausible means, shape (size,): what a bootstrap of a larger figure takes in for this one."""
        return self.mean + self.standard_error * rng.standard_t(self.degrees_of_freedom, size)


def _tuned(labels: Array, predictions: Array, ratio: float) -> float:
    """λ = cov(Y, f)/[(1 + n/N) var f], clipped to [0, 1]."""
    variance = float(np.var(predictions, ddof=1))
    if variance <= 1e-12:
        return 0.0
    covariance = float(np.cov(labels, predictions, ddof=1)[0, 1])
    return float(np.clip(covariance / ((1 + ratio) * variance), 0, 1))


def _interval(mean: float, error: float, degrees: int, level: float) -> tuple[float, float]:
    from scipy.stats import t

    reach = float(t.ppf(0.5 + level / 2, degrees)) * error
    return mean - reach, mean + reach


def powered_mean(
    labels: Array,
    predictions: Array,
    unlabelled_predictions: Array,
    *,
    level: float = 0.95,
    seed: int = 0,
) -> PoweredMean:
    """Power-tuned prediction-powered mean, cross-fitted in two folds.

    θ = λ·mean_N f + mean_n(Y − λf), with variance λ²·var(f)/N + var(Y − λf)/n and
    λ = cov(Y, f)/[(1 + n/N)·var f] clipped to [0, 1]. Each half of the labelled rows uses the λ of the other half, so
    that the labels do not choose their own weight; t with n − 2 degrees of freedom.

    Angelopoulos, Bates, Fannjiang, Jordan & Zrnic 2023, *Prediction-powered inference*, Science 382; Angelopoulos,
    Duchi & Zrnic 2023, *PPI++*, arXiv 2311.01453, for the tuning.

    Parameters
    ----------
    labels, predictions
        Human scores and the judge's scores of the labelled rows, shape (n,) each; the rows must be a random sample.
    unlabelled_predictions
        The judge's scores of the other rows, shape (N,); may be empty.
    level
        Of the interval.
    seed
        Of the split into two folds.

    Returns
    -------
    PoweredMean
        Below 30 labels, or without unlabelled rows, from the labelled rows alone; below 100 with a note.

    Raises
    ------
    UsageError
        Fewer than two labels, shapes that do not match, or values that are not finite.
    """
    y, f, g = (np.asarray(values, dtype=float) for values in (labels, predictions, unlabelled_predictions))
    if y.ndim != 1 or y.shape != f.shape or g.ndim != 1:
        raise UsageError(f"Labels {y.shape} and predictions {f.shape}, {g.shape} do not match.")
    if not all(np.isfinite(values).all() for values in (y, f, g)):
        raise UsageError("A mean of judged scores needs finite labels and predictions.")
    n, unlabelled = len(y), len(g)
    if n < 2:
        raise UsageError(f"{n} labelled row(s): a mean with an interval needs at least two.")
    plain_error = float(np.sqrt(np.var(y, ddof=1) / n))
    plain = _interval(float(y.mean()), plain_error, n - 1, level)
    if n < FEWEST_LABELS or unlabelled < 2:
        few = f"{n} labelled rows: too few to weigh the judge in (from {FEWEST_LABELS}); labelled rows only"
        return PoweredMean(
            mean=float(y.mean()),
            lower=plain[0],
            upper=plain[1],
            standard_error=plain_error,
            degrees_of_freedom=n - 1,
            weight=0.0,
            labelled=n,
            unlabelled=unlabelled,
            labelled_width=plain[1] - plain[0],
            note=few if n < FEWEST_LABELS else None,
        )
    fold = np.random.default_rng(seed).permutation(n) % 2
    ratio = n / unlabelled
    other = np.array([_tuned(y[fold != k], f[fold != k], ratio) for k in (0, 1)])
    weight = float(other @ np.bincount(fold, minlength=2) / n)
    rest = y - other[fold] * f
    mean = weight * float(g.mean()) + float(rest.mean())
    # Within each fold the weight is fixed, so the spread of what is left is taken there.
    spread = sum(float(np.var(rest[fold == k], ddof=1)) * int((fold == k).sum()) for k in (0, 1)) / n
    error = float(np.sqrt(weight**2 * np.var(g, ddof=1) / unlabelled + spread / n))
    lower, upper = _interval(mean, error, n - 2, level)
    note = None
    if n < TRUSTED_LABELS:
        note = f"{n} labelled rows: the interval is to be trusted from {TRUSTED_LABELS}"
    return PoweredMean(
        mean=mean,
        lower=lower,
        upper=upper,
        standard_error=error,
        degrees_of_freedom=n - 2,
        weight=weight,
        labelled=n,
        unlabelled=unlabelled,
        labelled_width=plain[1] - plain[0],
        note=note,
    )


def labels_for_width(
    labels: Array, predictions: Array, unlabelled: int, width: float, level: float = 0.95
) -> int | None:
    """Fewest labelled rows for which the powered mean's interval is at most ``width`` wide.

    Parameters
    ----------
    labels, predictions
        A pilot's labelled rows, shape (n,).
    unlabelled
        Rows that the judge has scored and nobody labelled.
    width
        Wanted, in the units of the labels.

    Returns
    -------
    int or None
        ``None`` where even a million labels would not do.
    """
    from scipy.stats import norm

    y, f = np.asarray(labels, float), np.asarray(predictions, float)
    covariance = np.cov(y, f, ddof=1)
    wanted = (width / (2 * float(norm.ppf(0.5 + level / 2)))) ** 2

    def variance(n: int) -> float:
        weight = _tuned(y, f, n / unlabelled) if unlabelled else 0.0
        shared = weight**2 * covariance[1, 1] / unlabelled if unlabelled else 0.0
        rest = covariance[0, 0] - 2 * weight * covariance[0, 1] + weight**2 * covariance[1, 1]
        return float(shared + rest / n)

    low, high = 2, 1_000_000
    if variance(high) > wanted:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if variance(middle) <= wanted else (middle + 1, high)
    return low
