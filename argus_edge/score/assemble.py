"""From reports to the ARGUS score: joins, resamples, computes, ranks, and says what could not be had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from argus_edge.errors import UsageError
from argus_edge.reports import Found
from argus_edge.schema.bench import BenchReport
from argus_edge.schema.evaluation import EvalReport
from argus_edge.schema.judge import JudgeCalibration
from argus_edge.schema.score import (
    CapabilityScore,
    CellScore,
    DeviceScore,
    EfficiencyScore,
    EfficiencyTerm,
    Flip,
    Outranking,
    Scored,
    ScoredModel,
    ScoreReport,
    Term,
)
from argus_edge.score import formulas, sensitivity
from argus_edge.score.cohort import Member, common_cells, gather
from argus_edge.score.efficiency import TERMS, Costs, costs_of, draw, efficiencies, shared_terms
from argus_edge.score.intervals import debiased_basic, hull, percentile
from argus_edge.score.judged import Graded, Place, judged_cells, judged_replicates
from argus_edge.score.reliability import reliability_line
from argus_edge.score.replicates import CellReplicates, replicate_all
from argus_edge.score.resampling import image_weights

Array = npt.NDArray[np.float64]
Reading = Literal["by-task", "all"]

EQUAL_WEIGHTS: dict[Term, float] = {"capability": 0.25, "consistency": 0.25, "robustness": 0.25, "efficiency": 0.25}


def weights_for(efficiency_weight: float) -> dict[Term, float]:
    """Return the weights with wE = ``efficiency_weight`` and the rest shared equally.

    Raises
    ------
    UsageError
        It is not in [0, 1].
    """
    if not 0 <= efficiency_weight <= 1:
        raise UsageError(f"The efficiency weight {efficiency_weight} is not between 0 and 1.")
    rest = (1 - efficiency_weight) / 3
    return {"capability": rest, "consistency": rest, "robustness": rest, "efficiency": efficiency_weight}


def check_weights(weights: Mapping[str, float], where: str | None = None) -> dict[Term, float]:
    """Return weights that name the four terms, are not negative and sum to 1.

    Raises
    ------
    UsageError
        They do not.
    """
    if set(weights) != set(EQUAL_WEIGHTS):
        raise UsageError(
            f"Weights must name exactly {', '.join(EQUAL_WEIGHTS)}; these name {', '.join(map(str, weights))[:200]}.",
            where=where,
        )
    values = list(weights.values())
    # NaN is in no range, so the test is for what is allowed.
    if not all(0 <= value <= 1 for value in values) or abs(sum(values) - 1) > 1e-6:
        given = ", ".join(f"{value:g}" for value in values)
        raise UsageError(f"Weights lie between 0 and 1 and sum to 1; these are {given}.", where=where)
    return {term: float(weights[term]) for term in EQUAL_WEIGHTS}


@dataclass(frozen=True)
class _Capability:
    """Arrays of shape (1 + replicates,), the estimate first; the debiased CDCs beside the plain ones."""

    report: CapabilityScore
    p: Array
    cdc: Array
    cdc_debiased: Array
    rr: Array


def _scored(estimate: float, interval: tuple[float, float], reason: str) -> Scored:
    if np.isnan(estimate):
        return Scored(value=None, reason=reason)
    low, high = interval
    if np.isnan(low):
        return Scored(value=estimate, reason="no interval: too few replicates have a value")
    return Scored(value=estimate, low=low, high=high)


def _capability(
    member: Member,
    measured: Sequence[Place],
    judged: Mapping[Place, Graded],
    weights: Mapping[str, Array],
    reading: Reading,
    level: float,
    replicates: int,
    seed: int,
) -> _Capability:
    where = ", ".join(str(found.path) for found in member.evals)
    own = dict(zip(measured, replicate_all(member.cells, measured, weights, where), strict=True))
    # A cell is measured or judged, or both: then the judge's metric is the cell's.
    places = [*measured, *(place for place in judged if place not in own)]
    columns = [
        judged_replicates(judged[place].mean, place, member.key, replicates, seed)
        if place in judged
        else own[place].clean
        for place in places
    ]
    s = np.stack(columns, axis=-1)
    errors = s[1:].var(axis=0)
    p = formulas.capability(places, s)

    # Robustness is a ratio of one metric to itself, so it stays with the one that was measured under perturbation.
    perturbed = {place: formulas.mean_perturbed(cell.grid) for place, cell in own.items()}
    touched = [place for place, values in perturbed.items() if values is not None]
    if touched:
        under = formulas.capability(touched, np.stack([v for v in perturbed.values() if v is not None], axis=-1))
        clean = formulas.capability(touched, np.stack([own[place].clean for place in touched], axis=-1))
        rr = formulas.robustness(under, clean)
    else:
        rr = np.full(p.shape, np.nan)

    readings: dict[Reading, tuple[Array, Array]] = {
        "by-task": (
            formulas.consistency_by_task(places, s),
            formulas.consistency_by_task(places, s, errors),
        ),
        "all": (formulas.consistency_all(places, s), formulas.consistency_all(places, s, errors)),
    }
    scored = {
        name: _scored(
            float(plain[0]),
            hull(
                percentile(plain[1:], level),
                debiased_basic(float(debiased[0]), debiased[1:], level),
                cap=1.0,
            ),
            "no task has two datasets with a score above chance"
            if name == "by-task"
            else "fewer than two datasets, or none above chance",
        )
        for name, (plain, debiased) in readings.items()
    }
    report = CapabilityScore(
        capability=_scored(float(p[0]), percentile(p[1:], level), ""),
        consistency=scored["by-task"],
        consistency_all=scored["all"],
        robustness=_scored(
            float(rr[0]),
            percentile(rr[1:], level),
            "evaluated without perturbations" if not touched else "capability is 0",
        ),
        datasets={name: float(values[0]) for name, values in formulas.dataset_scores(places, s).items()},
        cells=[
            _cell_score(place, float(s[0, column]), member, own.get(place), perturbed.get(place), judged.get(place))
            for column, place in enumerate(places)
        ],
    )
    plain, debiased = readings[reading]
    return _Capability(report, p, plain, debiased, rr)


def _cell_score(
    place: Place,
    s: float,
    member: Member,
    own: CellReplicates | None,
    perturbed: Array | None,
    judged: Graded | None,
) -> CellScore:
    if judged is not None:
        return CellScore(
            task=place[0],
            dataset=place[1],
            raw=judged.mean.unit_mean,
            chance=0.0,
            s=s,
            judged=judged.judge,
            replaced=own.raw if own is not None else None,
        )
    assert own is not None
    return CellScore(
        task=place[0],
        dataset=place[1],
        raw=own.raw,
        chance=member.cells[place][0].chance,
        s=s,
        s_perturbed=None if perturbed is None else float(perturbed[0]),
    )


def _argus_interval(capability: _Capability, e: Array, weights: Sequence[float], level: float) -> tuple[Scored, Array]:
    plain = formulas.argus([capability.p, capability.cdc, capability.rr, e], weights)
    debiased = formulas.argus([capability.p, capability.cdc_debiased, capability.rr, e], weights)
    missing = [
        word
        for word, values in (
            ("consistency", capability.cdc),
            ("robustness", capability.rr),
            ("efficiency", e),
        )
        if np.isnan(values[0])
    ]
    interval = hull(percentile(plain[1:], level), debiased_basic(float(debiased[0]), debiased[1:], level), cap=1.0)
    return _scored(float(plain[0]), interval, f"missing: {', '.join(missing)}"), plain


def score_reports(
    evals: Sequence[Found[EvalReport]],
    benches: Sequence[Found[BenchReport]],
    judges: Sequence[Found[JudgeCalibration]] = (),
    *,
    weights: Mapping[Term, float] = EQUAL_WEIGHTS,
    references: Mapping[EfficiencyTerm, float] | None = None,
    reading: Reading = "by-task",
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> ScoreReport:
    """Merge eval and bench reports into the ARGUS score.

    Parameters
    ----------
    evals, benches
        The reports with their files.
    judges
        Calibrations of `argus-edge judge fit`: where the advice is to score, their means are the cells' metric.
    weights
        Of the four terms; they sum to 1.
    references
        A budget's limits for the efficiency terms; None takes the best of the cohort on each device.
    reading
        Which CDC enters ARGUS.
    replicates
        Bootstrap replicates.
    level
        Of the intervals.
    seed
        Of the resampling.

    Raises
    ------
    InputError
        Reports that do not belong together, by name.
    """
    members = gather(evals, benches)
    judged = judged_cells(members, judges)
    places, excluded = common_cells(members, judged.cells)
    datasets = {dataset.name: dataset for member in members for _, dataset in member.cells.values()}
    image = {
        name: image_weights(name, len(dataset.image_ids), replicates, seed)
        for name, dataset in datasets.items()
        if any(place[1] == name for place in places)
    }
    capabilities = [
        _capability(
            member,
            places,
            {place: graded[index] for place, graded in judged.cells.items()},
            image,
            reading,
            level,
            replicates,
            seed,
        )
        for index, member in enumerate(members)
    ]
    models = [_scored_model(member, capability) for member, capability in zip(members, capabilities, strict=True)]
    report = ScoreReport(
        weights=dict(weights),
        efficiency_reference="cohort" if references is None else "budget",
        efficiency_terms=[],
        references={},
        consistency_reading=reading,
        level=level,
        replicates=replicates,
        seed=seed,
        models=models,
        judged=judged.scores,
        excluded=excluded,
        notes=[*judged.notes, *_mixed_metrics(models[0])],
        sources=[found.source for group in (evals, benches, judges) for found in group],
    )
    devices = list(dict.fromkeys(device for member in members for device in member.benches))
    for device in devices:
        _score_device(report, device, members, capabilities, references)
    if not devices:
        report.notes.append("No bench report: efficiency and ARGUS are missing. Run `argus-edge bench` on the bundle.")
    report.reliability = reliability_line(models, reading)
    return report


def _mixed_metrics(model: ScoredModel) -> list[str]:
    """Say where a task's datasets are not all measured alike: consistency then takes metrics for datasets."""
    notes = []
    for task in dict.fromkeys(cell.task for cell in model.scores.cells):
        cells = [cell for cell in model.scores.cells if cell.task == task]
        judged = [cell.dataset for cell in cells if cell.judged]
        measured = [cell.dataset for cell in cells if not cell.judged]
        if judged and measured:
            notes.append(
                f"{task}: {', '.join(judged)} judged, {', '.join(measured)} not; "
                "consistency holds two metrics against each other."
            )
    return notes


