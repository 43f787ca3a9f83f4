"""Figures for people: times, sizes and intervals with the digits that they deserve."""

from __future__ import annotations

from argus_edge.gate.units import decimals
from argus_edge.schema.bench import Estimate

WITHHELD = "–"


def milliseconds(seconds: float | None) -> str:
    """Return a time in ms, or in us below 10 us, in s from 10 s on, with three significant digits."""
    if seconds is None:
        return WITHHELD
    if seconds >= 10:
        return f"{_three(seconds)} s"
    if seconds < 1e-5:
        return f"{_three(seconds * 1e6)} µs"
    return f"{_three(seconds * 1e3)} ms"


def interval(estimate: Estimate, scale: float = 1.0) -> str:
    """Return an estimate's interval, ``12.1–12.4``, in the unit that ``scale`` leads to; an open side is ``…``."""
    if estimate.value is None or (estimate.low is None and estimate.high is None):
        return ""
    low = "…" if estimate.low is None else _three(estimate.low * scale, estimate.value * scale)
    high = "…" if estimate.high is None else _three(estimate.high * scale, estimate.value * scale)
    return f"{low}–{high}"


def megabytes(size: float | None) -> str:
    """Return a size in MB (1e6 bytes), in GB from 10 GB on."""
    if size is None:
        return WITHHELD
    return f"{size / 1e9:.2f} GB" if size >= 1e10 else f"{size / 1e6:,.1f} MB"


def rate(value: float | None) -> str:
    """Return a rate a second with three significant digits."""
    return WITHHELD if value is None else f"{_three(value)} /s"


def _three(value: float, like: float | None = None) -> str:
    """Return a number with three significant digits, as many decimals as the number ``like`` gets."""
    size = abs(value if like is None else like)
    return f"{value:,.{decimals(size)}f}" if size >= 1e-3 else f"{value:.3g}"
