"""`argus-edge judge`: calibrated intervals for a VLM judge's scores."""

from __future__ import annotations

from typing import Any

import click

from argus_edge.cli.numbers import Finite
from argus_edge.cli.output import emit_json, json_option, say

_SCALE = click.option("--scale", metavar="1..K", help="The rating scale; otherwise what the columns say.")
_JUDGE = click.option("--judge", "judges", multiple=True, metavar="NAME", help="The judge of each file, in order.")
_LABELS = click.option(
    "--labels", metavar="COLUMN", help="Column of the human scores [human_score, or human]; NAME finds NAME_score."
)
_FLOOR = click.option(
    "--floor", type=Finite(), metavar="LOGP", help="Log-probability put in place of -inf [ln 1e-5 = -11.5]."
)


@click.group()
def judge() -> None:
    """Say when a VLM judge's score can be trusted, by conformal prediction from its score-token log-probabilities."""


def _tables(
    files: tuple[str, ...],
    scale: str | None,
    labels: str | None,
    judges: tuple[str, ...],
    floor: float | None,
) -> list[Any]:
    """Read the tables, one a judge."""
    from argus_edge.errors import UsageError
    from argus_edge.judge.scale import Scale
    from argus_edge.judge.table import FLOOR, read_table

    if judges and len(judges) != len(files):
        raise UsageError(
            f"{len(judges)} --judge for {len(files)} file(s).", next_step="name one judge a file, in order"
        )
    if floor is not None and not -1e6 < floor < 0:
        raise UsageError("--floor is a log-probability: below 0.")
    wanted = Scale.parse(scale) if scale else None
    names = judges or (None,) * len(files)
    return [
        read_table(path, scale=wanted, labels=labels, judge=name, floor=FLOOR if floor is None else floor)
        for path, name in zip(files, names, strict=True)
    ]


def _alpha(value: float) -> float:
    from argus_edge.errors import UsageError

    if not 0 < value < 1:
        raise UsageError(f"--alpha {value:g}: the share of rows that may be missed lies between 0 and 1.")
    return value


def _demands(max_width: float | None, min_correlation: float, span: int) -> Any:
    from argus_edge.judge.tasks import Demands

    return Demands(span / 2 if max_width is None else max_width, min_correlation)


def _demand_options(function: Any) -> Any:
    for option in (
        click.option(
            "--min-correlation",
            type=Finite(),
            default=0.3,
            show_default=True,
            help="Lowest rank correlation to rank by.",
        ),
        click.option(
            "--max-width",
            type=Finite(),
            metavar="W",
            help="Widest mean interval to score by, and the width that labels are counted for [half the scale].",
        ),
    ):
        function = option(function)
    return function


def _warn(warnings: list[str]) -> None:
    for warning in warnings:
        say(f"warning: {warning}")


