"""Warm-up: goes on until steady, that is until the medians of the last three windows agree within 5 %."""

from array import array
from time import perf_counter

DEFAULTS = {"min_calls": 5, "max_s": 30.0, "fixed_calls": None}
WINDOW_S = 0.2
WINDOW_CALLS = 4096
WINDOWS = 3
TOLERANCE = 0.05


def median(values):
    """Return the lower median of a non-empty sequence."""
    return sorted(values)[(len(values) - 1) // 2]


def agree(medians):
    """Return whether the last three medians lie within 5 % of the smallest of them."""
    last = medians[-WINDOWS:]
    return len(last) == WINDOWS and max(last) <= min(last) * (1 + TOLERANCE)


def warm_up(call, spec, clock=perf_counter):
    """Call until steady, at most ``max_s`` seconds but ``min_calls`` times in any case; or ``fixed_calls`` times.

    Parameters
    ----------
    call
        The call to be timed afterwards.
    spec
        The part's ``warmup`` with all its fields.

    Returns
    -------
    figures : dict
        ``warmup_calls``, ``warmup_s``, ``warmup_steady`` (None with ``fixed_calls``).
    latencies : array of float64
        Seconds of the calls of the last window, to plan the timed one; empty where there was no call.
    """
    begin = clock()
    if spec["fixed_calls"] is not None:
        times = _window(call, clock, float("inf"), spec["fixed_calls"])
        steady, calls = None, spec["fixed_calls"]
    else:
        medians, times, calls = [], array("d"), 0
        while clock() - begin < spec["max_s"] or calls < spec["min_calls"]:
            times = _window(call, clock, WINDOW_S, WINDOW_CALLS)
            calls += len(times)
            medians.append(median(times))
            if calls >= spec["min_calls"] and agree(medians):
                break
        steady = agree(medians)
    return {"warmup_calls": calls, "warmup_s": clock() - begin, "warmup_steady": steady}, times


def _window(call, clock, seconds, calls):
    """Return the latencies of the calls that begin within so many seconds, at most ``calls``, at least one."""
    times = array("d")
    start = now = clock()
    end = start + seconds
    while now < end and len(times) < calls:
        call()
        before, now = now, clock()
        times.append(now - before)
    return times
