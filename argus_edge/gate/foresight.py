"""Before any board is on the desk: what a bundle's counts and a profile's rooflines already rule out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from argus_edge.bench.roofline import roofline
from argus_edge.devices.profiles import bandwidth_bytes_s
from argus_edge.gate.budget import Budget, Limit
from argus_edge.gate.units import format_quantity
from argus_edge.schema.bundle import BundleManifest, Component, Step
from argus_edge.schema.device import Peak, Profile

OUTPUT_TOKENS = 32
"""Of the unit of work, unless a bench is told otherwise."""
LATENCIES = ("latency_p50", "latency_p90", "latency_p95", "latency_p99")
RUNTIME_OF = {"onnx": "onnxruntime", "tflite": "litert", "torch": "torch"}
CACHED_BYTES = 16e6
"""Weights smaller than this may stay in a cache between calls: no memory traffic is counted for them."""


@dataclass(frozen=True)
class Ruling:
    """What can be said of a limit without measuring.

    ``cannot``: no way of running it gets there. ``unlikely``: the roofline of the file's own precision says no, but a
    runtime that computes in a lower one, or with fewer products (Winograd), might.
    """

    verdict: Literal["cannot", "unlikely"]
    reason: str


def latency_floor(manifest: BundleManifest, profile: Profile) -> tuple[float | None, float | None]:
    """Return the unit of work's least latency, seconds: at its precision's peak, and at the board's highest.

    Encoders and prefill count arithmetic and weights read once; each output token after the first reads the decoder's
    weights again. None where the profile knows no peak.
    """
    return _floor(manifest, profile, manifest.unit_of_work.steps)


def _floor(manifest: BundleManifest, profile: Profile, steps: Sequence[Step]) -> tuple[float | None, float | None]:
    own = best = 0.0
    for step in steps:
        component = manifest.component(step.component)
        if step.phase == "decode":
            traffic = _traffic(component)
            bandwidth = bandwidth_bytes_s(profile)
            seconds = traffic / bandwidth * (OUTPUT_TOKENS - 1) if traffic and bandwidth else 0.0
            own, best = own + seconds, best + seconds
            continue
        at_own = _component_floor(component, profile, component.precision)
        at_best = _component_floor(component, profile, None)
        if at_own is None or at_best is None:
            return None, at_best
        own, best = own + at_own, best + at_best
    return own, best


def _traffic(component: Component) -> float | None:
    return float(component.weight_bytes) if component.weight_bytes > CACHED_BYTES else None


def _component_floor(component: Component, profile: Profile, precision: str | None) -> float | None:
    if not component.macs:
        return None
    macs = min(count.macs for count in component.macs)
    if precision is None:
        top = _best_peak(profile)
        bandwidth = bandwidth_bytes_s(profile)
        traffic = _traffic(component)
        if top is None:
            return None
        return max(macs / (top.gmacs * 1e9), traffic / bandwidth if traffic and bandwidth else 0.0)
    floors = [
        line.floor_s
        for provider in ("cpu", "cuda")
        if (
            line := roofline(
                profile=profile,
                macs=macs,
                traffic_bytes=_traffic(component),
                precision=precision,
                provider=provider,
                threads=None,
                clock_khz=None,
                mode=None,
                p50_s=None,
            )
        ).floor_s
        is not None
    ]
    return min((floor for floor in floors if floor is not None), default=None)


def _best_peak(profile: Profile) -> Peak | None:
    return max(profile.peaks, key=lambda peak: peak.gmacs, default=None)


def misfits(manifest: BundleManifest, profile: Profile) -> Iterator[str]:
    """Iterate over the reasons for which the board's runtime cannot load a component at all."""
    for component in manifest.components:
        runtime = RUNTIME_OF[component.format]
        limit = next((each for each in profile.runtimes if each.runtime == runtime), None)
        if limit is None:
            if profile.runtimes:
                yield f"{component.name}: {runtime} is not known to run on {profile.title}"
            continue
        if component.precision in limit.missing_precisions:
            yield f"{component.name}: {runtime} there has no {component.precision} kernels"
        if component.opset and limit.max_opset and component.opset > limit.max_opset:
            yield f"{component.name}: opset {component.opset}, {runtime} there reads up to {limit.max_opset}"
        if component.ir_version and limit.max_ir and component.ir_version > limit.max_ir:
            yield f"{component.name}: IR {component.ir_version}, {runtime} there reads up to {limit.max_ir}"
        lacking = sorted(set(component.ops) & set(limit.missing_ops))
        if lacking:
            yield f"{component.name}: {runtime} there lacks {', '.join(lacking)}"


