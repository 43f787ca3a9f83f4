"""Which (model, precision, runtime, threads, device) fits a budget, the cheapest margin first, and the Pareto front."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from argus_edge.devices import profiles
from argus_edge.errors import ArgusError, InputError
from argus_edge.gate.budget import Budget, read_budget
from argus_edge.gate.commands import bench_again, evaluate_for, evaluation_helps, more_helps
from argus_edge.gate.figures import bench_figure
from argus_edge.gate.foresight import latency_floor, rulings
from argus_edge.gate.metrics import METRICS
from argus_edge.gate.pareto import front
from argus_edge.gate.validate import PARITY, validate_reports
from argus_edge.reports import Found, find_reports, of_kind
from argus_edge.schema.bench import BenchReport
from argus_edge.schema.bundle import BundleManifest
from argus_edge.schema.device import Profile
from argus_edge.schema.evaluation import EvalReport
from argus_edge.schema.judge import JudgeCalibration
from argus_edge.schema.score import ScoreReport
from argus_edge.schema.sizing import Combination, Fit, Sizing
from argus_edge.schema.verdict import Verdict
from argus_edge.text import pasted

ORDER: dict[Fit, int] = {
    "fits": 0,
    "undecided": 1,
    "not measured": 2,
    "unlikely": 3,
    "does not fit": 4,
    "cannot fit": 5,
}


def _combination_of(report: BenchReport) -> tuple[str, str | None, str, int | None, str]:
    return (
        report.model.sha256 or report.model.name,
        report.model.precision,
        report.setup.runtime,
        report.setup.threads,
        report.device.name,
    )


def _margin(verdict: Verdict) -> float | None:
    """Return the least headroom; of parity only where nothing else is limited, since a cosine of 1 has next to none."""
    margins = [(line.metric in PARITY, line.headroom) for line in verdict.lines if line.headroom is not None]
    # Beyond a limit it is a margin like any other.
    over = [(False, headroom) for _, headroom in margins if headroom < 0]
    return min(over or margins, default=(False, None))[1]


def _measured(
    budget: Budget,
    benches: Sequence[Found[BenchReport]],
    evals: Sequence[Found[EvalReport]],
    argus: dict[tuple[str, str], float],
    places: Mapping[str, Path],
) -> Combination:
    report = benches[0].artifact
    own = [
        found
        for found in evals
        if report.model.sha256 in (found.artifact.model.bundle_sha256, found.artifact.model.sha256)
    ]
    references = [
        found for found in evals if found.artifact.model.precision in ("fp32", "float32") and found not in own
    ]
    verdict = validate_reports(replace(budget, device=None, quorum=None), benches, [*own, *references])
    fit: dict[str, Fit] = {"pass": "fits", "fail": "does not fit", "unknown": "undecided"}
    single = next((found for found in benches if found.artifact.setup.scenario.name != "offline"), benches[0])

    def value(name: str) -> float | None:
        return bench_figure(single, METRICS[name], None).value

    return Combination(
        model=report.model.name,
        precision=report.model.precision,
        runtime=report.setup.runtime,
        threads=report.setup.threads,
        device=report.device.name,
        fit=fit[verdict.outcome],
        reason=verdict.cause,
        margin=_margin(verdict),
        latency_s=value("latency_p50"),
        memory_bytes=value("peak_memory"),
        energy_j=value("energy"),
        argus=argus.get((report.model.sha256 or "", report.device.name)),
        next_step=None if verdict.outcome != "unknown" else _how_to_decide(budget, verdict, benches, places),
    )


def _how_to_decide(
    budget: Budget, verdict: Verdict, benches: Sequence[Found[BenchReport]], places: Mapping[str, Path]
) -> str | None:
    model = places.get(benches[0].artifact.model.sha256 or "", benches[0].artifact.model.name)
    for line in verdict.lines:
        if evaluation_helps(line):
            return evaluate_for(line, model)
        if more_helps(line):
            read = next((found for found in benches if found.label == line.source), benches[0])
            return bench_again(read.artifact, model, budget.path, budget.device, needed_s=line.needed_s)
    # What this device does not tell, or what lies on the limit: no command decides it, and the reason says so.
    return None


def _foreseen(budget: Budget, manifest: Found[BundleManifest], device: str, profile: Profile) -> Combination:
    bundle = manifest.artifact
    ruled = rulings(budget, bundle, profile)
    own, best = latency_floor(bundle, profile)
    fit: Fit = "not measured"
    reason = "nothing rules it out before it is measured"
    if ruled:
        fit = "cannot fit" if ruled[0].verdict == "cannot" else "unlikely"
        reason = "; ".join(ruling.reason for ruling in ruled)
    return Combination(
        model=bundle.name,
        precision=bundle.precision,
        device=device,
        fit=fit,
        reason=reason,
        floor_s=own if own is not None else best,
        next_step=None
        if fit == "cannot fit"
        else f"argus-edge bench {pasted(manifest.path.parent)} --device {pasted(device)}",
    )


def _mark_front(combinations: list[Combination]) -> tuple[list[str], list[str]]:
    """Mark the front over the figures that every measured combination has; return those, and a line on the others."""
    measured = [each for each in combinations if each.latency_s is not None]
    figures = {
        "ARGUS": [None if each.argus is None else -each.argus for each in measured],
        "latency": [each.latency_s for each in measured],
        "memory": [each.memory_bytes for each in measured],
        "energy": [each.energy_j for each in measured],
    }
    complete = {
        name: [value for value in values if value is not None]
        for name, values in figures.items()
        if measured and all(value is not None for value in values)
    }
    absent = [name for name in figures if name not in complete]
    if not complete:
        return [], []
    for combination, on_front in zip(measured, front(list(zip(*complete.values(), strict=True))), strict=True):
        combination.pareto = on_front
    notes = [f"The Pareto front is without {', '.join(absent)}: not every combination has it."] if absent else []
    return list(complete), notes


def size_reports(
    budget: Budget,
    benches: Sequence[Found[BenchReport]],
    evals: Sequence[Found[EvalReport]],
    bundles: Sequence[Found[BundleManifest]],
    scores: Sequence[Found[ScoreReport]],
    devices: Sequence[str] = (),
) -> Sizing:
    """Return every combination with how it stands to the budget.

    Parameters
    ----------
    budget
        Its ``device`` and ``quorum`` are not looked at: sizing asks over all boards.
    benches, evals, scores
        What was measured; a score report gives ARGUS.
    bundles
        Held against the profiles of ``devices`` where no bench of them is there; each in the folder of its path.
    devices
        Entries of the inventory or profiles to look ahead to; empty: the profiles of the benches, or all where there
        is no bench.
    """
    groups: dict[tuple[str, str | None, str, int | None, str], list[Found[BenchReport]]] = {}
    for found in benches:
        groups.setdefault(_combination_of(found.artifact), []).append(found)
    argus = {
        (model.sha256, device.device): device.argus.value
        for found in scores
        for model in found.artifact.models
        for device in model.devices
        if device.argus.value is not None
    }
    places = {manifest.sha256: manifest.path.parent for manifest in bundles}
    combinations = [_measured(budget, group, evals, argus, places) for group in groups.values()]
    known = {
        (found.artifact.model.sha256, name)
        for found in benches
        for name in (found.artifact.device.profile, found.artifact.device.name)
    }
    names = list(devices) or sorted({found.artifact.device.profile for found in benches}) or profiles.names()
    ahead = {name: profiles.load_for(name) if devices else profiles.load(name) for name in names}
    combinations += [
        _foreseen(budget, manifest, name, profile)
        for manifest in bundles
        for name, profile in ahead.items()
        if (manifest.sha256, name) not in known
    ]
    if not combinations:
        raise InputError(
            "There is neither a bench report nor a bundle among the inputs.",
            next_step="argus-edge bench MODEL --device …, or give a bundle's folder",
        )
    over, notes = _mark_front(combinations)
    combinations.sort(key=lambda each: (ORDER[each.fit], each.margin if each.margin is not None else 0.0, each.model))
    return Sizing(
        budget=budget.name,
        budget_source=budget.source,
        combinations=combinations,
        pareto_over=over,
        notes=notes,
        sources=[found.source for group in (benches, evals, bundles, scores) for found in group],
    )


def size_files(paths: Iterable[str | Path], *, budget: str | Path, devices: Sequence[str] = ()) -> Sizing:
    """Size from files and folders: bench, eval and score reports, and bundles; see :func:`size_reports`.

    Without a score report among them ARGUS is computed from the eval and bench reports, where these belong together.
    """
    found = find_reports(paths, (BenchReport, EvalReport, BundleManifest, ScoreReport, JudgeCalibration))
    benches, evals, scores = of_kind(found, BenchReport), of_kind(found, EvalReport), of_kind(found, ScoreReport)
    notes = []
    if benches and evals and not scores:
        from argus_edge.score.assemble import score_reports

        try:
            score = score_reports(evals, benches, of_kind(found, JudgeCalibration))
            scores = [Found(Path("computed for this sizing"), "", score)]
        except ArgusError as error:
            notes.append(f"No ARGUS: {error.what}" + (f" ({error.where})" if error.where else ""))
    sizing = size_reports(read_budget(budget), benches, evals, of_kind(found, BundleManifest), scores, devices)
    return sizing.model_copy(update={"notes": [*sizing.notes, *notes]})
