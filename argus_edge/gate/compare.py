"""Compare two sets of bench runs: figures at the level of runs, boards in pairs, and what else changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Literal

from argus_edge.errors import InputError
from argus_edge.gate import welch
from argus_edge.reports import Found, find_reports, of_kind
from argus_edge.schema.bench import BenchReport, Measurement
from argus_edge.schema.comparison import ComparedFigure, Comparison, DroppedRun, EnvironmentChange

Side = Literal["baseline", "candidate"]


Group = tuple[str, str, str, str]
"""Model, device, component, scenario: what must be alike."""


@dataclass(frozen=True)
class _Run:
    """One repeat of one component: the unit of comparison."""

    side: Side
    report: BenchReport
    measurement: Measurement

    @property
    def group(self) -> Group:
        """What must be alike."""
        report = self.report
        return report.model.name, report.device.name, self.measurement.component, report.setup.scenario.name


def _estimate(name: str) -> Callable[[Measurement], float | None]:
    def read(measurement: Measurement) -> float | None:
        figures = measurement.figures
        return getattr(figures, name).value if figures is not None else None

    return read


def _generated(name: str) -> Callable[[Measurement], float | None]:
    def read(measurement: Measurement) -> float | None:
        return getattr(measurement.generation, name).value if measurement.generation is not None else None

    return read


# p99 is left out: it differs by up to 30 % between identical runs.
FIGURES: tuple[tuple[str, str, bool, Callable[[Measurement], float | None]], ...] = (
    ("latency_p50", "s", True, _estimate("p50")),
    ("latency_p90", "s", True, _estimate("p90")),
    ("throughput", "1/s", False, _estimate("throughput")),
    ("ttft", "s", True, _generated("ttft")),
    ("inter_token", "s", True, _generated("inter_token")),
    ("tokens_per_s", "1/s", False, _generated("tokens_per_s")),
    ("load", "s", True, lambda measurement: measurement.load_s),
    ("peak_memory", "bytes", True, lambda measurement: measurement.memory_headline.bytes),
    ("energy", "J", True, lambda measurement: measurement.energy.joules_per_inference if measurement.energy else None),
)


def _runs(side: Side, reports: Sequence[Found[BenchReport]]) -> tuple[list[_Run], list[DroppedRun]]:
    runs, dropped = [], []
    seen: set[tuple[str, datetime]] = set()
    for found in reports:
        report = found.artifact
        # A copy of a report is no further run: counted twice, it would make an interval narrower than it is.
        if (report.run, report.created) in seen:
            dropped.append(DroppedRun(side=side, run=report.run, device=report.device.name, cause="given twice"))
            continue
        seen.add((report.run, report.created))
        for measurement in report.measurements:
            causes = dict.fromkeys(cause.code for cause in measurement.validity.causes)
            if measurement.state != "done" or measurement.validity.valid is False:
                dropped.append(
                    DroppedRun(
                        side=side,
                        run=report.run,
                        device=report.device.name,
                        component=measurement.component,
                        cause=", ".join(causes) or measurement.state,
                    )
                )
            else:
                runs.append(_Run(side, report, measurement))
    return runs, dropped


def facts_of(report: BenchReport) -> dict[str, str]:
    """Return the facts of a run's environment that must be alike, unless they are what varies."""
    facts, setup = report.device.facts, report.setup
    first = report.measurements[0] if report.measurements else None
    environment = {
        "model": report.model.sha256,
        "precision": report.model.precision,
        "runtime": setup.runtime,
        "runtime-version": first.runtime_version if first else None,
        "provider": ",".join(first.providers_used) if first and first.providers_used else setup.provider,
        "threads": setup.threads,
        "batch": setup.scenario.batch,
        "background": ",".join(sorted(setup.background)),
        "firmware": facts.firmware,
        "kernel": facts.kernel,
        "os": facts.os,
        "python": facts.python,
        "governor": facts.governor,
        "power-mode": facts.power_mode,
        "memory": facts.memory_total_bytes,
        "tool": report.tool_version,
    }
    labels = {f"label.{name}": value for name, value in {**report.device.labels, **report.labels}.items()}
    return {name: str(value) for name, value in {**environment, **labels}.items() if value is not None}