def _macs(manifest: BundleManifest) -> float | None:
    """Return the fewest multiply-accumulates of the unit of work; None where a component's are not counted."""
    total = 0
    for step in manifest.unit_of_work.steps:
        counts = manifest.component(step.component).macs
        if not counts:
            return None
        total += min(count.macs for count in counts) * (OUTPUT_TOKENS - 1 if step.phase == "decode" else 1)
    return float(total)


def _weights(manifest: BundleManifest) -> int:
    return sum(component.weight_bytes for component in manifest.components)


def _size(manifest: BundleManifest) -> int:
    return sum(file.bytes for component in manifest.components for file in component.files)


def _ruling(limit: Limit, manifest: BundleManifest, profile: Profile) -> Ruling | None:
    name = limit.metric.name
    if limit.component is not None:
        return None
    if name == "file_size" and _size(manifest) > limit.value:
        return Ruling(
            "cannot", f"its files are {format_quantity(_size(manifest), 'bytes')}, the budget allows {limit.text}"
        )
    if name in ("peak_memory", "peak_rss") and _weights(manifest) > limit.value:
        # Every weight is read in a call; a runtime that maps them still has them resident while it does.
        return Ruling(
            "cannot",
            f"its weights alone are {format_quantity(_weights(manifest), 'bytes')}, the budget allows {limit.text}",
        )
    if name in ("tokens_per_s", "inter_token") and manifest.generation is not None:
        bandwidth = bandwidth_bytes_s(profile)
        traffic = _traffic(manifest.component(manifest.generation.decoder))
        slowest = limit.value if name == "inter_token" else 1 / limit.value if limit.value > 0 else math.inf
        if bandwidth and traffic and traffic / bandwidth > slowest:
            return Ruling(
                "cannot", f"reading the decoder's weights allows at most {bandwidth / traffic:.3g} tokens a second"
            )
    macs, top = _macs(manifest), _best_peak(profile)
    if name == "macs" and macs is not None and macs > limit.value:
        return Ruling("cannot", f"it takes {format_quantity(macs, 'MACs')}, the budget allows {limit.text}")
    if name == "throughput" and macs and top is not None and top.gmacs * 1e9 / macs < limit.value:
        # However large the batch, each sample's arithmetic is done; the weights are read once for all of them.
        most = format_quantity(top.gmacs * 1e9 / macs, "1/s")
        return Ruling("cannot", f"even the board's highest peak allows {most}, the budget wants {limit.text}")
    if name in LATENCIES or name == "ttft":
        steps = [step for step in manifest.unit_of_work.steps if name in LATENCIES or step.phase != "decode"]
        own, best = _floor(manifest, profile, steps)
        if best is not None and best > limit.value:
            return Ruling(
                "cannot",
                f"even the board's highest peak needs {format_quantity(best, 's')}{_of(name)}, "
                f"the budget allows {limit.text}",
            )
        if own is not None and own > limit.value:
            return Ruling(
                "unlikely",
                f"at its precision's peak it needs {format_quantity(own, 's')}{_of(name)}, "
                f"the budget allows {limit.text}",
            )
    return None


def _of(name: str) -> str:
    return " to the first token" if name == "ttft" else ""


def rulings(budget: Budget, manifest: BundleManifest, profile: Profile) -> list[Ruling]:
    """Return what can be ruled out of a bundle on a board without measuring, the certain first."""
    found = [Ruling("cannot", reason) for reason in misfits(manifest, profile)]
    weights = _weights(manifest)
    room = max(profile.memory_bytes, default=weights)
    if weights > room:
        needed, there = format_quantity(weights, "bytes"), format_quantity(room, "bytes")
        found.append(Ruling("cannot", f"its weights are {needed}, the board has {there}"))
    found += [ruling for limit in budget.limits if (ruling := _ruling(limit, manifest, profile)) is not None]
    return sorted(found, key=lambda ruling: ruling.verdict != "cannot")
