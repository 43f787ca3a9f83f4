"""Numbers that options take: ``nan`` and ``inf`` are no numbers here, since every comparison with one is false."""

from __future__ import annotations

import math
from typing import Any

import click

from argus_edge.times import parse_seconds


class Finite(click.FloatRange):
    """A finite number, within limits where they are given."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


class Seconds(click.ParamType):
    """A time: ``50ms``, ``0.2s``, ``800us``, ``10min``, or a number of seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return seconds."""
        if isinstance(value, float):
            return value
        try:
            return parse_seconds(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