def _environment(both: dict[Group, list[_Run]], varying: Sequence[str]) -> list[EnvironmentChange]:
    """Return what differs between the runs that are compared with each other; what several groups share comes once."""
    changes: dict[tuple[str, ...], EnvironmentChange] = {}
    for (_, device, _, _), runs in both.items():
        sides: dict[Side, dict[str, set[str]]] = {"baseline": {}, "candidate": {}}
        for run in runs:
            for fact, value in facts_of(run.report).items():
                sides[run.side].setdefault(fact, set()).add(value)
        for fact in set(sides["baseline"]) | set(sides["candidate"]):
            before, after = (", ".join(sorted(sides[side].get(fact, ()))) or "–" for side in sides)
            if before != after:
                changes[device, fact, before, after] = EnvironmentChange(
                    device=device,
                    fact=fact,
                    baseline=before,
                    candidate=after,
                    expected=fact in varying or fact.removeprefix("label.") in varying,
                )
    return [changes[key] for key in sorted(changes)]


def _interleaved(runs: Sequence[_Run]) -> bool:
    """Return whether the sides took turns: the first side to start did not end before the other began."""
    times = {
        side: [
            run.measurement.window_wall if run.measurement.window_wall is not None else run.report.created.timestamp()
            for run in runs
            if run.side == side
        ]
        for side in ("baseline", "candidate")
    }
    a, b = times["baseline"], times["candidate"]
    return not a or not b or not (max(a) < min(b) or max(b) < min(a))


def _figure(
    group: Group,
    name: str,
    unit: str,
    lower: bool,
    values: dict[Side, list[float]],
    *,
    pairs: bool,
    level: float,
) -> ComparedFigure:
    baseline, candidate = values["baseline"], values["candidate"]
    figure = ComparedFigure(
        model=group[0],
        device=group[1],
        component=group[2],
        scenario=group[3],
        figure=name,
        unit=unit,
        lower_is_better=lower,
        baseline=baseline,
        candidate=candidate,
        outcome="too few runs",
        paired=pairs,
    )
    fewest = min(len(baseline), len(candidate))
    if fewest < 2:
        figure.runs_needed = welch.FEWEST
        if fewest:
            figure.change = fmean(candidate) / fmean(baseline) - 1
        return figure
    ratio = (welch.paired if pairs else welch.unpaired)(baseline, candidate, level)
    low, high = ratio.interval
    figure.change, figure.low, figure.high = (math.expm1(value) for value in (ratio.log_ratio, low, high))
    if fewest >= welch.FEWEST:
        figure.outcome = welch.outcome_of(ratio, lower_is_better=lower)
    if figure.outcome == "too few runs":
        figure.runs_needed = max(welch.FEWEST, welch.runs_needed(ratio.sd, level) or welch.MOST_NEEDED)
    return figure


def _values(runs: Sequence[_Run], read: Callable[[Measurement], float | None]) -> dict[Side, list[float]]:
    values: dict[Side, list[float]] = {"baseline": [], "candidate": []}
    for run in runs:
        value = read(run.measurement)
        if value is not None and value > 0:
            values[run.side].append(value)
    return values


def _across_boards(
    groups: dict[Group, list[_Run]], read: Callable[[Measurement], float | None]
) -> dict[Group, dict[Side, list[float]]]:
    """Return the mean of each board that has both sides, by (model, 'all boards', component, scenario)."""
    boards: dict[Group, dict[Side, list[float]]] = {}
    for (model, _, component, scenario), runs in groups.items():
        values = _values(runs, read)
        if values["baseline"] and values["candidate"]:
            place = boards.setdefault((model, "all boards", component, scenario), {"baseline": [], "candidate": []})
            for side, own in values.items():
                place[side].append(fmean(own))
    return boards


