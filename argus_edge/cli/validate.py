"""`argus-edge validate`: hold reports against a budget; the exit code is the gate."""

from __future__ import annotations

import click

from argus_edge.cli.output import emit_json, json_option, say


@click.command()
@click.argument("reports", nargs=-1, required=True, metavar="REPORT…")
@click.option("--budget", required=True, metavar="FILE", help="The budget, YAML; see docs/budgets.md.")
@click.option("--junit", metavar="FILE", help="Write the lines as JUnit XML, for CI.")
@click.option("--strict", is_flag=True, help="A run that is not valid fails the gate instead of leaving it undecided.")
@click.option("--out", metavar="FILE", help="Write the verdict to FILE.")
@json_option
def validate(
    reports: tuple[str, ...], budget: str, junit: str | None, strict: bool, out: str | None, json_path: str | None
) -> int:
    """Hold reports (files or folders) against a budget.

    Exit code 0: every line passes; 1: a line fails; 8: cannot decide yet, measure more.
    """
    from argus_edge.artifacts import dump_artifact, write_artifact, write_text
    from argus_edge.gate.validate import validate_files

    verdict = validate_files(reports, budget=budget, strict=strict)
    if out:
        write_artifact(verdict, out)
        say(f"verdict: {out}")
    if junit:
        from argus_edge.report.junit import junit_xml

        write_text(junit, junit_xml(verdict))
        say(f"JUnit: {junit}")
    if json_path:
        emit_json(dump_artifact(verdict), json_path)
    if json_path != "-":
        from argus_edge.report.verdict_table import print_verdict

        print_verdict(verdict)
    return {"pass": 0, "fail": 1, "unknown": 8}[verdict.outcome]
