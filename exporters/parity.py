"""Comparing an exported component's outputs with the original's: figures, limits, verdict."""

from __future__ import annotations

import numpy as np

from argus_edge.schema.bundle import ParityFigure, ParityLimits, Precision

# fp32 and fp16 must agree in value; integer weights change values by design, so direction is what is kept. The
# figures behind these limits are in benchmarks/export/results.md.
LIMITS: dict[Precision, ParityLimits] = {
    "fp32": ParityLimits(max_abs_error=1e-3, cosine=0.99999),
    "fp16": ParityLimits(max_abs_error=5e-2, cosine=0.999),
    "int8": ParityLimits(cosine=0.99),
    "int8-static": ParityLimits(cosine=0.98),
    "int4": ParityLimits(cosine=0.95),
}


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    """Return the cosine similarity of two arrays of any shape, in float64.

    Two arrays of zeros count as equal (1.0), zeros against anything else as unrelated (0.0); a value that is not
    finite gives NaN.
    """
    x, y = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return float("nan")
    # Scaled first, so that neither tiny nor huge values leave the range of a double when squared.
    x_top, y_top = np.abs(x).max(initial=0.0), np.abs(y).max(initial=0.0)
    if x_top == 0.0 or y_top == 0.0:
        return 1.0 if x_top == y_top else 0.0
    x, y = x / x_top, y / y_top
    return float(np.clip(x @ y / np.sqrt((x @ x) * (y @ y)), -1.0, 1.0))


def compare_output(
    name: str, case: int, reference: np.ndarray, actual: np.ndarray, limits: ParityLimits
) -> ParityFigure:
    """Compare one output over the samples of a golden case.

    Parameters
    ----------
    reference, actual
        Shape (samples, *output shape); the original's and the exported component's.
    limits
        ``max_abs_error`` is relative to the largest magnitude of ``reference``.

    Returns
    -------
    ParityFigure
        Fails on another shape, on values that are not finite, and beyond either limit.
    """
    if reference.shape != actual.shape:
        nan = float("nan")
        return ParityFigure(
            output=name,
            case=case,
            max_abs_error=nan,
            max_abs_reference=nan,
            cosine=nan,
            mean_cosine=nan,
            passed=False,
        )
    expected, found = reference.astype(np.float64), actual.astype(np.float64)
    error = float(np.abs(expected - found).max(initial=0.0))
    scale = float(np.abs(expected).max(initial=0.0))
    cosines = [cosine(a, b) for a, b in zip(expected, found, strict=True)]
    lowest = float(np.min(cosines))
    within = limits.max_abs_error is None or error <= limits.max_abs_error * max(scale, np.finfo(np.float32).tiny)
    return ParityFigure(
        output=name,
        case=case,
        max_abs_error=error,
        max_abs_reference=scale,
        cosine=lowest,
        mean_cosine=float(np.mean(cosines)),
        passed=bool(within and lowest >= limits.cosine),
    )
