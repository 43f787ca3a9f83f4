"""`argus-edge bench --until-decided BUDGET`: run after run until the gate can decide."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from argus_edge.cli.output import emit_json, say
from argus_edge.errors import UsageError

if TYPE_CHECKING:
    from argus_edge.bench.matrix import Means
    from argus_edge.bench.prepare import Prepared
    from argus_edge.reports import Found
    from argus_edge.schema.bench import BenchReport
    from argus_edge.schema.device import DeviceEntry


def bench_until(
    prepared: Sequence[Prepared],
    entries: Sequence[DeviceEntry],
    means: Means,
    *,
    budget_file: str,
    most_s: float,
    out: str | None,
    json_path: str | None,
) -> int:
    """Measure one model on one board until its budget is decided; return the gate's exit code."""
    from argus_edge.artifacts import dump_artifact, write_artifact
    from argus_edge.bench.fleet import run
    from argus_edge.bench.matrix import matrix
    from argus_edge.bench.until_decided import bench_budget, until_decided
    from argus_edge.cli.output import report_path
    from argus_edge.gate.budget import read_budget
    from argus_edge.interrupts import Interrupts
    from argus_edge.report.console import stdout_console
    from argus_edge.report.fleet_view import fleet_view
    from argus_edge.report.terminal import print_report
    from argus_edge.report.verdict_table import print_verdict
    from argus_edge.reports import Found

    if len(prepared) != 1 or len(entries) != 1:
        raise UsageError(
            "--until-decided takes one model and one device.",
            next_step="call it for each, then argus-edge validate over all reports",
        )
    if prepared[0].request.options.runs != 1:
        raise UsageError("--until-decided makes runs of its own.", next_step="leave out --runs")
    budget = bench_budget(read_budget(budget_file))
    entry = entries[0]
    if budget.device not in (None, entry.name, entry.profile):
        raise UsageError(
            f"The budget is for {budget.device}, the device is {entry.name} ({entry.profile}).",
            where=budget_file,
            next_step=f"--device {budget.device}",
        )
    view = fleet_view([entry.name])

    def measure(duration_s: float) -> Found[BenchReport]:
        (task,) = matrix([with_window(prepared[0], duration_s)], [entry], means)
        (result,) = run([task], view, interrupts)
        if result.error is not None:
            raise result.error
        outcome: Any = result.outcome
        if outcome.error is not None:
            raise outcome.error
        return Found(Path(f"{outcome.report.run}.json"), "", outcome.report)

    first_s = float(prepared[0].request.options.scenario.duration_s)
    say(f"budget {budget.name}: {len(budget.limits)} lines; at most {most_s:.0f} s, a first window of {first_s:.0f} s")
    with Interrupts() as interrupts:
        try:
            decision = until_decided(budget, measure, first_s=first_s, most_s=most_s, say=say)
        finally:
            view.close()
    report, verdict = decision.last.report.artifact, decision.last.verdict
    if out is not None or json_path is None:
        path = report_path(out, report.run, several=False)
        write_artifact(report, path)
        say(f"report: {path}")
    if json_path is not None:
        emit_json(dump_artifact(report), json_path)
    if json_path != "-":
        print_report(report, stdout_console())
        click.echo()
        print_verdict(verdict)
    many = f"{len(decision.looks)} runs" if len(decision.looks) > 1 else "one run"
    say(f"{many}, the last at {decision.last.level:.4g} confidence: {decision.why}")
    return {"pass": 0, "fail": 1, "unknown": 8}[verdict.outcome]


def with_window(prepared: Prepared, duration_s: float) -> Prepared:
    """Return the same bench with another timed window."""
    from argus_edge.bench.until_decided import lasting

    options = prepared.request.options
    options = dataclasses.replace(options, scenario=lasting(options.scenario, duration_s))
    return dataclasses.replace(prepared, request=dataclasses.replace(prepared.request, options=options))
