"""The page's plots as plotly figures in JSON: Pareto, latency distributions, series over time, robustness."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from argus_edge.bench.samples import decode
from argus_edge.errors import MissingDependencyError
from argus_edge.gate.pareto import front
from argus_edge.report.gathered import Gathered
from argus_edge.report.page import headline
from argus_edge.schema.bench import BenchReport, Measurement
from argus_edge.schema.evaluation import Cell, EvalReport
from argus_edge.text import clean

# A histogram and a curve need no more; the file holds every sample, the page is for looking.
BINS = 60
MAX_POINTS = 600
# Okabe and Ito's colours, told apart by those who see fewer.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
PERCENTILES = ("p50", "p90", "p95", "p99")


@dataclass(frozen=True)
class Plot:
    """A plot of the page.

    Attributes
    ----------
    name
        Identifier in the page.
    title, caption
        For the reader; the caption says where the numbers are from.
    group
        Plots of one group share a place, and a list chooses which is shown.
    label
        In that list.
    figure
        Plotly's JSON.
    """

    name: str
    title: str
    caption: str
    group: str
    label: str
    figure: str


def _plain(text: str) -> str:
    """Return text that plotly shows as it is: it takes tags in names and labels for markup."""
    return html.escape(clean(text), quote=False)


def _figure(traces: Sequence[dict[str, Any]], layout: dict[str, Any]) -> str:
    """Return a checked figure as JSON: plotly's own classes refuse what the library would not draw."""
    try:
        import plotly.graph_objects as go
    except ImportError as error:
        raise MissingDependencyError("plotly", "report", needed_for="The HTML report") from error
    base = {
        "template": "none",
        "margin": {"l": 64, "r": 16, "t": 16, "b": 48},
        # Anchored by its foot: however many rows it takes, it grows away from the points.
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "hovermode": "closest",
        "font": {"family": "system-ui, sans-serif", "size": 13},
    }
    figure = go.Figure(data=list(traces), layout=base | layout)
    # "</" could end the page's script element.
    return str(figure.to_json()).replace("</", "<\\/")


