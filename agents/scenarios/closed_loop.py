"""Single-stream, offline and soak: the next call is issued when the one before has ended.

The three differ in what they are for (latency; throughput at a batch size; minutes, for the thermal curve), not in how they issue.
"""

from time import perf_counter

COLUMNS = 2


def samples_per_call(spec):
    """Return the batch size."""
    return spec["batch"]


def calls_expected(spec, call_s):
    """Return the calls that fit into the window."""
    return max(spec["min_calls"], int(spec["duration_s"] / call_s) + 1)


def run(call, spec, writer):
    """Issue calls back to back until the duration has passed and ``min_calls`` are done.

    Cost: a quarter of a microsecond an iteration. Hence the local names, the two loops and the plain ``for``.
    """
    starts, ends, clock = writer.starts, writer.ends, perf_counter
    limit = writer.capacity
    if spec["max_calls"]:
        limit = min(limit, spec["max_calls"])
    begin = clock()
    deadline = begin + min(spec["duration_s"], spec["max_duration_s"] or spec["duration_s"])
    last_deadline = begin + spec["max_duration_s"] if spec["max_duration_s"] else float("inf")
    done = 0
    for done in range(limit):
        starts[done] = clock()
        call()
        ends[done] = now = clock()
        if now >= deadline:
            break
    else:
        return {"stopped_by": "calls" if limit == spec["max_calls"] else "capacity"}
    wanted = min(limit, spec["min_calls"])
    for done in range(done + 1, wanted):
        if now >= last_deadline:
            break
        starts[done] = clock()
        call()
        ends[done] = now = clock()
    if done + 1 < wanted:
        return {"stopped_by": "max-duration"}
    return {"stopped_by": "duration" if now < last_deadline else "max-duration"}
