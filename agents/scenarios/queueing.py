"""One server and Poisson arrivals: schedules, a simulation, and the search for the highest rate. Pure functions."""

import math
from array import array
from random import Random

PERCENTILE = 0.99


def arrivals(rate, count, seed):
    """Return the times of ``count`` Poisson arrivals at ``rate`` a second: array of float64, seconds."""
    draw = Random(seed).expovariate
    times, now = array("d"), 0.0
    for _ in range(count):
        now += draw(rate)
        times.append(now)
    return times


def allowed_late(count):
    """Return how many of ``count`` latencies may pass the bound in a trial whose rate is to be called held.

    1 % of them less one standard error of that count, so that the timed window, drawn anew, most likely holds the
    bound as well.
    """
    share = 1 - PERCENTILE
    return max(0, int(count * share - math.sqrt(count * share * PERCENTILE)))


def simulated_late(service, times, bound):
    """Return how many of the arrivals would end later than ``bound`` after they came (Lindley's recursion).

    Parameters
    ----------
    service : sequence of float
        Measured service times, seconds, used in turn.
    times : sequence of float
        Arrivals, seconds.
    bound : float
        Seconds.
    """
    free = 0.0
    late = 0
    for index, came in enumerate(times):
        free = max(free, came) + service[index % len(service)]
        late += free - came > bound
    return late


def predicted_rate(service, bound, seed, count=4000, steps=12):
    """Return the highest arrival rate that the simulation holds, 0.0 where not even single calls do."""
    shuffled = list(service)
    Random(seed).shuffle(shuffled)
    if sum(value > bound for value in shuffled) > (1 - PERCENTILE) * len(shuffled):
        return 0.0
    unit = arrivals(1.0, count, seed)
    low, high = 0.0, len(shuffled) / sum(shuffled)
    for _ in range(steps):
        rate = (low + high) / 2
        late = simulated_late(shuffled, [time / rate for time in unit], bound)
        low, high = (rate, high) if late <= allowed_late(count) else (low, rate)
    return low


def next_rate(held, broken, guess):
    """Return the next rate to try, or None where the search is done.

    Parameters
    ----------
    held, broken : float or None
        The highest rate that held so far, the lowest that did not.
    guess : float
        Where to begin.
    """
    if held is None and broken is None:
        return guess
    if broken is None:
        return held * 1.1
    if held is None:
        return broken * 0.8
    return math.sqrt(held * broken) if broken / held > 1.03 else None
