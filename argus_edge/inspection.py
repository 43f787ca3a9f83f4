"""What a bundle or a model file holds, and what each device's profile says about it."""

from __future__ import annotations

from dataclasses import dataclass

from argus_edge.bench import preflight
from argus_edge.bench.model_types import BenchComponent, ResolvedModel
from argus_edge.devices import profiles
from argus_edge.schema.agent import DeviceFacts, RuntimeFact
from argus_edge.schema.bundle import Component, Role, SymbolicDim, TensorSpec, ValueRange
from argus_edge.schema.device import Profile


@dataclass(frozen=True)
class Fit:
    """Whether a kind of board can run a model; ``reasons`` is empty where it can."""

    profile: str
    title: str
    runtime: str
    reasons: tuple[str, ...]

    @property
    def runs(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.reasons


def fits(model: ResolvedModel, profile: Profile) -> Fit:
    """Hold a model against a board as its profile describes it: newest runtime, largest memory, all of it free.

    What a real board has installed and free is for the pre-flight of ``bench``; what does not fit here cannot fit
    there.
    """
    usable = [limit for limit in profile.runtimes if limit.runtime in preflight.RUNTIMES_OF[model.format]]
    if not usable:
        wanted = " or ".join(preflight.RUNTIMES_OF[model.format])
        return Fit(profile.name, profile.title, wanted, (f"It has no {wanted}, which {model.format} files need.",))
    reasons: list[tuple[str, ...]] = []
    for limit in usable:
        version = limit.version or "any"
        facts = DeviceFacts(
            wire=0,
            arch=profile.arch,
            python=profile.python or "",
            memory_available_bytes=max(profile.memory_bytes, default=None),
            runtimes=[RuntimeFact(name=limit.runtime, version=version)],
        )
        provider = preflight.choose_provider(limit.runtime, None)
        found = preflight.find_misfits(model, facts=facts, profile=profile, runtime=limit.runtime, provider=provider)
        reasons.append(tuple(misfit.what for misfit in found))
        if not reasons[-1]:
            return Fit(profile.name, profile.title, f"{limit.runtime} {version}", ())
    first = usable[0]
    return Fit(profile.name, profile.title, f"{first.runtime} {first.version or ''}".strip(), reasons[0])


def all_fits(model: ResolvedModel) -> list[Fit]:
    """Return what every profile says about a model, those that can run it first."""
    found = [fits(model, profile) for profile in profiles.load_all().values()]
    return sorted(found, key=lambda fit: (not fit.runs, fit.profile))


def document(model: ResolvedModel) -> dict[str, object]:
    """Return what ``inspect --json`` prints for a model file: the facts of its components and every fit."""
    return {
        "name": model.name,
        "sha256": model.sha256,
        "format": model.format,
        "components": [_component(part) for part in model.components],
        "manifest": model.manifest.model_dump(mode="json") if model.manifest else None,
        "notes": list(model.notes),
        "fits": [
            {"profile": fit.profile, "runtime": fit.runtime, "runs": fit.runs, "reasons": list(fit.reasons)}
            for fit in all_fits(model)
        ],
    }


def _component(part: BenchComponent) -> dict[str, object]:
    return {
        "name": part.name,
        "format": part.format,
        "precision": part.precision,
        "opset": part.opset,
        "ir_version": part.ir_version,
        "bytes": part.bytes,
        "files": [{"name": file.name, "sha256": file.sha256, "bytes": file.bytes} for file in part.files],
        "inputs": [
            {
                "name": spec.name,
                "dtype": spec.dtype,
                "shape": list(spec.shape),
                "values": spec.values.model_dump() if spec.values else None,
                "table_rows": spec.rows,
            }
            for spec in part.inputs or ()
        ],
        "ops": part.ops,
    }


def text(model: ResolvedModel) -> str:
    """Return a model in words, for the terminal."""
    lines = [f"{model.name}: {model.format}, {model.bytes / 1e6:,.1f} MB"]
    if model.manifest is not None:
        bundle = model.manifest
        origin = f"{bundle.source_id}{'@' + bundle.source_revision[:12] if bundle.source_revision else ''}"
        lines[0] = (
            f"{bundle.name}: {bundle.family} {bundle.architecture} from {origin}, {bundle.format} {bundle.precision}, "
            f"{model.bytes / 1e6:,.1f} MB"
        )
        lines.append(f"  unit of work: {bundle.unit_of_work.task}: {bundle.unit_of_work.description}")
    lines += [f"  ! {note}" for note in dict.fromkeys(model.notes)]
    for part in model.components:
        lines += ["", *_lines(part)]
    lines += ["", "boards:"]
    for fit in all_fits(model):
        lines.append(f"  {'runs' if fit.runs else 'no  '}  {fit.profile:<26} {fit.runtime}")
        lines += [f"          {reason}" for reason in fit.reasons]
    return "\n".join(lines)


def _lines(part: BenchComponent) -> list[str]:
    known = [f"{part.bytes / 1e6:,.1f} MB", part.precision or ""]
    known += [f"opset {part.opset}"] if part.opset else []
    known += [f"IR {part.ir_version}"] if part.ir_version else []
    known += [f"{sum(part.ops.values())} ops of {len(part.ops)} kinds"] if part.ops else []
    lines = [f"{part.name}: {', '.join(item for item in known if item)}"]
    if part.bundled is not None:
        lines += _bundled_lines(part.bundled)
    else:
        for spec in part.inputs or ():
            shown = TensorSpec(name=spec.name, dtype=spec.dtype, shape=list(spec.shape), values=spec.values)
            rows = f", indexes a table of {spec.rows}" if spec.rows else ""
            lines.append(f"  in   {_tensor(shown)}{rows}")
        if part.inputs is None:
            lines.append("  in   not told by this format: bench needs --shape or --input")
    if part.ops:
        common = sorted(part.ops.items(), key=lambda item: -item[1])
        lines.append("  ops  " + ", ".join(f"{op} {n}" for op, n in common[:12]) + (" …" if len(common) > 12 else ""))
    return lines


def _bundled_lines(component: Component) -> list[str]:
    role: Role = component.role
    lines = [f"  {role}; {component.params / 1e6:,.1f} M parameters, {component.weight_bytes / 1e6:,.1f} MB of weights"]
    lines += _tensors("in ", component.inputs)
    lines += _tensors("out", component.outputs)
    lines += [f"  dim  {_dim(dim)}" for dim in component.dims]
    for count in component.macs:
        others = ", ".join(
            f"{name} {value / 1e9:.3f}" if value is not None else f"{name} -"
            for name, value in count.by_counter.items()
        )
        at = ", ".join(f"{name}={length}" for name, length in count.dims.items()) or "its one shape"
        lines.append(f"  MACs {count.macs / 1e9:.3f} G at {at} ({others}; they differ by {count.disagreement:.1%})")
        if count.disagreement > 0.02:
            lines += [f"         {reason}" for reason in count.explanation]
    if component.parity is not None:
        worst = min(component.parity.figures, key=lambda figure: (figure.cosine == figure.cosine, figure.cosine))
        verdict = "passed" if component.parity.passed else "FAILED"
        lines.append(
            f"  parity {verdict} in {component.parity.runtime}: lowest cosine {worst.cosine:.6f} ({worst.output}), "
            f"limit {component.parity.limits.cosine}"
        )
    lines += [f"  note {note}" for note in component.notes]
    return lines


def _tensors(label: str, specs: list[TensorSpec]) -> list[str]:
    """Return a line for each tensor; a decoder's keys and values and the like get one line together."""
    lines = []
    grouped: dict[str, int] = {}
    for spec in specs:
        head, dot, _ = spec.name.partition(".")
        grouped[head] = grouped.get(head, 0) + 1
        if dot and grouped[head] > 1:
            continue
        lines.append((head if dot else "", f"  {label}  {_tensor(spec)}"))
    return [line + (f"  (and {grouped[head] - 1} more of {head})" if head else "") for head, line in lines]


def _tensor(spec: TensorSpec) -> str:
    shape = ", ".join(str(axis) for axis in spec.shape)
    return f"{spec.name} {spec.dtype}[{shape}]{_range(spec.values)}"


def _range(values: ValueRange | None) -> str:
    return "" if values is None else f" in {values.minimum:g} … {values.maximum:g} ({values.fill})"


def _dim(dim: SymbolicDim) -> str:
    total = f" = {' + '.join(dim.sum_of)}" if dim.sum_of else ""
    return f"{dim.name}{total}: {dim.minimum} … {dim.maximum}, typically {dim.typical}"
