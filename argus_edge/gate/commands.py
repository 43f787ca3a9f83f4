"""The commands that decide an undecided line, as they would be typed."""

from __future__ import annotations

import math
from pathlib import Path

from argus_edge.gate.figures import NO_ORIGINAL
from argus_edge.gate.foresight import RUNTIME_OF
from argus_edge.gate.metrics import CELL
from argus_edge.gate.validate import ON_THE_LIMIT
from argus_edge.schema.agent import Scenario
from argus_edge.schema.bench import BenchReport
from argus_edge.schema.verdict import VerdictLine
from argus_edge.text import pasted

MOST_S = 600
"""What `bench --until-decided` takes at most, unless told otherwise."""


def more_helps(line: VerdictLine) -> bool:
    """Tell whether an undecided line may be decided by another, longer run; what no run measures is not."""
    if line.outcome != "unknown" or line.reason == ON_THE_LIMIT:
        return False
    return line.measured is not None or line.needed_s is not None


def evaluation_helps(line: VerdictLine) -> bool:
    """Tell whether an undecided line is of a figure that no device changes, and an evaluation may decide it."""
    return line.outcome == "unknown" and not line.device and line.reason != ON_THE_LIMIT


def bench_again(
    report: BenchReport,
    model: Path | str,
    budget: str,
    budget_device: str | None = None,
    *,
    needed_s: float | None = None,
) -> str:
    """Return the command that benches the same model in the same way on the same device until a budget is decided.

    Parameters
    ----------
    report
        What was measured: its device, scenario with its load, threads, provider and runtime are asked for again.
    model
        Where the model is, as far as that is known, else its name.
    budget
        The budget's file.
    budget_device
        The device that the budget is for; of another one ``bench --until-decided`` cannot decide it.
    needed_s
        How much longer a window the open line needs, where that is known.
    """
    setup, device = report.setup, report.device
    words = ["argus-edge bench", pasted(model), "--device", pasted(device.name)]
    if setup.runtime == "server":
        words.append("--runtime server --url URL")  # a report never holds an address
    elif setup.runtime != RUNTIME_OF.get(report.model.format, setup.runtime):
        words += ["--runtime", pasted(setup.runtime)]
    if setup.provider in ("cuda", "tensorrt", "xnnpack"):
        words += ["--provider", pasted(setup.provider)]
    if setup.scenario.name != "single-stream":
        words += ["--scenario", setup.scenario.name]
    words += _load(setup.scenario)
    if setup.threads:
        words += ["--threads", str(setup.threads)]
    if budget_device in (None, device.name, device.profile):
        words += ["--until-decided", pasted(budget)]
        # Each part has a window of its own, and a second look may be needed.
        whole = 2 * (needed_s or 0.0) * max(1, len({each.component for each in report.measurements}))
        if whole > MOST_S:
            words += ["--max-duration", f"{math.ceil(whole)}s"]
    return " ".join(words)


def _load(scenario: Scenario) -> list[str]:
    """Return the options for what differs from the load that a scenario has of itself."""
    usual = Scenario()
    values = {"--batch": (scenario.batch, usual.batch), "--streams": (scenario.streams, usual.streams)}
    rates = {"--fps": (scenario.fps, usual.fps), "--qps": (scenario.qps, None)}
    words = [f"{option} {value:.12g}" for option, (value, own) in {**values, **rates}.items() if value != own]
    return words + ([f"--latency-bound {scenario.latency_bound_s:.12g}s"] if scenario.latency_bound_s else [])


def evaluate_for(line: VerdictLine, model: Path | str) -> str:
    """Return the command that evaluates what an undecided line lacks.

    Parameters
    ----------
    line
        Of a figure that no device changes.
    model
        Where the model is, as far as that is known, else its name.
    """
    cell = CELL.fullmatch(line.metric)
    data = f"{cell['dataset']}=…" if cell else "…"
    if line.reason == NO_ORIGINAL:
        return f"argus-edge eval FP32-MODEL --data {data}"
    perturbed = " --perturb standard" if line.metric == "robustness" else ""
    return f"argus-edge eval {pasted(model)} --data {data}{perturbed}"