def _scored_model(member: Member, capability: _Capability) -> ScoredModel:
    p = capability.report.capability
    ranked = bool(p.low is not None and p.low > 0)
    return ScoredModel(
        name=member.name,
        precision=member.precision,
        sha256=member.key,
        scores=capability.report,
        devices=[],
        ranked=ranked,
        not_ranked_because=None if ranked else "the interval of its capability includes 0",
    )


def _score_device(
    report: ScoreReport,
    device: str,
    members: Sequence[Member],
    capabilities: Sequence[_Capability],
    references: Mapping[EfficiencyTerm, float] | None,
) -> None:
    present = [index for index, member in enumerate(members) if device in member.benches]
    costs = [costs_of(members[index].benches[device]) for index in present]
    terms = shared_terms(costs, references)
    report.efficiency_terms = [term for term in TERMS if term in report.efficiency_terms or term in terms]
    absent = [term for term in TERMS if term not in terms]
    if absent:
        report.notes.append(f"{device}: efficiency is without {', '.join(absent)} ({_why_absent(absent, references)}).")
    alone = len(present) == 1 and references is None
    if alone:
        report.notes.append(
            f"{device}: a single model has no efficiency of its own; give --budget FILE for absolute references."
        )
    rng = np.random.default_rng([report.seed, len(device), *device.encode()])
    values = {
        term: np.stack(
            [
                np.concatenate([[cost.value(term)], draw(cost, term, report.replicates, rng)]).astype(np.float64)
                for cost in costs
            ]
        )
        for term in terms
    }
    if terms and not alone:
        e, term_values = efficiencies(values, references)
        report.references[device] = {
            term: float(references[term])
            if references is not None
            else float(values[term][:, 0].max() if term == "throughput" else values[term][:, 0].min())
            for term in terms
        }
    else:
        e, term_values = np.full((len(present), 1 + report.replicates), np.nan), {}
    weights = [report.weights[term] for term in EQUAL_WEIGHTS]
    argus = []
    for row, index in enumerate(present):
        scored, replicate = _argus_interval(capabilities[index], e[row], weights, report.level)
        argus.append(replicate)
        own = {term: float(term_values[term][row, 0]) if term in term_values else None for term in TERMS}
        reason = "a single model needs a budget" if alone else "no term is measured for all models"
        report.models[index].devices.append(
            _device_score(members[index], device, costs[row], own, e[row], scored, reason, report.level)
        )
    _rank(report, device, present, capabilities, e, np.stack(argus))


