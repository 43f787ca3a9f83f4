"""The page as one self-contained HTML file that opens offline: styles, script and plotting library inside."""

from __future__ import annotations

from datetime import datetime
from importlib import resources
from itertools import groupby

from argus_edge._version import __version__
from argus_edge.errors import MissingDependencyError
from argus_edge.report.gathered import Gathered
from argus_edge.report.page import Page, sources
from argus_edge.report.plots import Plot, build_plots

# Nothing is fetched, whatever a report's text contains.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:"
# What a person decides by comes first; the rest is below.
FIRST_SCREEN = ("budget", "boards", "change")


def render_html(page: Page, gathered: Gathered, *, created: datetime) -> str:
    """Return the page.

    Parameters
    ----------
    page
        Words and tables.
    gathered
        Artefacts, for the plots and the list of sources.
    created
        Shown at the foot.

    Raises
    ------
    MissingDependencyError
        plotly or Jinja2 is not installed (the ``report`` extra).
    """
    try:
        import jinja2
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise MissingDependencyError(error.name or "plotly", "report", needed_for="The HTML report") from error
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    plots = build_plots(gathered)
    groups: list[tuple[str, list[Plot]]] = [
        (name, list(own)) for name, own in groupby(plots, key=lambda plot: plot.group)
    ]
    return environment.from_string(_data("page.html.j2")).render(
        page=page,
        first=[table for table in page.tables if table.name in FIRST_SCREEN],
        rest=[table for table in page.tables if table.name not in FIRST_SCREEN],
        groups=groups,
        sources=sources(gathered),
        created=created.strftime("%Y-%m-%d %H:%M UTC"),
        version=__version__,
        policy=POLICY,
        style=_data("page.css"),
        script=_data("page.js"),
        plotly=get_plotlyjs() if plots else "",
    )


def _data(name: str) -> str:
    return (resources.files("argus_edge.report") / "templates" / name).read_text(encoding="utf-8")