def latency_plots(gathered: Gathered) -> Iterable[Plot]:
    """Yield a histogram of each run's latencies with its percentiles marked."""
    for index, found in enumerate(gathered.benches):
        measured = headline(found.artifact)
        if measured is None or measured.latency is None or measured.latency.count < 2:
            continue
        milliseconds = decode(measured.latency) * 1e3
        counts, edges = np.histogram(milliseconds, bins=min(BINS, max(5, len(milliseconds) // 5)))
        bars = {
            "type": "bar",
            "x": ((edges[:-1] + edges[1:]) / 2).round(6).tolist(),
            "y": counts.tolist(),
            "width": np.diff(edges).round(6).tolist(),
            "marker": {"color": COLOURS[0]},
            "name": "calls",
        }
        lines, notes = [], []
        for step, (colour, name) in enumerate(zip(COLOURS[1:], PERCENTILES, strict=False)):
            estimate = getattr(measured.figures, name) if measured.figures else None
            if estimate is not None and estimate.value is not None:
                x = estimate.value * 1e3
                lines.append(
                    {
                        "type": "line",
                        "x0": x,
                        "x1": x,
                        "yref": "paper",
                        "y0": 0,
                        "y1": 1,
                        "line": {"color": colour, "dash": "dot"},
                    }
                )
                notes.append(
                    {
                        "x": x,
                        "yref": "paper",
                        # Each a step lower: on a phone they are closer to one another than their names are long.
                        "y": 1 - 0.07 * step,
                        "text": name,
                        "showarrow": False,
                        "font": {"color": colour},
                        "xanchor": "left",
                    }
                )
        yield Plot(
            f"latency-{index}",
            "Latency",
            f"{len(milliseconds):,} calls, none left out; the largest is {milliseconds.max():.3g} ms. "
            f"Source: {clean(found.label)}",
            "latency",
            _label(found.artifact),
            _figure(
                [bars],
                {
                    "xaxis": {"title": {"text": "latency, ms"}},
                    "yaxis": {"title": {"text": "calls"}},
                    "shapes": lines,
                    "annotations": notes,
                    "showlegend": False,
                },
            ),
        )


def _label(report: BenchReport) -> str:
    return clean(f"{report.model.name} on {report.device.name}, {report.setup.scenario.name} ({report.run})", limit=160)


UNITS = {"c": "temperature, °C", "khz": "clock, GHz", "w": "power, W"}
SCALE = {"khz": 1e-6}


def series_plots(gathered: Gathered) -> Iterable[Plot]:
    """Yield temperature, clock and power over time for each run that has them, with throttling marked."""
    for index, found in enumerate(gathered.benches):
        measured = headline(found.artifact)
        if measured is None or len(measured.series) < 2:
            continue
        names = list(dict.fromkeys(name for point in measured.series for name in point.values))
        shown = [name for name in names if name.rpartition("_")[2] in UNITS]
        axes = [unit for unit in UNITS if any(name.endswith(f"_{unit}") for name in shown)]
        if not shown:
            continue
        step = max(1, len(measured.series) // MAX_POINTS)
        points = measured.series[::step]
        traces = []
        for order, name in enumerate(shown):
            unit = name.rpartition("_")[2]
            axis = axes.index(unit)
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": _plain(name.rpartition("_")[0].replace("_", " ")) or UNITS[unit],
                    "x": [round(point.t, 3) for point in points],
                    "y": [
                        None if name not in point.values else point.values[name] * SCALE.get(unit, 1.0)
                        for point in points
                    ],
                    "yaxis": "y" if axis == 0 else f"y{axis + 1}",
                    "line": {"color": COLOURS[order % len(COLOURS)]},
                }
            )
        layout: dict[str, Any] = {
            "xaxis": {"title": {"text": "seconds after the window's start"}},
            "shapes": _marks(measured),
            "height": 80 + 180 * len(axes),
        }
        height = 1.0 / len(axes)
        for order, unit in enumerate(axes):
            layout["yaxis" if order == 0 else f"yaxis{order + 1}"] = {
                "title": {"text": UNITS[unit]},
                "domain": [order * height + 0.02, (order + 1) * height - 0.04],
            }
        yield Plot(
            f"series-{index}",
            "Temperature, clock and power",
            f"Shaded: where the run stopped being valid. Source: {clean(found.label)}",
            "series",
            _label(found.artifact),
            _figure(traces, layout),
        )


def _marks(measured: Measurement) -> list[dict[str, Any]]:
    """Return a shaded span from where each cause of invalidity began to the window's end."""
    end = measured.series[-1].t
    return [
        {
            "type": "rect",
            "x0": cause.from_s,
            "x1": max(end, cause.from_s),
            "yref": "paper",
            "y0": 0,
            "y1": 1,
            "fillcolor": COLOURS[1],
            "opacity": 0.15,
            "line": {"width": 0},
            "label": {"text": cause.code},
        }
        for cause in measured.validity.causes
        if cause.from_s is not None
    ]


def pareto_plot(gathered: Gathered) -> Iterable[Plot]:
    """Yield ARGUS (or capability) against latency, a device a colour; what nothing dominates is ringed and joined."""
    if gathered.score is None:
        return
    points = []
    for model in gathered.score.artifact.models:
        for device in model.devices:
            y = device.argus.value if device.argus.value is not None else model.scores.capability.value
            if device.efficiency.latency_s is not None and y is not None:
                points.append(
                    (
                        device.efficiency.latency_s * 1e3,
                        y,
                        _plain(model.name),
                        _plain(device.device),
                        device.argus.value is not None,
                    )
                )
    if not points:
        return
    scored = all(point[4] for point in points)
    what = "ARGUS" if scored else "capability"
    on_front = front([(x, -y) for x, y, *_ in points])
    traces: list[dict[str, Any]] = []
    for order, device_name in enumerate(dict.fromkeys(point[3] for point in points)):
        own = [(point, best) for point, best in zip(points, on_front, strict=True) if point[3] == device_name]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers+text",
                "name": device_name,
                "x": [point[0] for point, _ in own],
                "y": [point[1] for point, _ in own],
                "text": [point[2] for point, _ in own],
                "textposition": "top center",
                "cliponaxis": False,
                "marker": {
                    "color": COLOURS[order % len(COLOURS)],
                    "size": 12,
                    "line": {"width": [3 if best else 0 for _, best in own], "color": "#000000"},
                },
            }
        )
    edge = sorted(point[:2] for point, best in zip(points, on_front, strict=True) if best)
    traces.append(
        {
            "type": "scatter",
            "mode": "lines",
            "name": "Pareto front",
            "x": [x for x, _ in edge],
            "y": [y for _, y in edge],
            "line": {"dash": "dot", "color": "#666666", "shape": "hv"},
        }
    )
    # Room for the names beside the first and the last point.
    ends = [math.log10(pick(x for x, *_ in points)) for pick in (min, max)]
    room = max(0.15, 0.2 * (ends[1] - ends[0]))
    layout = {
        "xaxis": {
            "title": {"text": "median latency, ms (logarithmic)"},
            "type": "log",
            "range": [ends[0] - room, ends[1] + room],
        },
        "yaxis": {"title": {"text": what}},
    }
    yield Plot(
        "pareto",
        f"{what} against latency",
        f"Ringed: nothing is both faster and better. Source: {clean(gathered.score.label)}",
        "pareto",
        what,
        _figure(traces, layout),
    )


