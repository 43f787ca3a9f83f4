"""Comparing model and device before a byte is sent: runtime, opset, operators, precision, memory, disk."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from argus_edge.bench.end_to_end import RUNTIMES
from argus_edge.bench.model_types import RUNTIMES_OF, BenchComponent, ResolvedModel
from argus_edge.devices import profiles
from argus_edge.errors import MisfitError, UsageError
from argus_edge.schema.agent import DeviceFacts, RuntimeFact
from argus_edge.schema.device import Profile, RuntimeLimit

# What the agent's runtime is called on the package index.
PACKAGES = {"onnxruntime": "onnxruntime", "litert": "ai-edge-litert", "torch": "torch"}
PROVIDERS_OF = {
    "onnxruntime": ("cpu", "cuda", "tensorrt", "xnnpack"),
    "litert": ("cpu", "xnnpack"),
    "torch": ("cpu", "cuda"),
    "tensorrt": ("tensorrt",),
    "server": ("cpu",),
    "null": ("cpu",),
}
# Room on the device beside the files themselves: journal, samples, result.
DISK_RESERVE = 64 << 20


@dataclass(frozen=True)
class Misfit:
    """One reason for which a model cannot run on a device, and what to do."""

    what: str
    next_step: str


def choose_runtime(model: ResolvedModel, wanted: str, facts: DeviceFacts | None = None) -> str:
    """Return the runtime for a model: the one that was asked for, or for ``auto`` the first that the device has.

    Raises
    ------
    UsageError
        The runtime does not take this format.
    """
    fitting = RUNTIMES_OF[model.format]
    if model.format == "none" and wanted in fitting:
        return wanted
    if wanted != "auto":
        if wanted not in fitting:
            raise UsageError(
                f"The runtime {wanted} does not run {model.format} files.",
                where=model.name,
                next_step=f"--runtime {fitting[0]}, or export the model for {wanted}",
            )
        return wanted
    if facts is not None:
        usable = {fact.name for fact in facts.runtimes if fact.version and not fact.error}
        return next((name for name in fitting if name in usable), fitting[0])
    return fitting[0]


def choose_provider(runtime: str, wanted: str | None) -> str:
    """Return the execution provider: the one asked for, or the runtime's plain one.

    Raises
    ------
    UsageError
        The runtime has no such provider.
    """
    known = PROVIDERS_OF[runtime]
    if wanted is None:
        return known[0]
    if wanted not in known:
        raise UsageError(
            f"The runtime {runtime} has no provider {wanted}.", next_step=f"choose from: {', '.join(known)}"
        )
    return wanted


def check(
    model: ResolvedModel,
    *,
    facts: DeviceFacts,
    profile: Profile,
    runtime: str,
    provider: str,
    device: str,
) -> list[str]:
    """Compare model and device; return what is worth a warning.

    Raises
    ------
    MisfitError
        With every reason at once.
    """
    misfits = list(find_misfits(model, facts=facts, profile=profile, runtime=runtime, provider=provider))
    if misfits:
        raise MisfitError(
            " ".join(misfit.what for misfit in misfits),
            where=f"{model.name} on {device}",
            next_step="; ".join(dict.fromkeys(misfit.next_step for misfit in misfits)),
        )
    return list(find_warnings(model, facts=facts, runtime=runtime))


def held_at_once(model: ResolvedModel, runtime: str) -> int:
    """Return the bytes of weights in memory at the same time: end to end all components', else the largest one's."""
    whole = model.manifest is not None and len(model.manifest.unit_of_work.steps) > 1 and runtime in RUNTIMES
    return model.bytes if whole else max((component.bytes for component in model.components), default=0)


def find_misfits(
    model: ResolvedModel, *, facts: DeviceFacts, profile: Profile, runtime: str, provider: str
) -> Iterable[Misfit]:
    """Yield the reasons for which the model cannot run there."""
    fact = next((fact for fact in facts.runtimes if fact.name == runtime), None)
    if runtime not in ("null", "server"):
        yield from _runtime_misfits(fact, runtime, provider, facts, profile)
    limit = limit_of(runtime, fact.version if fact else None, profile)
    for component in model.components:
        yield from _component_misfits(component, limit, runtime, fact, profile)
    largest = held_at_once(model, runtime)
    available = facts.memory_available_bytes
    if available is not None and largest > available:
        yield Misfit(
            f"The weights take {largest / 1e9:.2f} GB; {available / 1e9:.2f} GB of memory are free on the device.",
            "free memory there, or export a smaller precision (--precision int8 or int4)",
        )
    free = facts.disk_free_bytes
    if free is not None and model.bytes + DISK_RESERVE > free:
        yield Misfit(
            f"The model takes {(model.bytes + DISK_RESERVE) / 1e6:,.0f} MB on disk; {free / 1e6:,.0f} MB are free.",
            "free some space there (`argus-edge runs prune --device NAME --yes` clears what runs left), "
            "or name another home with device add",
        )


def find_warnings(model: ResolvedModel, *, facts: DeviceFacts, runtime: str) -> Iterable[str]:
    """Yield what does not stop a run but must be known."""
    available = facts.memory_available_bytes
    largest = held_at_once(model, runtime)
    if available is not None and largest * 2 > available >= largest:
        yield "The weights fill more than half of the free memory: a runtime that copies them when it loads will swap."
    if facts.emulated:
        yield "The device is emulated: times and memory mean nothing there, and the run will not be valid."
    if facts.accelerators_unused:
        yield f"Present and not used: {', '.join(facts.accelerators_unused)}."


def install_command(runtime: str, facts: DeviceFacts, profile: Profile) -> str:
    """Return the command that installs a runtime on the device: the profile's, else pip under its interpreter."""
    listed = next((limit.install for limit in profile.runtimes if limit.runtime == runtime and limit.install), None)
    package = PACKAGES.get(runtime)
    in_venv = facts.python_executable and not facts.externally_managed and "venv" in facts.python_executable
    if package and (in_venv or not listed):
        python = shlex.quote(facts.python_executable or "python3")
        return f"{python} -m pip install numpy {package}"
    if runtime == "tensorrt":
        return "sudo apt install tensorrt python3-libnvinfer (JetPack's own packages; an NVIDIA GPU is needed)"
    return listed or f"install {runtime} on the device"