@judge.command()
@click.option(
    "--judge", "model", required=True, metavar="MODEL", help="Local folder or id; with --server its name there."
)
@click.option(
    "--items", required=True, metavar="ITEMS.jsonl", help="answer, question, image, id, task, human …, one a line."
)
@click.option("--out", required=True, metavar="SCORES.csv", help="The table, for `judge fit`.")
@click.option("--server", metavar="URL", help="An OpenAI-compatible chat API that returns log-probabilities.")
@click.option("--scale", default="1..5", show_default=True, metavar="1..K", help="The rating scale, up to 1..9.")
@click.option(
    "--prompt", metavar="FILE", help="Template with {question}, {answer}, {levels}; it must ask for `Score: X`."
)
@click.option("--compute", default="cpu", show_default=True, metavar="cpu|cuda:0", help="Where a local judge runs.")
@click.option(
    "--max-new-tokens",
    type=click.IntRange(1, 16384),
    default=512,
    show_default=True,
    help="Longest answer of the judge.",
)
@click.option(
    "--timeout",
    type=Finite(0.1, 86400),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="How long a server may take for one answer.",
)
@click.option("--limit", type=click.IntRange(1), help="Ask only about the first N items.")
@click.option("--responses", metavar="FILE", help="Also write the judge's answers, JSON Lines.")
@json_option
def run(
    model: str,
    items: str,
    out: str,
    server: str | None,
    scale: str,
    prompt: str | None,
    compute: str,
    max_new_tokens: int,
    timeout: float,
    limit: int | None,
    responses: str | None,
    json_path: str | None,
) -> None:
    """Ask a judge about every item and keep the log-probabilities of its score."""
    import json
    from pathlib import Path

    from argus_edge.artifacts import read_file, write_text
    from argus_edge.errors import InterruptedRunError, UsageError
    from argus_edge.judge.asking import BACKENDS
    from argus_edge.judge.asking.items import DEFAULT_PROMPT, read_items
    from argus_edge.judge.asking.run import ask_all, finish, responses_text, run_summary, table_text
    from argus_edge.judge.scale import Scale

    wanted = Scale.parse(scale)
    if wanted.levels > 9:
        raise UsageError(
            "A judge is asked for one digit: --scale 1..K with K up to 9.",
            next_step="`judge fit` takes any scale from other sources",
        )
    template = read_file(prompt, limit=1 << 20).decode("utf-8", errors="replace") if prompt else DEFAULT_PROMPT
    if "{answer}" not in template:
        raise UsageError("The prompt has no {answer}.", next_step="put {answer} where the judged answer belongs")
    asked = read_items(items)[:limit]
    if server:
        judge_backend = BACKENDS["server"](model, server, max_new_tokens=max_new_tokens, timeout=timeout, say=say)
    else:
        judge_backend = BACKENDS["local"](model, wanted.levels, compute=compute, max_new_tokens=max_new_tokens)
    say(f"asking {judge_backend.name} about {len(asked)} item(s)")
    try:
        rows = ask_all(judge_backend, asked, template, wanted, Path(out), say)
    except KeyboardInterrupt as error:
        raise InterruptedRunError(
            "Interrupted; the answers so far are kept.",
            where=f"{out}.journal.jsonl",
            next_step="give the same command again: it goes on where it was",
        ) from error
    if responses:
        write_text(responses, responses_text(asked, rows))
    finish(Path(out), table_text(judge_backend.name, asked, rows, wanted))
    summary = run_summary(judge_backend.name, rows)
    if json_path:
        emit_json(json.dumps(summary, indent=1), json_path)
    say(summary["sentence"])
    say(f"wrote {out}")


@judge.command()
@click.argument("files", nargs=-1, required=True, metavar="SCORES.csv...")
@_LABELS
@click.option("--alpha", type=Finite(), default=0.1, show_default=True, help="Share of rows that may be missed.")
@click.option("--by", metavar="COLUMN|difficulty", help="Guarantee the coverage within each of these groups.")
@click.option("--method", default="integer", show_default=True, help="A conformal method; see `judge evaluate`.")
@click.option("--out", required=True, metavar="FILE", help="The calibration, for `judge apply` and `score`.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the split into training and calibration.")
@_demand_options
@_SCALE
@_JUDGE
@_FLOOR
@json_option
def fit(
    files: tuple[str, ...],
    labels: str | None,
    alpha: float,
    by: str | None,
    method: str,
    out: str,
    seed: int,
    max_width: float | None,
    min_correlation: float,
    scale: str | None,
    judges: tuple[str, ...],
    floor: float | None,
    json_path: str | None,
) -> None:
    """Calibrate on labelled SCORES.csv; several files are several judges' scores of the same items, used together."""
    from argus_edge.artifacts import dump_artifact, write_artifact
    from argus_edge.errors import UsageError
    from argus_edge.judge.calibration import expected_fit_seconds, fit_calibration
    from argus_edge.judge.evaluation import method_names
    from argus_edge.judge.fitting import require_packages
    from argus_edge.judge.table import join_tables
    from argus_edge.judge.text import calibration_text

    _alpha(alpha)
    names = method_names(method)
    if len(names) > 1:
        raise UsageError("A calibration is of one method.", next_step=f"--method {names[0]}")
    (name,) = names
    require_packages([name])
    table = join_tables(_tables(files, scale, labels, judges, floor))
    seconds = expected_fit_seconds(name, len(table))
    if seconds > 5:
        say(f"fitting {name} to {len(table)} rows: about {seconds:.0f} s")
    calibration = fit_calibration(
        table,
        method=name,
        alpha=alpha,
        by=None if by == "none" else by,
        seed=seed,
        demands=_demands(max_width, min_correlation, table.scale.span),
        paths=list(files),
    )
    _warn(calibration.warnings)
    write_artifact(calibration, out)
    if json_path:
        emit_json(dump_artifact(calibration), json_path)
    if json_path != "-":
        click.echo(calibration_text(calibration))
    say(f"wrote {out}")


