"""`argus-edge report`: one self-contained page from many reports."""

from __future__ import annotations

import click

from argus_edge.cli.output import say


@click.command()
@click.argument("reports", nargs=-1, metavar="[REPORT…]")
@click.option("--html", metavar="FILE", help="Write one HTML file that opens offline.")
@click.option("--markdown", metavar="FILE|-", help="Write Markdown, for a pull request.")
@click.option("--csv", "csv_path", metavar="FILE|-", help="Write every table as CSV.")
@click.option("--budget", metavar="FILE", help="Hold the reports against this budget.")
@click.option("--baseline", multiple=True, metavar="RUN", help="Bench reports of the last release; repeatable.")
@click.option("--history", metavar="MODEL", help="Draw the trend of this model's recorded runs.")
def report(
    reports: tuple[str, ...],
    html: str | None,
    markdown: str | None,
    csv_path: str | None,
    budget: str | None,
    baseline: tuple[str, ...],
    history: str | None,
) -> None:
    """Make a page from bench, eval, score, verdict, comparison and sizing reports (files or folders)."""
    from datetime import datetime, timezone

    from argus_edge.artifacts import write_text
    from argus_edge.errors import UsageError
    from argus_edge.report.gathered import gather, read_history
    from argus_edge.report.page import build_page

    if not (html or markdown or csv_path):
        raise UsageError("Nothing to write.", next_step="give --html FILE, --markdown FILE or --csv FILE")
    if not (reports or history):
        raise UsageError("Nothing to report.", next_step="give report files or folders, or --history MODEL")
    moments = read_history(history) if history else []
    gathered = gather(reports, budget=budget, baseline=baseline, history=moments)
    page = build_page(gathered)
    if html:
        from argus_edge.report.html import render_html

        write_text(html, render_html(page, gathered, created=datetime.now(timezone.utc)))
        say(f"report: {html}")
    for path, render in ((markdown, "markdown"), (csv_path, "csv")):
        if path is None:
            continue
        if render == "markdown":
            from argus_edge.report.markdown import render_markdown

            text = render_markdown(page)
        else:
            from argus_edge.report.spreadsheet import render_csv

            text = render_csv(page)
        if path == "-":
            click.echo(text, nl=False)
        else:
            write_text(path, text)
            say(f"{render}: {path}")
