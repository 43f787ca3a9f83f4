"""Warm-up: goes on until steady, that is until the medians of the last three windows agree within 5 %."""

from array import array
from time import perf_counter

DEFAULTS = {"min_calls": 5, "max_s": 30.0, "fixed_calls": None}
WINDOW_S = 0.2
# Of a window of very short calls, the first so many are kept for its median.
KEPT_CALLS = 4096
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
        Seconds of calls of the last window, to plan the timed one; empty where there was no call.
    """
    begin = clock()
    if spec["fixed_calls"] is not None:
        calls, times = _window(call, clock, float("inf"), spec["fixed_calls"])
        steady = None
    else:
        medians, times, calls = [], array("d"), 0
        while clock() - begin < spec["max_s"] or calls < spec["min_calls"]:
            done, times = _window(call, clock, WINDOW_S, float("inf"))
            calls += done
            medians.append(median(times))
            if calls >= spec["min_calls"] and agree(medians):
                break
        steady = agree(medians)
    return {"warmup_calls": calls, "warmup_s": clock() - begin, "warmup_steady": steady}, times


def _window(call, clock, seconds, calls):
    """Call for so many seconds, at most ``calls`` times; return how often, and the latencies of the first calls."""
    times = array("d")
    done = 0
    now = clock()
    end = now + seconds
    while now < end and done < calls:
        call()
        before, now = now, clock()
        done += 1
        if done <= KEPT_CALLS:
            times.append(now - before)
    return done, times
