"""Reproduce the published figures of arXiv 2604.25235 and measure the default against its bars.

Usage: python benchmarks/judge/published.py DATA [--out FOLDER] [--splits 10] [--jobs 2] [--parts all,fusion,...]

DATA holds mllm_judge-llava_critic_7b.csv, mllm_judge-phi_4_15b.csv and polaris-llava_critic_7b.csv (the results
published with arXiv 2604.25235, MIT licence, columns renamed). Each part is written to FOLDER/PART.json as soon as it
is measured, so parts can be run one by one; FOLDER/published.md is made from whatever parts are there.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path

from joblib.externals.loky import get_reusable_executor

from argus_edge.artifacts import read_artifact, write_artifact, write_text
from argus_edge.judge.evaluation import Plan, evaluate_judges, method_names
from argus_edge.judge.table import read_table
from argus_edge.judge.tasks import Demands
from argus_edge.schema.judge import JudgeEvaluation

LLAVA, PHI, POLARIS = "mllm_judge-llava_critic_7b.csv", "mllm_judge-phi_4_15b.csv", "polaris-llava_critic_7b.csv"

# part -> files, methods, groups
PARTS = {
    "default": ([LLAVA], "integer", "auto"),
    "default-phi": ([PHI], "integer", "auto"),
    "all": ([LLAVA], "all", "auto"),
    "fusion": ([LLAVA, PHI], "integer,r2ccp", "auto"),
    "polaris": ([POLARIS], "integer,r2ccp", "auto"),
    "difficulty": ([LLAVA], "r2ccp", "difficulty"),
}

# method -> coverage raw, width raw, coverage adjusted, width adjusted (LLaVA-Critic on MLLM-as-a-Judge)
PUBLISHED = {
    "r2ccp": (0.900, 3.05, 0.981, 3.60),
    "chr": (0.880, 2.97, 0.965, 3.43),
    "boosted-lcp": (0.863, 3.02, 0.977, 3.51),
    "naive": (0.895, 3.23, 0.990, 3.78),
    "lvd": (0.894, 3.21, 0.988, 3.71),
    "boosted-cqr": (0.878, 3.54, 0.997, 3.93),
    "cqr": (0.996, 3.95, 1.0, 4.0),
    "cqr-asymmetric": (0.996, 3.95, 1.0, 4.0),
    "ordinal-aps": (0.999, 3.99, 0.999, 3.99),
}
# method -> most that coverage and width may differ; the others have no bar
BARS = {
    "r2ccp": (0.02, 0.12),
    "naive": (0.02, 0.15),
    "chr": (0.02, 0.15),
    "cqr": (0.02, 0.15),
    "cqr-asymmetric": (0.02, 0.15),
    "ordinal-aps": (0.02, 0.15),
}
TASK_WIDTHS = {
    "AesBench": 2.08, "mm-vet": 2.18, "WIT": 2.38, "coco": 2.43, "mind2web": 2.69, "Concept Caption": 2.70,
    "textVQA": 2.81, "llava_bench": 2.92, "VisitBench": 2.96, "ChartQA": 3.08, "ScienceQA": 3.27, "mathvista": 3.37,
    "diffusiondb": 3.41, "infographicsVQA": 3.50,
}  # fmt: skip


def measure(part: str, data: Path, out: Path, splits: int, jobs: int) -> None:
    """Run one part and write its evaluation and its seconds."""
    files, methods, by = PARTS[part]
    start, busy = time.perf_counter(), sum(os.times()[:4])
    tables = [read_table(data / name) for name in files]
    plan = Plan(method_names(methods), splits, 0.1, by, Demands(2.0), jobs)
    evaluation = evaluate_judges(tables, plan, lambda text: print(text, file=sys.stderr))
    seconds = time.perf_counter() - start
    # Workers are counted once they have ended.
    get_reusable_executor().shutdown(wait=True)
    processor = sum(os.times()[:4]) - busy
    write_artifact(evaluation, out / f"{part}.json")
    load = os.getloadavg()[0]
    timing = {
        "seconds": round(seconds, 1),
        "processor": round(processor, 1),
        "processes": jobs,
        "splits": splits,
        "load_average": round(load, 1),
    }
    write_text(out / f"{part}.time.json", json.dumps(timing) + "\n")


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    return [_line(head), _line(["---"] * len(head)), *map(_line, rows), ""]


def _against(value: float, wanted: float, most: float | None, digits: int) -> str:
    text = f"{value:.{digits}f} ({wanted:.{digits}f})"
    return text if most is None or abs(value - wanted) <= most + 1e-9 else f"**{text}**"


def _methods(evaluation: JudgeEvaluation) -> list[str]:
    rows = []
    for method in evaluation.judges[0].methods:
        whole, wanted = method.overall, PUBLISHED.get(method.method)
        figures = (whole.coverage, whole.width, whole.coverage_adjusted, whole.width_adjusted)
        if wanted is None:
            cells = [f"{value:.3f}" if index % 2 == 0 else f"{value:.2f}" for index, value in enumerate(figures)]
        else:
            bars = BARS.get(method.method, (None, None))
            cells = [
                _against(value, target, bars[index % 2], 3 if index % 2 == 0 else 2)
                for index, (value, target) in enumerate(zip(figures, wanted, strict=True))
            ]
        bar = "–" if method.method not in BARS else "±{} / ±{}".format(*BARS[method.method])
        rows.append([method.method, *cells, bar, f"{method.seconds:.1f}"])
    head = ["method", "coverage", "width", "adjusted coverage", "adjusted width", "bar", "CPU seconds, all splits"]
    return _table(head, rows)


def report(out: Path) -> str:
    """Return the page made from the parts that are there."""
    found = {
        part: read_artifact(out / f"{part}.json", JudgeEvaluation) for part in PARTS if (out / f"{part}.json").exists()
    }
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn", "MAPIE", "crepes"))
    lines = [
        "# Judge intervals: published against measured",
        "",
        f"Made by `benchmarks/judge/published.py`. Python {platform.python_version()}, {versions}; "
        f"{os.cpu_count()} cores, {platform.machine()}. Measured (published); bold: outside its bar.",
        "",
    ]
    if "all" in found:
        lines += ["## LLaVA-Critic on MLLM-as-a-Judge, all methods", "", *_methods(found["all"])]
        points = found["all"].judges[0].points
        if points:
            measured = (points.pearson, points.exact, points.within_one, points.mae, points.bias)
            lines += [
                "Point figures, measured: Pearson {:.3f}, exact {:.1%}, within one {:.1%}, MAE {:.3f}, bias {:+.2f}; "
                "published: .402, 32.2 %, 75.1 %, 1.031, +0.38.".format(*measured),
                "",
            ]
    if "fusion" in found:
        fusion = found["fusion"]
        rows = []
        published = ((0.900, 3.05, 3.60), (0.891, 3.13, 3.70), (0.903, 3.18, 3.62))
        for judge, wanted in zip(fusion.judges, published, strict=True):
            whole = next(m for m in judge.methods if m.method == "r2ccp").overall
            bars = (0.02, 0.12, 0.12) if "+" not in judge.judge else (None, None, None)
            figures = (whole.coverage, whole.width, whole.width_adjusted)
            cells = zip(figures, wanted, bars, (3, 2, 2), strict=True)
            rows.append([judge.judge, *(_against(*cell) for cell in cells)])
        lines += ["## R2CCP, two judges and both together", ""]
        lines += _table(["judge", "coverage", "width", "adjusted width"], rows)
        rho = fusion.agreement[0].spearman
        lines += [f"Order of the tasks by R2CCP width between the judges: Spearman {rho:.2f} (.93).", ""]
        rows = []
        for judge in fusion.judges[:2]:
            first = next(m for m in judge.methods if m.method == "integer")
            worst = min(first.by_task, key=lambda part: part.coverage)
            rows.append(
                [judge.judge, f"{first.overall.coverage:.3f}", f"{first.overall.width:.3f}",
                 f"{worst.coverage:.3f} ({worst.name})"]
            )  # fmt: skip
        lines += ["## The default, task known", ""]
        lines += _table(["judge", "coverage (≥ .895)", "width (≤ 2.50, ≤ 2.60)", "lowest task (≥ .84)"], rows)
        widths = {part.name: part for part in fusion.judges[0].within_task}
        rows = [
            [task, f"{widths[task].width:.2f}", f"{wanted:.2f}"]
            for task, wanted in TASK_WIDTHS.items()
            if task in widths
        ]
        lines += ["## R2CCP within each task, LLaVA-Critic", "", *_table(["task", "width", "published"], rows)]
    if "polaris" in found:
        whole = next(m for m in found["polaris"].judges[0].methods if m.method == "r2ccp").overall
        cells = [_against(whole.coverage, 0.899, 0.021, 3), _against(whole.width, 0.68, 0.15, 2)]
        lines += ["## R2CCP on Polaris", "", *_table(["coverage (bar .90 ± .02)", "width (bar ± .15)"], [cells])]
    if "difficulty" in found:
        groups = found["difficulty"].judges[0].methods[0].by_group
        wanted = {"easy": 2.96, "medium": 3.49, "hard": 3.78}
        rows = [
            [g.name, f"{g.coverage_adjusted:.3f}", f"{g.width_adjusted:.2f}", f"{wanted[g.name]:.2f}"] for g in groups
        ]
        lines += ["## R2CCP, Mondrian by difficulty (learned on a split of its own)", ""]
        lines += _table(["group", "adjusted coverage", "adjusted width", "published"], rows)
    times = [(part, json.loads(path.read_text())) for part in PARTS if (path := out / f"{part}.time.json").exists()]
    columns = ("seconds", "processor", "processes", "splits", "load_average", "note")
    rows = [[part, *(str(timing.get(name, "–")) for name in columns)] for part, timing in times]
    lines += [
        "## Time",
        "",
        "Wall seconds of a whole evaluation, reading and advice included, and the processor's seconds of this process "
        "and its workers: half of the latter is about what two idle cores take. The machine was shared (see its load).",
        "",
    ]
    lines += _table(["part", "seconds", "processor", "processes", "splits", "load average", "note"], rows)
    return "\n".join(lines)


def main() -> None:
    """Measure the parts asked for and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--parts", default=",".join(PARTS), help="comma-separated; empty: only make the page")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for part in filter(None, arguments.parts.split(",")):
        measure(part, arguments.data, arguments.out, arguments.splits, arguments.jobs)
    write_text(arguments.out / "published.md", report(arguments.out))


if __name__ == "__main__":
    main()
