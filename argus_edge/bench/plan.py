"""From model and options to a job: parts, repeats, limits, and an estimate of how long it will take."""

from __future__ import annotations

import getpass
import re
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from argus_edge.bench.context import ComponentContext, Cost
from argus_edge.bench.end_to_end import END_TO_END, Whole
from argus_edge.bench.model_types import GPU_PROVIDERS, BenchComponent, ResolvedModel
from argus_edge.bench.options import LEAST_CALLS_ASKED, PATIENCE, PATIENCE_S, Options
from argus_edge.bench.serving import SERVER, Served
from argus_edge.errors import UsageError
from argus_edge.schema.agent import DeviceFacts, Job, Part, Scenario, Warmup
from argus_edge.schema.pipeline import ServerTarget

# What a part costs beside its timed window, for the estimate: starting and importing, reading weights, warming up.
IMPORT_S = 3.0
LOAD_BYTES_S = 100e6
TYPICAL_WARMUP_S = 3.0
# What a small board's cores reach, for calls of models that take seconds: multiply-accumulates, and bytes of weights.
TYPICAL_MACS_S, TYPICAL_BYTES_S = 20e9, 5e9
# What the supervisor allows at most.
ALLOWED_LOAD_S = 600.0
ALLOWED_BUILD_S = 5400.0
# Text is written a token at a time: a unit of work on a small board may take minutes, and warming up a few of them.
ALLOWED_WRITING_S = 3600.0
# A unit of work that writes text is dozens of calls of its decoder.
WARMUP_UNITS = 3


@dataclass(frozen=True)
class Placed:
    """Where a component's files are on the device; None where there are none."""

    model: str | None
    inputs: str | None = None
    golden: str | None = None
    images: tuple[str, ...] = ()


def new_run_id(model: str, device: str, now: datetime | None = None) -> str:
    """Return an id that sorts by time and says what ran where: ``20261130-184146-resnet50-pi5-3f9a``."""
    moment = (now or datetime.now(timezone.utc)).strftime("%Y%m%d-%H%M%S")
    words = "-".join(re.sub(r"[^A-Za-z0-9]+", "-", word).strip("-").lower()[:24] for word in (model, device))
    return f"{moment}-{words}-{secrets.token_hex(2)}"