def _why_absent(absent: Sequence[str], references: Mapping[EfficiencyTerm, float] | None) -> str:
    why = []
    if "throughput" in absent:
        why.append("throughput needs `argus-edge bench --scenario offline`")
    if set(absent) - {"throughput"}:
        why.append("not measured for every model" + ("" if references is None else ", or the budget has no limit"))
    return "; ".join(why)


def _device_score(
    member: Member,
    device: str,
    costs: Costs,
    terms: dict[EfficiencyTerm, float | None],
    e: Array,
    argus: Scored,
    reason: str,
    level: float,
) -> DeviceScore:
    benched = member.benches[device]
    validities = [found.artifact.validity.valid for found in (benched.latency, benched.offline) if found is not None]
    return DeviceScore(
        device=device,
        profile=benched.profile,
        bench_run=benched.latency.artifact.run,
        efficiency=EfficiencyScore(
            efficiency=_scored(float(e[0]), percentile(e[1:], level), reason),
            terms=terms,
            latency_s=costs.value("latency"),
            memory_bytes=costs.memory_bytes,
            memory_kind=costs.memory_kind,
            macs=costs.macs,
            throughput=costs.value("throughput"),
            unit_of_work=costs.unit_of_work,
        ),
        argus=argus,
        valid=False if False in validities else (None if None in validities else True),
    )


