"""`argus-edge score`: merge bench and eval reports into the ARGUS score."""

from __future__ import annotations

import click

from argus_edge.cli.numbers import Finite
from argus_edge.cli.output import emit_json, json_option, say


@click.command()
@click.argument("reports", nargs=-1, required=True, metavar="REPORT…")
@click.option(
    "--efficiency-weight", type=Finite(), metavar="X", help="Weight of efficiency; the rest is shared equally."
)
@click.option("--score-weights", metavar="FILE", help="YAML with capability, consistency, robustness, efficiency.")
@click.option(
    "--budget", metavar="FILE", help="Measure efficiency against this budget's limits, not the cohort's best."
)
@click.option(
    "--cdc", type=click.Choice(["by-task", "all"]), default="by-task", show_default=True, help="Reading of consistency."
)
@click.option("--replicates", type=click.IntRange(1, 100_000), default=1000, show_default=True, help="Bootstrap.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the resampling.")
@click.option("--out", metavar="FILE", help="Write the score report to FILE.")
@json_option
def score(
    reports: tuple[str, ...],
    efficiency_weight: float | None,
    score_weights: str | None,
    budget: str | None,
    cdc: str,
    replicates: int,
    seed: int,
    out: str | None,
    json_path: str | None,
) -> None:
    """Merge bench and eval reports (files or folders) into the ARGUS score and its parts.

    A calibration of `judge fit` among them makes its judged means the metric of their cells.
    """
    from argus_edge.artifacts import dump_artifact, write_artifact
    from argus_edge.score.files import score_files

    result = score_files(
        reports,
        efficiency_weight=efficiency_weight,
        weights_file=score_weights,
        budget=budget,
        reading="all" if cdc == "all" else "by-task",
        replicates=replicates,
        seed=seed,
    )
    if out:
        write_artifact(result, out)
        say(f"score report: {out}")
    if json_path:
        emit_json(dump_artifact(result), json_path)
    if json_path != "-":
        from argus_edge.report.score_table import print_score

        print_score(result)