def compare_reports(
    baseline: Sequence[Found[BenchReport]],
    candidate: Sequence[Found[BenchReport]],
    *,
    varying: Sequence[str] = (),
    level: float = 0.95,
) -> Comparison:
    """Compare two sets of runs, figure by figure.

    Parameters
    ----------
    baseline, candidate
        Bench reports; a repeat is a run, and runs are the unit.
    varying
        Facts or labels that are meant to differ. Given, boards are paired and tested across boards as well.

    Raises
    ------
    InputError
        No model and device stand on both sides.
    """
    before, dropped_before = _runs("baseline", baseline)
    after, dropped_after = _runs("candidate", candidate)
    runs = [*before, *after]
    groups: dict[Group, list[_Run]] = {}
    for run in runs:
        groups.setdefault(run.group, []).append(run)
    both = {key: own for key, own in groups.items() if {run.side for run in own} == {"baseline", "candidate"}}
    if not both and not (dropped_before or dropped_after):
        raise InputError(
            "No model, device, component and scenario stand on both sides.",
            where=f"baseline: {_listed(before)}; candidate: {_listed(after)}",
            next_step="bench the same model on the same device for both sides",
        )
    figures = []
    for name, unit, lower, read in FIGURES:
        for group, own in both.items():
            values = _values(own, read)
            if values["baseline"] and values["candidate"]:
                figures.append(_figure(group, name, unit, lower, values, pairs=False, level=level))
        if varying:
            for group, values in _across_boards(both, read).items():
                if len(values["baseline"]) > 1:
                    figures.append(_figure(group, name, unit, lower, values, pairs=True, level=level))
    environment = _environment(both, varying)
    return Comparison(
        varying=list(varying),
        level=level,
        margin=welch.MARGIN,
        figures=sorted(figures, key=lambda figure: (figure.model, figure.device, figure.component, figure.scenario)),
        dropped=[*dropped_before, *dropped_after],
        lost=[" / ".join(group) for group, own in groups.items() if {run.side for run in own} == {"baseline"}],
        environment=environment,
        warnings=[*_warnings(both, groups, environment, varying), *_one_sided(both)],
        sources=[found.source for found in [*baseline, *candidate]],
    )


def _listed(runs: Sequence[_Run]) -> str:
    return ", ".join(dict.fromkeys(" / ".join(run.group) for run in runs)) or "nothing"


def _warnings(
    both: dict[Group, list[_Run]],
    groups: dict[Group, list[_Run]],
    environment: Sequence[EnvironmentChange],
    varying: Sequence[str],
) -> list[str]:
    warnings = [
        f"{change.device}: {change.fact} changed too: {change.baseline} -> {change.candidate}"
        for change in environment
        if not change.expected and change.fact != "model"
    ]
    seen = {change.fact for change in environment} | {change.fact.removeprefix("label.") for change in environment}
    if both:
        warnings += [f"{fact} was meant to vary and did not" for fact in varying if fact not in seen]
    blocks = [" / ".join(group) for group, runs in both.items() if not _interleaved(runs)]
    if blocks:
        warnings.append(
            f"one side ran wholly before the other ({'; '.join(blocks)}): drift looks like a change; "
            "interleave the runs (A B B A)"
        )
    warnings += [
        f"only the {runs[0].side} has {' / '.join(group)}" for group, runs in groups.items() if group not in both
    ]
    return warnings


def _one_sided(both: dict[Group, list[_Run]]) -> list[str]:
    """Say which figures only one side has: a sensor that is gone, a percentile that too few calls show."""
    said = []
    for name, _, _, read in FIGURES:
        for group, runs in both.items():
            values = _values(runs, read)
            sides = [side for side, own in values.items() if own]
            if len(sides) == 1:
                said.append(f"only the {sides[0]} has {name} of {' / '.join(group)}")
    return said


def compare_files(
    baseline: Iterable[str | Path], candidate: Iterable[str | Path], *, varying: Sequence[str] = ()
) -> Comparison:
    """Compare the bench reports of files and folders; see :func:`compare_reports`."""
    sides = [of_kind(find_reports(paths, (BenchReport,)), BenchReport) for paths in (baseline, candidate)]
    return compare_reports(*sides, varying=varying)
