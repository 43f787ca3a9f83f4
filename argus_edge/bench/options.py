"""How to bench, as the user asked for it: every option with its default, and what a scenario takes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from argus_edge.errors import UsageError
from argus_edge.schema.agent import Scenario, Warmup

# A slow model goes on until it has its least number of calls, but not beyond this many durations, or seconds more.
PATIENCE = 3.0
PATIENCE_S = 60.0
# A call in a quarter of an hour, and more than any harness can issue.
LEAST_RATE, MOST_RATE = 0.001, 1e6
MAX_DURATION_S = 86_400.0
# Enough for p90, unless the user named a duration: then for a median.
LEAST_CALLS = 64
LEAST_CALLS_ASKED = 11


@dataclass(frozen=True)
class Options:
    """How to bench, as the user asked for it.

    Attributes
    ----------
    runtime, provider
        ``"auto"`` and None let the model and the device decide.
    scenario, warmup
        As in the job.
    threads
        None: the runtime's own default.
    runs
        Repeats of the whole run, each in a process of its own.
    batch
        None: not asked for; 1, or what the model has.
    profile_ops
        A pass of its own that lists the slowest operators.
    energy
        A pass of its own that reads power with tools that disturb the timing.
    background
        Loads that are part of the set-up.
    labels
        For the report.
    sample_period_s
        Between sensor readings.
    prompt_tokens, output_tokens
        Of a unit of work that writes text; None: the bundle's typical prompt, and 32.
    url, images
        Of a server that is driven; a picture is a file, or ``WxH`` for made-up ones.
    runtime_options
        For the runtime, e.g. TensorRT's ``fp16``.
    system_root
        Prefix of what sensors read on the device; a recorded tree in tests.
    """

    runtime: str = "auto"
    provider: str | None = None
    scenario: Scenario = field(default_factory=Scenario)
    warmup: Warmup = field(default_factory=Warmup)
    threads: int | None = None
    runs: int = 1
    batch: int | None = None
    profile_ops: bool = False
    energy: bool = False
    background: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    sample_period_s: float = 1.0
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    url: str | None = None
    images: tuple[str, ...] = ()
    runtime_options: Mapping[str, Any] = field(default_factory=dict)
    system_root: str = "/"


def scenario_of(
    name: str,
    *,
    duration: float | None = None,
    batch: int | None = None,
    fps: float | None = None,
    latency_bound_s: float | None = None,
    qps: float | None = None,
    streams: int | None = None,
    min_calls: int | None = None,
) -> Scenario:
    """Return a scenario with its defaults, after checking that the options belong to it.

    Raises
    ------
    UsageError
        An option that the scenario has no use for, or one that it needs and lacks.
    """
    only = {
        "--fps": (fps, ("paced",)),
        "--latency-bound": (latency_bound_s, ("server",)),
        "--qps": (qps, ("server",)),
        "--streams": (streams, ("multi-stream",)),
    }
    for option, (value, owners) in only.items():
        if value is not None and name not in owners:
            raise UsageError(f"{option} belongs to --scenario {owners[0]}, not {name}.")
    for option, rate in (("--fps", fps), ("--qps", qps)):
        if rate is not None and not LEAST_RATE <= rate <= MOST_RATE:
            raise UsageError(f"{option} {rate:g} is no rate: from {LEAST_RATE:g} to {MOST_RATE:,.0f} a second.")
    if name == "server" and latency_bound_s is None and qps is None:
        raise UsageError(
            "The server scenario needs a bound to hold, or a rate to offer.",
            next_step="--latency-bound 50ms (finds the highest rate that holds it), or --qps 20",
        )
    least = LEAST_CALLS if duration is None else LEAST_CALLS_ASKED
    given: dict[str, Any] = {
        "batch": batch,
        "fps": fps,
        "latency_bound_s": latency_bound_s,
        "qps": qps,
        "streams": streams,
        "min_calls": least if min_calls is None else min_calls,
    }
    seconds = duration if duration is not None else (60.0 if name == "soak" else 10.0)
    if seconds > MAX_DURATION_S:
        raise UsageError(f"--duration {seconds:g} is longer than a day ({MAX_DURATION_S:,.0f} s).")
    if latency_bound_s is not None and latency_bound_s > seconds:
        raise UsageError(
            f"--latency-bound {latency_bound_s:g}s is longer than the window of {seconds:g} s: nothing could be late.",
            next_step="a lower bound, or a longer --duration",
        )
    fields = {key: value for key, value in given.items() if value is not None}
    longest = max(PATIENCE * seconds, seconds + PATIENCE_S)
    return Scenario.model_validate({"name": name, "duration_s": seconds, "max_duration_s": longest, **fields})
