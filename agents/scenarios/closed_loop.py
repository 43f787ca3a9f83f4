"""Single-stream, offline and soak: the next call is issued when the one before has ended.

They differ in what they are for (latency; throughput at a batch size; minutes, for the thermal curve), not in how
they issue.
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
    for index in range(limit):
        starts[index] = clock()
        call()
        ends[index] = now = clock()
        if now >= deadline:
            break
    else:
        return {"stopped_by": "calls" if limit == spec["max_calls"] else "capacity"}
    for more in range(index + 1, min(limit, spec["min_calls"])):
        if now >= last_deadline:
            break
        starts[more] = clock()
        call()
        ends[more] = now = clock()
    return {"stopped_by": "duration" if now < last_deadline else "max-duration"}
