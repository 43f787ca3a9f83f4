"""Measuring on until the gate can decide: fresh runs, each longer, each judged alone, the risk spread over them.

Looking at a verdict again and again until it is there is wrong more often than one look is: at 95 % each, a line that
lies on its limit is decided sooner or later, and wrongly. So the risk is spent beforehand (K. K. G. Lan and D. L.
DeMets, Discrete sequential boundaries for clinical trials, Biometrika 70, 1983; here 5 % halved from look to look):
look k holds the budget's lines against intervals of level 1 - 0.05 / 2^k, and all looks together miss a figure with at
most 5 %.

A look is a run of its own and is judged by its own samples; earlier runs only say how long the next one must be. They
are not pooled: two starts of a process differ by more than their samples say, so an interval over both would be too
narrow, and the samples at hand when one goes on are those that did not decide.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from argus_edge.bench.options import PATIENCE, PATIENCE_S
from argus_edge.errors import UsageError
from argus_edge.gate.budget import Budget
from argus_edge.gate.commands import more_helps
from argus_edge.gate.validate import BENCH_KINDS, validate_reports
from argus_edge.reports import Found
from argus_edge.schema.agent import Scenario
from argus_edge.schema.bench import BenchReport
from argus_edge.schema.verdict import Verdict

RISK = 0.05
GROWTH = 2.0
"""A run is at least so much longer than the one before it, so that what was spent in vain is at most as much again."""
HOPELESS = 4.0
"""A run that is needed so many times longer than what time is left is not begun."""

Measure = Callable[[float], Found[BenchReport]]
"""Runs for a timed window of so many seconds."""


@dataclass(frozen=True)
class Look:
    """One run and what it decided."""

    report: Found[BenchReport]
    duration_s: float
    level: float
    verdict: Verdict


@dataclass(frozen=True)
class Decision:
    """How it ended: the last look counts; ``why`` says why there is no further one."""

    looks: Sequence[Look]
    why: str

    @property
    def last(self) -> Look:
        """The run that counts."""
        return self.looks[-1]


def level_of(look: int) -> float:
    """Return the confidence of the k-th look's intervals, k from 1: 1 - 0.05 / 2^k.

    >>> [round(level_of(look), 5) for look in (1, 2, 3)]
    [0.975, 0.9875, 0.99375]
    """
    return 1 - RISK / 2**look


def bench_budget(budget: Budget) -> Budget:
    """Return the lines of a budget that a bench of one board can decide.

    Raises
    ------
    UsageError
        There is none.
    """
    limits = tuple(limit for limit in budget.limits if limit.metric.kind in BENCH_KINDS)
    if not limits:
        raise UsageError(
            "The budget has no line that a bench can decide.",
            where=budget.source.name,
            next_step="argus-edge eval, then argus-edge validate",
        )
    return dataclasses.replace(budget, limits=limits, quorum=None)


def lasting(scenario: Scenario, seconds: float) -> Scenario:
    """Return a scenario with another timed window, and the patience with slow calls that goes with it."""
    longest = max(PATIENCE * seconds, seconds + PATIENCE_S)
    return scenario.model_copy(update={"duration_s": seconds, "max_duration_s": longest})


def until_decided(
    budget: Budget,
    measure: Measure,
    *,
    first_s: float,
    most_s: float,
    say: Callable[[str], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
) -> Decision:
    """Run until the budget's bench lines pass, one fails, or the time is up.

    Parameters
    ----------
    budget
        As :func:`bench_budget` returns it.
    measure
        Runs the bench.
    first_s
        Timed window of the first run, seconds.
    most_s
        For everything together, loading and warm-up included, seconds. The first run is done in any case.
    say
        Told before each further run how long it takes and why.
    clock
        Seconds.
    """
    begun = clock()
    looks: list[Look] = []
    duration = first_s
    while True:
        started = clock()
        found = measure(duration)
        took = clock() - started
        level = level_of(len(looks) + 1)
        verdict = validate_reports(budget, [found], [], level=level)
        looks.append(Look(found, duration, level, verdict))
        if verdict.outcome != "unknown":
            return Decision(looks, "decided")
        open_lines = [line for line in verdict.lines if more_helps(line)]
        if not open_lines:
            return Decision(looks, f"a longer run does not help: {verdict.cause}")
        needed = _needed(budget, found, duration, level_of(len(looks) + 1))
        left = most_s - (clock() - begun)
        # Loading and warming up are the same again; each measured part has a window of its own.
        windows = max(1, len(found.artifact.measurements))
        longest = duration + (left - took) / windows
        if longest < duration or needed > HOPELESS * longest:
            return Decision(
                looks,
                f"the time is up: a run with a window of {needed:.0f} s takes about "
                f"{took + (needed - duration) * windows:.0f} s, and {max(0.0, left):.0f} s are left of {most_s:.0f} s "
                "(--max-duration)",
            )
        duration = round(min(needed, longest), 1)
        whole = took + (duration - looks[-1].duration_s) * windows
        say(
            f"look {len(looks)} at {level:.4g} confidence: {verdict.cause}\n"
            f"measuring again for {duration:.0f} s (about {whole:.0f} s in all)"
        )


def _needed(budget: Budget, found: Found[BenchReport], duration: float, level: float) -> float:
    """Return the window of the next run: what its own level asks for, and at least twice the last one.

    A run that was only invalid is measured again at its length.
    """
    lines = [line for line in validate_reports(budget, [found], [], level=level).lines if more_helps(line)]
    invalid = found.artifact.validity.valid is not True
    grown = duration if invalid and not any(line.needed_s for line in lines) else GROWTH * duration
    return max([grown, *(duration + line.needed_s for line in lines if line.needed_s)])