def holder() -> str:
    """Return who runs this, for the one who finds the device busy."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "somebody"
    return f"{user}@{socket.gethostname()}"[:128]


def make_job(
    run: str,
    model: ResolvedModel,
    options: Options,
    placed: Mapping[str, Placed],
    *,
    runtime: str,
    provider: str,
    sensors: Sequence[str],
    whole: Whole | None = None,
    served: Served | None = None,
    memory_limit_bytes: int | None = None,
) -> Job:
    """Return the job: every component and then the whole, repeat after repeat.

    So a slow change of the board falls on all alike.
    """
    parts = []
    for repeat in range(options.runs):
        if served is not None:
            parts.append(make_served(served, model, options, placed[SERVER], repeat))
            continue
        parts += [
            make_part(component, options, placed[component.name], repeat, runtime=runtime, provider=provider)
            for component in model.components
        ]
        if whole is not None:
            parts.append(make_whole(whole, model, options, placed, repeat, runtime=runtime, provider=provider))
    if options.profile_ops:
        parts += [
            make_part(component, options, placed[component.name], 0, runtime=runtime, provider=provider, ops=True)
            for component in model.components
        ]
    return Job(
        run=run,
        parts=parts,
        sensors=list(sensors),
        sample_period_s=options.sample_period_s,
        wall_limit_s=wall_limit(parts),
        memory_limit_bytes=memory_limit_bytes,
        background=list(options.background),
        holder=holder(),
        system_root=options.system_root,
    )


def make_part(
    component: BenchComponent,
    options: Options,
    placed: Placed,
    repeat: int,
    *,
    runtime: str,
    provider: str,
    ops: bool = False,
) -> Part:
    """Return one part of a job."""
    return Part.model_validate(
        {
            "name": component.name,
            "repeat": repeat,
            "runtime": runtime,
            "provider": provider,
            "model": placed.model,
            "format": component.format,
            "input_names": component.input_names,
            "outputs": component.outputs,
            "threads": options.threads,
            "inputs": placed.inputs,
            # Once is enough, and not beside the operators' profile.
            "golden": placed.golden if repeat == 0 and not ops else None,
            "scenario": options.scenario,
            "warmup": options.warmup,
            "profile_ops": ops,
            "options": dict(options.runtime_options),
        }
    )


def writing(scenario: Scenario, warmup: Warmup, name: str) -> tuple[Scenario, Warmup]:
    """Return how calls are issued that write text: each is dozens of calls of a decoder, so fewer are enough.

    Raises
    ------
    UsageError
        Queries of several samples.
    """
    if scenario.name == "multi-stream":
        raise UsageError("multi-stream does not apply to a model that writes text.", where=name)
    return (
        scenario.model_copy(update={"min_calls": min(scenario.min_calls, LEAST_CALLS_ASKED)}),
        warmup.model_copy(update={"min_calls": min(warmup.min_calls, WARMUP_UNITS)}),
    )


def make_whole(
    whole: Whole,
    model: ResolvedModel,
    options: Options,
    placed: Mapping[str, Placed],
    repeat: int,
    *,
    runtime: str,
    provider: str,
) -> Part:
    """Return the part that runs the whole unit of work."""
    components = {component.name: component for component in model.components}
    paths = {name: place.model for name, place in placed.items() if place.model is not None}
    scenario, warmup = options.scenario, options.warmup
    if whole.generation is not None:
        scenario, warmup = writing(scenario, warmup, model.name)
    return Part.model_validate(
        {
            "name": END_TO_END,
            "repeat": repeat,
            "runtime": runtime,
            "provider": provider,
            "format": model.format,
            "pipeline": whole.pipeline(components, paths),
            "preprocess": whole.preparation if repeat == 0 else None,
            "threads": options.threads,
            "inputs": placed[END_TO_END].inputs,
            "scenario": scenario,
            "warmup": warmup,
            "options": dict(options.runtime_options),
        }
    )


def make_served(served: Served, model: ResolvedModel, options: Options, placed: Placed, repeat: int) -> Part:
    """Return the part that drives a server."""
    scenario, warmup = writing(options.scenario, options.warmup, model.name)
    target = ServerTarget(
        url=served.url,
        model=served.model,
        prompt_tokens=served.prompt_tokens,
        output_tokens=served.output_tokens,
        images=list(placed.images),
    )
    return Part(name=SERVER, repeat=repeat, runtime="server", server=target, scenario=scenario, warmup=warmup)


def wall_limit(parts: Sequence[Part]) -> float:
    """Return after how many seconds a run has certainly gone wrong."""
    total = 60.0
    for part in parts:
        build = ALLOWED_BUILD_S if part.runtime == "tensorrt" or part.provider == "tensorrt" else 0.0
        longest = part.scenario.max_duration_s or PATIENCE * part.scenario.duration_s + PATIENCE_S
        # The server scenario searches its rate in several windows.
        windows = 12 if part.scenario.name == "server" and part.scenario.qps is None else 2
        writes = part.server is not None or (part.pipeline is not None and part.pipeline.generation is not None)
        text = ALLOWED_WRITING_S if writes else 0.0
        total += ALLOWED_LOAD_S + build + text + part.warmup.max_s + windows * longest
    return total


def memory_limit(facts: DeviceFacts) -> int | None:
    """Return the resident memory at which a worker is ended: what was free, and a tenth of the memory beyond.

    Past that a board has swapped out what else it runs, and soon answers nobody. Mapped files do not count.
    """
    free, total = facts.memory_available_bytes, facts.memory_total_bytes
    return None if free is None or total is None else free + total // 10


def estimate_s(model: ResolvedModel, job: Job, known: Mapping[str, ComponentContext] | None = None) -> float:
    """Return about how long the run will take on the device, seconds: starts, loads, warm-ups and timed windows.

    Parameters
    ----------
    known
        What a call of each part costs: a model of billions goes past its window until its least calls are done.
    """
    sizes = {component.name: component.bytes for component in model.components}
    sizes[END_TO_END] = model.bytes
    total = 0.0
    for part in job.parts:
        total += IMPORT_S + sizes.get(part.name, 0) / LOAD_BYTES_S
        if part.runtime == "null":
            total -= IMPORT_S - 0.5
        call = _typical_call_s(part, (known or {}).get(part.name, ComponentContext()).cost)
        warm_up = part.warmup.min_calls if part.warmup.fixed_calls is None else part.warmup.fixed_calls
        # The first call is apart; and warming up ends after the call in which its time is up.
        total += call + min(max(TYPICAL_WARMUP_S, warm_up * call), part.warmup.max_s + call)
        windows = 6 if part.scenario.name == "server" and part.scenario.qps is None else 1
        total += 5.0 if part.profile_ops else windows * _window_s(part.scenario, call)
    return total


def _typical_call_s(part: Part, cost: Cost) -> float:
    """Return about how long a call takes on a small board's cores; 0 where it is not known."""
    if part.provider in GPU_PROVIDERS:
        return 0.0
    return max((cost.macs or 0.0) / TYPICAL_MACS_S, (cost.traffic_bytes or 0.0) / TYPICAL_BYTES_S)


def _window_s(scenario: Scenario, call: float) -> float:
    """Return how long a timed window is open when a call takes so many seconds."""
    least = min(scenario.min_calls * call, scenario.max_duration_s or scenario.min_calls * call)
    return max(scenario.duration_s, least)


def describe(
    model: ResolvedModel, job: Job, *, device: str, known: Mapping[str, ComponentContext] | None = None
) -> str:
    """Say in one line what is about to run, where, and for how long."""
    timed = [part for part in job.parts if not part.profile_ops]
    repeats = 1 + max(part.repeat for part in timed)
    components = sum(part.pipeline is None for part in timed) // repeats
    scenario = timed[0].scenario
    parts = f"{components} component{'s' if components > 1 else ''}"
    parts += " and the whole" if components < len(timed) // repeats else ""
    runs = f" x {repeats} runs" if repeats > 1 else ""
    return (
        f"{model.name} on {device}: {parts}{runs}, {scenario.name} for {scenario.duration_s:g} s each; "
        f"about {duration_text(estimate_s(model, job, known))} in all"
    )


def duration_text(seconds: float) -> str:
    """Return a duration for people: ``0.4 s``, ``45 s``, ``3 min 20 s``, ``1 h 05 min``."""
    if 0.05 <= seconds < 0.95:
        return f"{seconds:.1f} s"
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
