"""How far a run is and how long it will take, from the time that units of each kind took so far."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence

from argus_edge.evaluate.units import Unit

__all__ = ["Progress", "duration", "pilots_first"]


def duration(seconds: float) -> str:
    """Return a time span as a person says it.

    Examples
    --------
    >>> duration(75)
    '75 s'
    >>> duration(4000)
    '67 min'
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


class Progress:
    """Says how long a run will take as soon as one unit of each kind is done, and then every tenth.

    Parameters
    ----------
    units
        In the order of :func:`pilots_first`.
    say
        Writes one message.
    """

    def __init__(
        self, units: Sequence[Unit], say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._say, self._clock = say, clock
        self._left = Counter(_kind(unit) for unit in units)
        self._done: Counter[tuple[str, str]] = Counter()
        self._spent: dict[tuple[str, str], float] = dict.fromkeys(self._left, 0.0)
        self._started = self._last = clock()
        self._told = -1

    def step(self, unit: Unit) -> None:
        """Count one finished unit; the time since the one before is its own, on a cluster a share of it."""
        kind, now = _kind(unit), self._clock()
        self._spent[kind] += now - self._last
        self._last = now
        self._left[kind] -= 1
        self._done[kind] += 1
        done, total = self._done.total(), self._done.total() + self._left.total()
        tenth = 10 * done // total
        if len(self._done) == len(self._spent) and tenth > self._told:
            self._told = tenth
            left = sum(self._spent[kind] / self._done[kind] * count for kind, count in self._left.items())
            spent = duration(now - self._started)
            self._say(f"{done} of {total} pieces done in {spent}; about {duration(left)} left")


def pilots_first(units: Sequence[Unit]) -> list[Unit]:
    """Return the units with the first of each kind in front, so that the time of the whole is soon known."""
    first: dict[tuple[str, str], Unit] = {}
    for unit in units:
        first.setdefault(_kind(unit), unit)
    pilots = set(first.values())
    return [*first.values(), *(unit for unit in units if unit not in pilots)]


def _kind(unit: Unit) -> tuple[str, str]:
    return unit.op, unit.dataset
