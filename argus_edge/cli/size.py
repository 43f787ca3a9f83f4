"""`argus-edge size`: which model, precision and board fit a budget."""

from __future__ import annotations

import click

from argus_edge.cli.output import emit_json, json_option, say


@click.command()
@click.argument("reports", nargs=-1, required=True, metavar="REPORT|BUNDLE…")
@click.option("--budget", required=True, metavar="FILE", help="The budget, YAML; see docs/budgets.md.")
@click.option(
    "--device",
    "devices",
    multiple=True,
    metavar="NAME",
    help="Entry of the inventory or profile to look ahead to; repeatable.",
)
@click.option("--out", metavar="FILE", help="Write the sizing to FILE.")
@json_option
def size(
    reports: tuple[str, ...], budget: str, devices: tuple[str, ...], out: str | None, json_path: str | None
) -> None:
    """List every (model, precision, runtime, threads, device) with how it stands to a budget.

    Those that fit come first, the smallest margin first. A bundle that was not benched is held against the profiles'
    rooflines.
    """
    from argus_edge.artifacts import dump_artifact, write_artifact
    from argus_edge.gate.sizing import size_files

    result = size_files(reports, budget=budget, devices=[name for each in devices for name in each.split(",")])
    if out:
        write_artifact(result, out)
        say(f"sizing: {out}")
    if json_path:
        emit_json(dump_artifact(result), json_path)
    if json_path != "-":
        from argus_edge.report.sizing_table import print_sizing

        print_sizing(result)
