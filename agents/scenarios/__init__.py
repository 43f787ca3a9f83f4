"""Scenarios: how calls are issued and recorded. A new one is a new module and one line here.

A scenario's module has

- ``COLUMNS``: 2, or 3 where each call has a scheduled time;
- ``samples_per_call(spec)``: how many samples one recorded call stands for;
- ``calls_expected(spec, call_s)``: about how many calls a window will record, if one takes ``call_s`` seconds;
- ``run(call, spec, writer)``: the timed window; returns figures of ``PartResult`` (``stopped_by`` and its own);
- optionally ``prepare(call, spec, latencies, tell)``: finds out what the window needs, and completes ``spec``;
- optionally ``calls_per_query(spec)``: how many calls of the model are recorded as one.

``spec`` is the job's scenario with its defaults filled in.
"""

from importlib import import_module

MODULES = {
    "single-stream": "closed_loop",
    "offline": "closed_loop",
    "soak": "closed_loop",
    "multi-stream": "multi_stream",
    "server": "server",
    "paced": "paced",
}

DEFAULTS = {
    "name": "single-stream",
    "duration_s": 10.0,
    "min_calls": 64,
    "max_calls": None,
    "max_duration_s": None,
    "batch": 1,
    "streams": 8,
    "fps": 30.0,
    "latency_bound_s": None,
    "qps": None,
    "seed": 1,
}


def complete(spec):
    """Return a scenario's specification with every field."""
    return dict(DEFAULTS, **spec)


def load(name):
    """Return a scenario's module."""
    return import_module("." + MODULES[name], __name__)


def calls_per_record(scenario, spec):
    """Return how many calls of the model are recorded as one."""
    return scenario.calls_per_query(spec) if hasattr(scenario, "calls_per_query") else 1