def robustness_plots(gathered: Gathered) -> Iterable[Plot]:
    """Yield, for each eval report with perturbations, the share of the clean score that is kept under each."""
    for index, found in enumerate(gathered.evals):
        grid = _kept(found.artifact)
        if not grid:
            continue
        names = list(dict.fromkeys(name for name, _ in grid))
        severities = sorted({severity for _, severity in grid})
        heat = {
            "type": "heatmap",
            "x": [f"severity {severity}" for severity in severities],
            "y": names,
            "z": [[grid.get((name, severity)) for severity in severities] for name in names],
            "zmin": 0,
            "zmax": 1,
            "colorscale": "Cividis",
            "texttemplate": "%{z:.2f}",
            "hoverongaps": False,
            "colorbar": {"title": {"text": "kept"}},
        }
        layout = {
            "yaxis": {"autorange": "reversed", "automargin": True},
            "height": 120 + 26 * len(names),
        }
        yield Plot(
            f"robustness-{index}",
            "Robustness by perturbation and severity",
            f"Share of the clean score that is kept, mean over cells. Source: {clean(found.label)}",
            "robustness",
            clean(f"{found.artifact.model.name} ({found.artifact.model.precision})"),
            _figure([heat], layout),
        )


def _kept(report: EvalReport) -> dict[tuple[str, int], float]:
    """Return (perturbation, severity) to the mean over cells of s under it over s clean."""
    shares: dict[tuple[str, int], list[float]] = {}

    def add(cell: Cell) -> None:
        for measured in cell.measurements:
            if not measured.clean and cell.clean.s > 0:
                place = (_plain(f"{measured.perturbation} ({measured.modality})"), measured.severity)
                shares.setdefault(place, []).append(measured.s / cell.clean.s)

    for cell in report.cells:
        add(cell)
    return {place: round(float(np.mean(values)), 4) for place, values in shares.items()}


def history_plot(gathered: Gathered) -> Iterable[Plot]:
    """Yield the medians of recorded runs over time, a line a board and scenario; hollow: not known to be valid."""
    if not gathered.history:
        return
    traces = []
    places = list(dict.fromkeys((moment.device, moment.scenario) for moment in gathered.history))
    for order, (device, scenario) in enumerate(places):
        own = [moment for moment in gathered.history if (moment.device, moment.scenario) == (device, scenario)]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": _plain(f"{device}, {scenario}"),
                "x": [moment.when.isoformat() for moment in own],
                "y": [moment.p50_s * 1e3 for moment in own],
                "text": [_plain(moment.run) for moment in own],
                "line": {"color": COLOURS[order % len(COLOURS)]},
                "marker": {"size": 9, "symbol": ["circle" if moment.valid else "circle-open" for moment in own]},
            }
        )
    layout = {
        "yaxis": {"title": {"text": "median latency, ms"}, "rangemode": "tozero"},
        "xaxis": {"title": {"text": "when"}},
    }
    caption = f"{len(gathered.history)} runs; hollow: not known to be valid. Source: the store (argus-edge runs list)"
    yield Plot("history", "Trend", caption, "history", "median latency over time", _figure(traces, layout))


def build_plots(gathered: Gathered) -> list[Plot]:
    """Return every plot of the page."""
    return [
        *history_plot(gathered),
        *pareto_plot(gathered),
        *latency_plots(gathered),
        *series_plots(gathered),
        *robustness_plots(gathered),
    ]