def _rank(
    report: ScoreReport,
    device: str,
    present: Sequence[int],
    capabilities: Sequence[_Capability],
    e: Array,
    argus: Array,
) -> None:
    rows = [row for row, index in enumerate(present) if report.models[index].ranked and not np.isnan(argus[row, 0])]
    if not rows:
        return
    scores = {row: report.models[present[row]].devices[-1] for row in rows}
    for rank, row in enumerate(sorted(rows, key=lambda row: -argus[row, 0]), start=1):
        scores[row].rank = rank
    parts = np.array(
        [
            [
                capabilities[present[row]].p[0],
                capabilities[present[row]].cdc[0],
                min(1.0, capabilities[present[row]].rr[0]),
                e[row, 0],
            ]
            for row in rows
        ]
    )
    for row, share in zip(rows, sensitivity.first_shares(parts, seed=report.seed), strict=True):
        scores[row].first_share = float(share)
    names = [report.models[present[row]].name for row in rows]
    probabilities = sensitivity.outranking(argus[rows, 1:])
    report.outranking += [
        Outranking(device=device, model=names[i], other=names[j], probability=float(probabilities[i, j]))
        for i in range(len(rows))
        for j in range(len(rows))
        if i != j and not np.isnan(probabilities[i, j])
    ]
    report.flips += [
        Flip(device=device, at_efficiency_weight=at, before=names[before], after=names[after])
        for at, before, after in sensitivity.flips(list(parts[:, :3].mean(axis=1)), list(parts[:, 3]))
    ]
