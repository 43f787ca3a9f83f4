"""`argus-edge eval`: measure capability and robustness on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from argus_edge.cli.output import emit_json, json_option, say

if TYPE_CHECKING:
    from argus_edge.schema.evaluation import EvalReport, Metric

_TASKS = ("retrieval", "captioning", "reasoning")


def parse_splits(values: tuple[str, ...]) -> dict[str, str]:
    """Return dataset -> split from ``NAME=SPLIT`` options."""
    from argus_edge.errors import UsageError
    from argus_edge.evaluate.datasets import DATASETS

    found = {}
    for value in values:
        name, _, split = value.partition("=")
        if name not in DATASETS or not split:
            raise UsageError(f"--split {value!r} is not NAME=SPLIT.", next_step="for example --split coco=val")
        found[name] = split
    return found


@click.command("eval")
@click.argument("model")
@click.option(
    "--data",
    multiple=True,
    required=True,
    metavar="NAME=PATH,…",
    help="coco, flickr30k, vg, clevr, vcr, mine, all=FOLDER, or sample.",
)
@click.option(
    "--out", type=click.Path(), help="Folder of the report, the records and the cache.  [default: runs/MODEL]"
)
@click.option("--force", is_flag=True, help="Replace another evaluation in OUT; what its cache has is used again.")
@click.option(
    "--perturb",
    "perturb",
    default="none",
    show_default=True,
    metavar="SET",
    help="none, quick, standard, full, or NAME[:1-5],…",
)
@click.option("--tasks", default="", metavar="TASK,…", help=f"Only these: {', '.join(_TASKS)}.")
@click.option(
    "--with", "optional", default="", metavar="NAME,…", help="Optional cells, too: vg (its question answers)."
)
@click.option("--split", "splits", multiple=True, metavar="NAME=SPLIT", help="Another split than the published test.")
@click.option("--limit", type=click.IntRange(min=1), help="Only the first N images of each dataset.")
@click.option("--compute", default="cpu", show_default=True, metavar="DEVICE", help="cpu, cuda or cuda:N.")
@click.option(
    "--dtype",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "float32", "bfloat16", "float16"]),
    help="auto: float32 on a CPU, bfloat16 or float16 on a GPU.",
)
@click.option(
    "--batch-size",
    type=click.IntRange(min=1),
    default=32,
    show_default=True,
    help="Halved by itself where a GPU's memory is too small.",
)
@click.option("--threads", type=click.IntRange(min=1), help="CPU threads of each worker.  [default: all cores]")
@click.option(
    "--pair-images",
    type=click.IntRange(min=2),
    default=100,
    show_default=True,
    help="Gallery of a model that scores pairs: its first N images.",
)
@click.option("--features", type=click.Path(), help="Region features for LXMERT (.npz; docs/eval.md).")
@click.option("--prompts", "prompts_file", type=click.Path(), help="YAML with other prompts.")
@click.option("--idf", type=click.Path(), help="Document frequencies for CIDEr, where the images are too few.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the perturbations.")
@click.option("--revision", help="Of a model on the hub.")
@click.option("--cache", type=click.Path(), help="Share results of pieces of work between runs.  [default: OUT/cache]")
@click.option(
    "--backend",
    default="local",
    show_default=True,
    type=click.Choice(["local", "ray"]),
    help="ray: many GPUs or machines at once.",
)
@click.option("--ray-address", help="An existing cluster.  [default: start one here]")
@click.option("--workers", type=click.IntRange(min=1), help="Ray workers.  [default: as many as there is room for]")
@json_option
def evaluate(
    model: str,
    data: tuple[str, ...],
    out: str | None,
    perturb: str,
    tasks: str,
    optional: str,
    splits: tuple[str, ...],
    limit: int | None,
    compute: str,
    dtype: str,
    batch_size: int,
    threads: int | None,
    pair_images: int,
    features: str | None,
    prompts_file: str | None,
    idf: str | None,
    seed: int,
    revision: str | None,
    force: bool,
    cache: str | None,
    backend: str,
    ray_address: str | None,
    workers: int | None,
    json_path: str | None,
) -> None:
    """Measure capability and robustness of MODEL on the host.

    MODEL is a bundle, a Hugging Face id or folder, or a class of your own as module:Class. Killed at any point, the
    same command goes on where it was.
    """
    import os
    import re
    from pathlib import Path

    from argus_edge.errors import InterruptedRunError, UsageError
    from argus_edge.evaluate.packages import require_packages

    require_packages()
    from argus_edge.artifacts import dump_artifact
    from argus_edge.evaluate.backends import BackendOptions
    from argus_edge.evaluate.conditions import perturbation_lines
    from argus_edge.evaluate.datasets import parse_data_option
    from argus_edge.evaluate.models.resolve import resolve_model
    from argus_edge.evaluate.prompts import load_prompts
    from argus_edge.evaluate.runner import REPORT_NAME, Settings
    from argus_edge.evaluate.runner import evaluate as run

    wanted = tuple(part for part in tasks.split(",") if part)
    for task in wanted:
        if task not in _TASKS:
            raise UsageError(f"Unknown task {task!r}.", next_step=f"choose among {', '.join(_TASKS)}")
    name, lines = perturbation_lines(perturb)
    folder = Path(out) if out else Path("runs") / re.sub(r"[^\w.-]+", "-", model).strip("-.")
    settings = Settings(
        data=parse_data_option(data),
        out=folder,
        splits=parse_splits(splits),
        limit=limit,
        tasks=wanted,
        optional=tuple(part for part in optional.split(",") if part),
        perturbation_set=name,
        perturbations=lines,
        seed=seed,
        batch_size=batch_size,
        pair_images=pair_images,
        idf=Path(idf) if idf else None,
        cache=Path(cache) if cache else None,
        force=force,
        backend=backend,
        options=BackendOptions(workers=workers, address=ray_address),
    )
    prompts = load_prompts(Path(prompts_file) if prompts_file else None)
    resolved = resolve_model(
        model,
        compute=compute,
        dtype=dtype,
        threads=threads or os.cpu_count() or 1,
        revision=revision,
        features=Path(features) if features else None,
        here=backend == "local",
    )
    try:
        report = run(resolved, settings, prompts, say)
    except KeyboardInterrupt as error:
        raise InterruptedRunError(
            "Interrupted; what was done is kept.",
            where=str(folder),
            next_step="give the same command again: it goes on where it was",
        ) from error
    _record(report)
    if json_path:
        emit_json(dump_artifact(report), json_path)
    if json_path != "-":
        print_evaluation(report)
    say(f"report: {folder / REPORT_NAME}")


def _record(report: EvalReport) -> None:
    """Keep the report in the record of runs; the file is there in any case."""
    from argus_edge.errors import HostError
    from argus_edge.store.records import Store

    try:
        Store().add_evaluation(report)
    except HostError as error:
        say(f"note: the evaluation is not in the record of runs: {error}")


def print_evaluation(report: EvalReport) -> None:
    """Write the figures as a table, and what they come to."""
    from rich.table import Table

    from argus_edge.evaluate.summary import summarise
    from argus_edge.report.console import stdout_console

    console = stdout_console()
    table = Table(title=f"{report.model.name} ({report.model.precision}, {report.compute})", title_justify="left")
    for heading in ("dataset", "task", "metric", "clean", "95 % interval", "mean perturbed"):
        table.add_column(
            heading, justify="right" if heading in ("clean", "95 % interval", "mean perturbed") else "left"
        )
    for cell in report.cells:
        perturbed = [measurement for measurement in cell.measurements if not measurement.clean]
        chance = f"chance {cell.chance:.4f}"
        mean = sum(each.headline for each in perturbed) / len(perturbed) if perturbed else None
        table.add_row(
            cell.dataset,
            cell.task,
            f"[bold]{cell.headline}[/bold]",
            _figure(cell.clean.headline),
            chance,
            _or_dash(mean),
        )
        for metric_name, metric in cell.clean.metrics.items():
            values = [each.metrics[metric_name].value for each in perturbed]
            table.add_row(
                "",
                "",
                metric_name,
                _figure(metric.value),
                _interval(metric),
                _or_dash(sum(values) / len(values) if values else None),
            )
        table.add_section()
    console.print(table)
    summary = summarise(report)
    parts = {"P": summary.capability, "CDC": summary.consistency, "RR": summary.robustness}
    names = {"P": "capability", "CDC": "consistency", "RR": "robustness"}
    for key, value in parts.items():
        reason = f"none: {summary.reasons.get(key, '')}"
        console.print(f"{names[key]} ({key}): {reason if value is None else _figure(value)}")
    for skipped in report.skipped:
        console.print(f"left out: {skipped.what}: {skipped.reason}")
    for dataset in report.datasets:
        if dataset.broken:
            console.print(
                f"{dataset.name}: {len(dataset.broken)} broken image(s) left out, first {dataset.broken[0].image_id}"
            )


def _interval(metric: Metric) -> str:
    return f"{metric.interval.low:.4f} – {metric.interval.high:.4f}" if metric.interval else "–"


def _or_dash(value: float | None) -> str:
    return "–" if value is None else _figure(value)


def _figure(value: float) -> str:
    """Four places; what would show as 0 and is not shows its size: a robustness is a ratio of two of these."""
    return f"{value:.4f}" if value == 0 or abs(value) >= 5e-5 else f"{value:.1e}"
