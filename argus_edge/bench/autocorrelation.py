"""The integrated autocorrelation time of a series: how many neighbouring samples carry one sample's information."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Sokal's constant: the sum stops at the first lag W with W >= 5 tau(W).
WINDOW_FACTOR = 5.0
# Most series are nearly independent: so many lags are summed one by one before all of them are had by FFT.
DIRECT_LAGS = 64
# A longer series is first averaged over blocks: its transform would take seconds and hundreds of megabytes.
MOST_POINTS = 1 << 18
# The variance of a constant series is rounding noise, if not exactly 0.
_NOISE = 1e-20


def autocorrelation(series: NDArray[Any]) -> NDArray[np.float64]:
    """Return the autocorrelation of a series at lags 0, 1, … n - 1, by FFT.

    Parameters
    ----------
    series
        Shape (n,), n >= 1.

    Returns
    -------
    ndarray
        Shape (n,), 1 at lag 0. A constant series has no correlation to speak of: 0 at every other lag.
    """
    centred = np.asarray(series, dtype=np.float64)
    centred = centred - centred.mean()
    n = len(centred)
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(centred, size)
    covariance = np.fft.irfft(spectrum * np.conj(spectrum), size)[:n]
    result = np.zeros(n)
    result[0] = 1.0
    if covariance[0] > _NOISE * n:
        result[1:] = covariance[1:] / covariance[0]
    return result


def integrated_autocorrelation_time(series: NDArray[Any]) -> float:
    """Return tau = 1 + 2 * (sum of the autocorrelation up to Sokal's window), at least 1.

    The variance of the mean of n correlated samples is tau * variance / n, so n / tau of them count. The window keeps
    the sum from collecting the noise of long lags (A. Sokal, Monte Carlo Methods in Statistical Mechanics, 1997, s. 3).

    Parameters
    ----------
    series
        Shape (n,).

    Returns
    -------
    float
        Between 1 and n. Alternating series have a tau below 1; 1 is kept, which errs on the wide side.
    """
    n = len(series)
    if n < 2:
        return 1.0
    centred = np.asarray(series, dtype=np.float64)
    centred = centred - centred.mean()
    variance = float(centred @ centred)
    if variance <= _NOISE * n:
        return 1.0
    if n <= MOST_POINTS:
        return _by_lags(centred, variance) or _by_blocks(centred, variance, 1)
    # Blocks are the quicker way, and blind to what is shorter than they are.
    tau = _by_blocks(centred, variance, -(-n // MOST_POINTS))
    return tau if tau >= DIRECT_LAGS else _by_lags(centred, variance) or tau


def _by_lags(centred: NDArray[np.float64], variance: float) -> float | None:
    """Return tau by summing lag after lag; None where the window is beyond :data:`DIRECT_LAGS`."""
    n = len(centred)
    tau = 1.0
    for lag in range(1, min(DIRECT_LAGS, n)):
        tau += 2.0 * float(centred[:-lag] @ centred[lag:]) / variance
        if lag >= WINDOW_FACTOR * tau:
            return float(np.clip(tau, 1.0, n))
    return None


def _by_blocks(centred: NDArray[np.float64], variance: float, length: int) -> float:
    """Return tau from the means of ``length`` neighbours; with 1, of the series itself.

    The mean of all, and so its variance, is the same whether samples are averaged or means of m neighbours:
    tau * variance / n = tau_m * variance_m / (n / m). H. Flyvbjerg and H. G. Petersen, Error estimates on averages of
    correlated data, J. Chem. Phys. 91 (1989) 461.
    """
    n = len(centred)
    means = centred[: n // length * length].reshape(-1, length).mean(axis=1)
    share = length * float(means.var()) / (variance / n)
    taus = share * (2.0 * np.cumsum(autocorrelation(means)) - 1.0)
    beyond = np.arange(len(means)) * length >= WINDOW_FACTOR * taus
    window = int(np.argmax(beyond)) if beyond.any() else len(means) - 1
    return float(np.clip(taus[window], 1.0, n))
