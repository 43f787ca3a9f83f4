"""Quantities as people write them in a budget: `120 ms`, `900 MB`, `0.5 J`, `80 °C`, `95 %`."""

from __future__ import annotations

import math
import re

FACTORS: dict[str, dict[str, float]] = {
    "s": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "min": 60.0},
    "bytes": {
        "B": 1.0,
        "bytes": 1.0,
        "kB": 1e3,
        "KB": 1e3,
        "MB": 1e6,
        "GB": 1e9,
        "KiB": 2.0**10,
        "MiB": 2.0**20,
        "GiB": 2.0**30,
    },
    "J": {"J": 1.0, "mJ": 1e-3, "Wh": 3600.0},
    "°C": {"°C": 1.0, "C": 1.0},
    "1/s": {"1/s": 1.0, "/s": 1.0, "fps": 1.0, "Hz": 1.0},
    "MACs": {"MACs": 1.0, "MMACs": 1e6, "GMACs": 1e9},
    "share": {"": 1.0, "%": 0.01},
    "number": {"": 1.0},
}
QUANTITY = re.compile(r"\s*(?P<number>[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?)\s*(?P<unit>\S*)\s*")


def parse_quantity(value: object, unit: str) -> float:
    """Return a quantity in its base unit.

    Parameters
    ----------
    value
        A number, or text such as ``120 ms``. A plain number is accepted only where the base unit is a share, a plain
        number or a rate: whoever writes ``latency_p95: 120`` may mean seconds or milliseconds.
    unit
        Base unit, a key of ``FACTORS``.

    Raises
    ------
    ValueError
        Not a finite number, or a unit that does not fit, in words for the user.
    """
    factors = FACTORS[unit]
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"expected a quantity, found {type(value).__name__}")  # noqa: TRY004 - one kind for the caller
    if isinstance(value, (int, float)):
        if unit not in ("share", "number", "1/s", "MACs"):
            raise ValueError(f"{value} needs a unit: {', '.join(name for name in factors if name)}")
        number = float(value)
    else:
        match = QUANTITY.fullmatch(value)
        if match is None:
            raise ValueError(f"{value!r} is not a quantity such as '{_example(unit)}'")
        if match["unit"] not in factors and not (unit == "1/s" and match["unit"] == ""):
            raise ValueError(f"the unit {match['unit']!r} is none of: {', '.join(n or 'none' for n in factors)}")
        number = float(match["number"]) * factors.get(match["unit"], 1.0)
    if not math.isfinite(number):
        raise ValueError(f"{value!r} is not a finite number")
    return number


def _example(unit: str) -> str:
    return {"s": "120 ms", "bytes": "900 MB", "J": "0.5 J", "°C": "80 °C", "1/s": "30 /s", "share": "95 %"}.get(
        unit, "12"
    )


def format_quantity(value: float | None, unit: str) -> str:
    """Return a quantity for a person, with three significant digits and a fitting unit."""
    if value is None:
        return "–"
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else "infinite"
    if unit == "s":
        for factor, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
            if abs(value) >= factor or name == "µs":
                return f"{_three(value / factor)} {name}"
    if unit == "bytes":
        for factor, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")):
            if abs(value) >= factor or name == "B":
                return f"{_three(value / factor)} {name}"
    if unit == "MACs":
        return f"{_three(value / 1e9)} GMACs"
    if unit == "share":
        return f"{value:.3f}"
    if unit == "number":
        return _three(value)
    return f"{_three(value)} {unit}"


def decimals(value: float) -> int:
    """Return how many decimals show three significant digits of a value that is not 0."""
    rounded = float(f"{abs(value):.3g}")  # 9.999 is shown as 10.0
    return max(0, 2 - math.floor(math.log10(rounded)))


def _three(value: float) -> str:
    if value == 0:
        return "0"
    digits = decimals(value)
    return f"{value:.{digits}f}" if digits <= 6 and abs(value) < 1e9 else f"{value:.2e}"