@judge.command()
@click.argument("calibration")
@click.argument("files", nargs=-1, required=True, metavar="NEW-SCORES.csv...")
@click.option("--out", required=True, metavar="FILE|-", help="CSV: the table with an interval for each row.")
@click.option(
    "--judge", "judges", multiple=True, metavar="NAME", help="The judge of each file that does not name its own."
)
@json_option
def apply(calibration: str, files: tuple[str, ...], out: str, judges: tuple[str, ...], json_path: str | None) -> None:
    """Give each row of NEW-SCORES.csv its interval, by the CALIBRATION that `judge fit` wrote."""
    import io
    import json

    from argus_edge.artifacts import read_artifact, write_text
    from argus_edge.errors import UsageError
    from argus_edge.judge.calibration import applied_summary, apply_calibration
    from argus_edge.judge.output import write_intervals
    from argus_edge.judge.table import join_tables, read_table
    from argus_edge.schema.judge import JudgeCalibration

    if out == "-" and json_path == "-":
        raise UsageError("--out - and --json - both write to stdout.")
    fitted = read_artifact(calibration, JudgeCalibration)
    if judges and len(judges) != len(files):
        raise UsageError(f"{len(judges)} --judge for {len(files)} file(s).")
    # A file that does not name its judge is taken to be of the calibration's, file by file.
    names = judges or (tuple(fitted.judges) if len(files) == len(fitted.judges) else (None,) * len(files))
    tables = [
        read_table(path, judge=name, floor=fitted.floor, lenient_labels=True, default_judge=not judges)
        for path, name in zip(files, names, strict=True)
    ]
    applied = apply_calibration(fitted, join_tables(tables), where=calibration)
    _warn(applied.warnings)
    buffer = io.StringIO()
    write_intervals(applied, buffer)
    if out == "-":
        click.echo(buffer.getvalue(), nl=False)
    else:
        write_text(out, buffer.getvalue())
    summary = applied_summary(applied, fitted)
    if json_path:
        emit_json(json.dumps(summary, indent=1), json_path)
    say(summary["sentence"])


@judge.command()
@click.argument("files", nargs=-1, required=True, metavar="SCORES.csv...")
@click.option("--methods", default="integer", show_default=True, help="all, or names with commas between.")
@click.option("--splits", type=click.IntRange(1, 1000), default=10, show_default=True, help="Random halves.")
@click.option("--alpha", type=Finite(), default=0.1, show_default=True, help="Share of rows that may be missed.")
@click.option(
    "--by",
    default="auto",
    show_default=True,
    metavar="COLUMN|difficulty|none|auto",
    help="Groups; auto: the task for methods whose model takes it in, none for the others.",
)
@click.option("--html", metavar="FILE", help="The reliability map, self-contained.")
@click.option("--jobs", type=click.IntRange(1, 256), help="Processes [one a core].")
@_LABELS
@_demand_options
@_SCALE
@_JUDGE
@_FLOOR
@json_option
def evaluate(
    files: tuple[str, ...],
    methods: str,
    splits: int,
    alpha: float,
    by: str,
    html: str | None,
    jobs: int | None,
    labels: str | None,
    max_width: float | None,
    min_correlation: float,
    scale: str | None,
    judges: tuple[str, ...],
    floor: float | None,
    json_path: str | None,
) -> None:
    """Measure coverage, width and advice on labelled SCORES.csv, one file a judge.

    Methods: integer (default), integer-cross, naive, cqr, cqr-asymmetric, chr, lvd, boosted-cqr, boosted-lcp, r2ccp,
    ordinal-aps.
    """
    import os

    from argus_edge.artifacts import dump_artifact, write_text
    from argus_edge.judge.evaluation import Plan, evaluate_judges, expected_seconds, method_names
    from argus_edge.judge.fitting import require_packages
    from argus_edge.judge.text import evaluation_text

    require_packages(method_names(methods))
    tables = _tables(files, scale, labels, judges, floor)
    plan = Plan(
        methods=method_names(methods),
        splits=splits,
        alpha=_alpha(alpha),
        by=None if by == "none" else by,
        demands=_demands(max_width, min_correlation, tables[0].scale.span),
        jobs=jobs or len(os.sched_getaffinity(0)),
    )
    if html:
        from argus_edge.judge.reliability_map import require_plotly

        require_plotly()
    for table in tables:
        _warn([str(problem) for problem in table.problems])
    seconds = expected_seconds(plan, max(len(table) for table in tables), len(tables))
    say(
        f"{len(plan.methods)} method(s), {splits} splits: about {max(1, round(seconds))} s with {plan.jobs} process(es)"
    )
    evaluation = evaluate_judges(tables, plan, say)
    if json_path:
        emit_json(dump_artifact(evaluation), json_path)
    if json_path != "-":
        click.echo(evaluation_text(evaluation))
    if html:
        from argus_edge.judge.reliability_map import render_map

        write_text(html, render_map(evaluation))
        say(f"wrote {html}")
