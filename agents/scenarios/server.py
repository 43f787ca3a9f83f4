"""Server: Poisson arrivals at one server; a query's latency counts from its arrival.

Without ``qps`` the highest rate is searched whose 99th percentile stays within ``latency_bound_s``: a simulation over
the service times of the warm-up gives a first guess, trials on the device narrow it down to 3 %, and the timed window
runs at the highest rate that held.

``server`` in the result holds ``qps`` (the window's rate), ``p99_s`` (nearest rank, of the window), ``late`` (queries
beyond the bound), ``bound_s``, ``held`` (1 if at most 1 % were late, else 0), and of the search ``trials``,
``predicted_qps``, ``broken_qps`` (the lowest rate that did not hold).
"""

import math
from time import perf_counter, sleep

from ..home import Fault
from . import queueing

COLUMNS = 3
MAX_TRIALS = 8
# A trial covers the whole window up to this length; of a longer one its first part.
MAX_TRIAL_S = 60.0
# Service times for the first guess: so many, or what so many seconds give.
SERVICE_CALLS = 200
SERVICE_S = 5.0
# An overloaded server never catches up; a window ends at this multiple of its duration at the latest.
OVERTIME = 3.0


def samples_per_call(spec):
    """Return the batch size."""
    return spec["batch"]


def calls_expected(spec, call_s):
    """Return the arrivals of a window; ``prepare`` has set the rate."""
    return arrivals_in(spec, spec["duration_s"])


def arrivals_in(spec, seconds):
    """Return how many arrivals are issued in so many seconds at the scenario's rate, at least ``min_calls``."""
    count = max(spec["min_calls"], math.ceil(spec["qps"] * seconds))
    return min(count, spec["max_calls"]) if spec["max_calls"] else count


def prepare(call, spec, latencies, tell):
    """Find the rate, unless it is given: sets ``spec["qps"]``, and ``spec["search"]`` to how it was found."""
    if spec["qps"]:
        return
    bound = spec["latency_bound_s"]
    if not bound:
        raise Fault("bad-job", "the server scenario needs a latency bound or a rate")
    longest = SERVICE_S + MAX_TRIALS * min(spec["duration_s"], MAX_TRIAL_S)
    tell(note="looking for the highest arrival rate first, for at most %d s" % longest)
    service = measure_service(call, latencies)
    guess = queueing.predicted_rate(service, bound, spec["seed"])
    found = {"predicted_qps": guess, "trials": 0.0}
    held = broken = None
    if guess <= 0:
        tell(note="single calls already take longer than the latency bound: no arrival rate holds it")
    while guess > 0 and found["trials"] < MAX_TRIALS:
        rate = queueing.next_rate(held, broken, guess)
        if rate is None:
            break
        found["trials"] += 1
        spec["qps"] = rate
        if trial(call, spec):
            held = rate
        else:
            broken = rate
    # Where none held, the window shows by how much at a tenth of what the server can do at all.
    spec["qps"] = held or 0.1 * len(service) / sum(service)
    if broken:
        found["broken_qps"] = broken
    spec["search"] = found


def measure_service(call, latencies):
    """Return service times: those of the warm-up, and more where they are few."""
    service = list(latencies[-SERVICE_CALLS:])
    end = perf_counter() + SERVICE_S
    while len(service) < SERVICE_CALLS and (not service or perf_counter() < end):
        start = perf_counter()
        call()
        service.append(perf_counter() - start)
    return service


def trial(call, spec):
    """Return whether a rate holds the bound; given up as soon as it cannot any more.

    The arrivals are those of the window (as LoadGen's are, by its fixed seed): how they cluster decides as much as
    their rate.
    """
    times = queueing.arrivals(spec["qps"], arrivals_in(spec, min(spec["duration_s"], MAX_TRIAL_S)), spec["seed"])
    allowed, late, bound = queueing.allowed_late(len(times)), 0, spec["latency_bound_s"]
    begin = perf_counter()
    for offset in times:
        wait = begin + offset - perf_counter()
        if wait > 0:
            sleep(wait)
        call()
        late += perf_counter() - begin - offset > bound
        if late > allowed:
            return False
    return True


def run(call, spec, writer):
    """Issue the arrivals of the window, each as soon as it has come and the server is free."""
    starts, ends, scheduled = writer.columns
    times = queueing.arrivals(spec["qps"], min(writer.capacity, arrivals_in(spec, spec["duration_s"])), spec["seed"])
    begin = perf_counter()
    last = begin + min(spec["max_duration_s"] or math.inf, OVERTIME * max(spec["duration_s"], times[-1]))
    stopped_by = "calls" if spec["max_calls"] and len(times) == spec["max_calls"] else "duration"
    done = 0
    for done, offset in enumerate(times):
        due = begin + offset
        wait = due - perf_counter()
        if wait > 0:
            sleep(wait)
        scheduled[done] = due
        starts[done] = perf_counter()
        call()
        ends[done] = now = perf_counter()
        if now > last:
            stopped_by = "max-duration"
            break
    return {"stopped_by": stopped_by, "server": account(spec, scheduled, ends, done + 1)}


def account(spec, scheduled, ends, count):
    """Return what the window says about the bound."""
    latencies = sorted(ends[index] - scheduled[index] for index in range(count))
    p99 = latencies[math.ceil(queueing.PERCENTILE * count) - 1]
    figures = dict(spec.get("search") or {}, qps=float(spec["qps"]), p99_s=p99)
    if spec["latency_bound_s"]:
        late = sum(latency > spec["latency_bound_s"] for latency in latencies)
        held = late <= (1 - queueing.PERCENTILE) * count
        figures.update(bound_s=spec["latency_bound_s"], late=float(late), held=float(held))
    return figures
