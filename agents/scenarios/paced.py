"""Paced: a camera's frames, one every 1/fps seconds, with the idle gaps between them.

A frame that falls due while the call before it is going on is dropped, as a camera without a queue would. The wait
for a frame sleeps: a spinning one would keep the clocks up, and the gaps' effect on them is what this scenario is
for.
"""

import math
from time import perf_counter, sleep

COLUMNS = 3


def samples_per_call(spec):
    """Return the batch size."""
    return spec["batch"]


def calls_expected(spec, call_s):
    """Return the frames of the window."""
    return max(spec["min_calls"], int(spec["duration_s"] * spec["fps"]) + 1)


def run(call, spec, writer):
    """Issue a call a frame until the duration has passed and ``min_calls`` are done; count the frames dropped."""
    starts, ends, scheduled = writer.columns
    fps = spec["fps"]
    limit = min(writer.capacity, spec["max_calls"] or writer.capacity)
    begin = perf_counter()
    longest = spec["max_duration_s"] or math.inf
    frame = done = dropped = 0
    stopped_by = "calls" if limit == spec["max_calls"] else "capacity"
    while done < limit:
        due = frame / fps
        if due >= longest:
            stopped_by = "max-duration"
            break
        if due >= spec["duration_s"] and done >= spec["min_calls"]:
            stopped_by = "duration"
            break
        wait = begin + due - perf_counter()
        if wait > 0:
            sleep(wait)
        scheduled[done] = begin + due
        starts[done] = perf_counter()
        call()
        ends[done] = now = perf_counter()
        done += 1
        following = max(frame + 1, math.ceil((now - begin) * fps))
        dropped += following - frame - 1
        frame = following
    return {"stopped_by": stopped_by, "dropped": dropped}
