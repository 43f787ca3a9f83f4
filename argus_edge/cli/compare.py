"""`argus-edge compare`: better, worse, no difference, or too few runs."""

from __future__ import annotations

import click

from argus_edge.cli.output import emit_json, json_option, say


def _share(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    try:
        share = float(value[:-1]) / 100 if value.endswith("%") else float(value)
    except ValueError:
        share = -1.0
    if not 0 <= share < float("inf"):
        raise click.BadParameter(f"{value!r} is not a share such as 5%")
    return share


@click.command()
@click.argument("more", nargs=-1, metavar="[RUN…]")
@click.option("--baseline", multiple=True, required=True, metavar="RUN", help="Bench report or folder; repeatable.")
@click.option("--candidate", multiple=True, required=True, metavar="RUN", help="Bench report or folder; repeatable.")
@click.option("--varying", multiple=True, metavar="FACT", help="What is meant to differ: firmware, kernel, a label …")
@click.option(
    "--fail-on-worse",
    callback=_share,
    metavar="5%",
    help="Exit 1 if a figure is worse by this much; 8 if that cannot be told.",
)
@click.option("--out", metavar="FILE", help="Write the comparison to FILE.")
@json_option
def compare(
    more: tuple[str, ...],
    baseline: tuple[str, ...],
    candidate: tuple[str, ...],
    varying: tuple[str, ...],
    fail_on_worse: float | None,
    out: str | None,
    json_path: str | None,
) -> int:
    """Compare two sets of bench runs, figure by figure, at the level of runs.

    RUNs that follow --candidate's first one belong to the candidate.
    """
    from argus_edge.artifacts import dump_artifact, write_artifact
    from argus_edge.gate.compare import compare_files
    from argus_edge.report.comparison_table import print_comparison

    result = compare_files(baseline, (*candidate, *more), varying=varying)
    if out:
        write_artifact(result, out)
        say(f"comparison: {out}")
    if json_path:
        emit_json(dump_artifact(result), json_path)
    if json_path != "-":
        print_comparison(result)
    if fail_on_worse is None:
        return 0
    if any(figure.outcome == "worse" and abs(figure.change or 0) >= fail_on_worse for figure in result.figures):
        return 1
    # What crashed, or was not reached, is not the same as what is no worse.
    undecided = not result.figures or result.lost or any(each.outcome == "too few runs" for each in result.figures)
    return 8 if undecided else 0