def _runtime_misfits(
    fact: RuntimeFact | None, runtime: str, provider: str, facts: DeviceFacts, profile: Profile
) -> Iterable[Misfit]:
    if fact is None or fact.error or not fact.version:
        why = f" ({fact.error})" if fact and fact.error else ""
        command = install_command(runtime, facts, profile)
        yield Misfit(f"The runtime {runtime} cannot be used on the device{why}.", f"there: {command}")
        return
    if runtime == "onnxruntime" and provider != "cpu" and fact.providers:
        names = {name.lower().replace("executionprovider", "") for name in fact.providers}
        if provider not in names:
            yield Misfit(
                f"onnxruntime {fact.version} on the device offers {', '.join(sorted(names))}, not {provider}.",
                f"leave --provider out, or install a build of onnxruntime with {provider} there",
            )


def _component_misfits(
    component: BenchComponent,
    limit: RuntimeLimit | None,
    runtime: str,
    fact: RuntimeFact | None,
    profile: Profile,
) -> Iterable[Misfit]:
    version = fact.version if fact else "?"
    again = f"export it for this board: argus-edge export MODEL --device {profile.name}"
    if limit is None or component.format != "onnx":
        return
    if limit.max_opset is not None and component.opset is not None and component.opset > limit.max_opset:
        yield Misfit(
            f"{component.name} has opset {component.opset}; {runtime} {version} on the device reads up to "
            f"{limit.max_opset}.",
            again,
        )
    if limit.max_ir is not None and component.ir_version is not None and component.ir_version > limit.max_ir:
        yield Misfit(
            f"{component.name} has IR version {component.ir_version}; {runtime} {version} on the device reads up to "
            f"{limit.max_ir}.",
            again,
        )
    missing = sorted(set(component.ops) & set(limit.missing_ops))
    if missing:
        yield Misfit(f"{component.name} needs {', '.join(missing)}, which {runtime} {version} there lacks.", again)
    if component.precision in limit.missing_precisions:
        yield Misfit(
            f"{component.name} is {component.precision}, which {runtime} {version} there does not run.",
            again + " --precision fp32",
        )


def _minor(version: str | None) -> tuple[int, int] | None:
    found = re.match(r"(\d+)\.(\d+)", version or "")
    return (int(found[1]), int(found[2])) if found else None


def limit_of(runtime: str, version: str | None, profile: Profile) -> RuntimeLimit | None:
    """Return what a runtime of this version loads, from the board's profile or, by its version, from the others.

    A version between two known ones gets the newer one's limits: what is not known to be refused is tried.
    """
    own = next((limit for limit in profile.runtimes if limit.runtime == runtime), None)
    wanted = _minor(version)
    if wanted is None or (own is not None and _minor(own.version) == wanted):
        return own
    known = {
        _minor(limit.version): limit
        for other in profiles.load_all().values()
        for limit in other.runtimes
        if limit.runtime == runtime and limit.max_opset is not None
    }
    above = sorted(minor for minor in known if minor is not None and minor >= wanted)
    return known[above[0]] if above else None
