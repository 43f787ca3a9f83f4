"""The reliability map: one self-contained HTML page of tasks by interval width and correlation."""

from __future__ import annotations

from html import escape
from typing import Any

from argus_edge.errors import MissingDependencyError
from argus_edge.schema.judge import JudgeEvaluation, JudgeReport, TaskReport

__all__ = ["place_labels", "render_map", "require_plotly"]

_COLORS = {"score": "#1a7f5a", "rank only": "#b7791f", "do not use": "#b03a3a"}
_WORDS = {"score": "score absolutely", "rank only": "rank only", "do not use": "do not use"}
_HEIGHT, _WIDTH = 520, 1000
_COVERAGE_NOTE = (
    "<p class=quiet>The promised coverage holds on average over the rows (of a group), not for each human score.</p>"
)
_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; color: #1d2733; background: #fff;
  max-width: 1040px; margin: 0 auto; padding: 24px 16px 64px; }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 4px; } h2 { font-size: 19px; margin: 40px 0 4px; }
h3 { font-size: 15px; margin: 24px 0 6px; } p { margin: 6px 0; } .quiet { color: #5b6774; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: 13.5px; }
th, td { text-align: right; padding: 5px 8px; border-bottom: 1px solid #e3e8ee; white-space: nowrap;
  font-variant-numeric: tabular-nums; vertical-align: top; }
th { color: #5b6774; font-weight: 600; } th:first-child, td:first-child, td.text, th.text { text-align: left; }
td.text { white-space: normal; } tr.figures td { border-bottom: 0; padding-bottom: 0; }
.tasks th:nth-child(2), .tasks tr.figures td:nth-child(2) { text-align: left; }
.tag { display: inline-block; border-radius: 10px; padding: 0 9px;
  color: #fff; font-size: 12.5px; } ul { margin: 6px 0; padding-left: 20px; }
"""


def require_plotly() -> Any:
    """Import plotly's graph objects, or say how to get them."""
    try:
        import plotly.graph_objects as graph
    except ImportError as error:
        raise MissingDependencyError("plotly", "judge", needed_for="the reliability map") from error
    return graph


def place_labels(points: list[tuple[float, float]], texts: list[str], size: tuple[float, float]) -> list[str]:
    """Choose for each point the side on which its label covers least.

    Parameters
    ----------
    points
        In units of the axes, 0 to 1.
    size
        Of the plot in pixels.

    Returns
    -------
    list of str
        Plotly's ``textposition`` of each.
    """
    sides = {
        "top center": (-0.5, 20),
        "bottom center": (-0.5, -20),
        "middle right": (0.0, 0),
        "middle left": (-1.0, 0),
        "top right": (0.0, 16),
        "bottom right": (0.0, -16),
        "top left": (-1.0, 16),
        "bottom left": (-1.0, -16),
    }
    dots = [(x * size[0], y * size[1]) for x, y in points]
    taken = [(x - 8, y - 8, x + 8, y + 8) for x, y in dots]
    chosen: list[str] = []
    for (x, y), text in zip(dots, texts, strict=True):
        width = 7.2 * len(text) + 4
        best, best_cost = "top center", float("inf")
        for side, (shift, rise) in sides.items():
            pad = 0.0 if shift == -0.5 else 10.0 if shift == 0 else -10.0
            left = x + shift * width + pad
            box = (left, y + rise - 9, left + width, y + rise + 9)
            cost = sum(
                max(0.0, min(box[2], b[2]) - max(box[0], b[0])) * max(0.0, min(box[3], b[3]) - max(box[1], b[1]))
                for b in taken
            )
            outside = max(0.0, -box[0]) + max(0.0, box[2] - size[0]) + max(0.0, -box[1]) + max(0.0, box[3] - size[1])
            if cost + 20 * outside < best_cost:
                best, best_cost, best_box = side, cost + 20 * outside, box
        chosen.append(best)
        taken.append(best_box)
    return chosen


def _figure(report: JudgeReport, span: int, top: float) -> Any:
    graph = require_plotly()
    tasks = [task for task in report.tasks if task.pearson is not None]
    figure = graph.Figure()
    top_shown = min(1.0, top)
    # Above this line a judge ranks better than it scores.
    figure.add_scatter(
        x=[0, span, span, span * (1 - top_shown)],
        y=[1, 0, top_shown, top_shown],
        fill="toself",
        mode="none",
        fillcolor="rgba(183, 121, 31, 0.09)",
        hoverinfo="skip",
        showlegend=False,
    )
    figure.add_scatter(
        x=[span * (1 - top_shown), span],
        y=[top_shown, 0],
        mode="lines",
        line={"color": "#b7791f", "width": 1, "dash": "dash"},
        hoverinfo="skip",
        showlegend=False,
    )
    low = max(0.0, min([task.width for task in tasks], default=0.0) - 0.12 * span)
    high = span * 1.01
    points = [((task.width - low) / (high - low), abs(task.pearson or 0) / top_shown) for task in tasks]
    sides = place_labels(points, [task.task for task in tasks], (_WIDTH - 90, _HEIGHT - 120))
    for advice, color in _COLORS.items():
        for decoupled in (False, True):
            mine = [
                (task, side)
                for task, side in zip(tasks, sides, strict=True)
                if task.advice == advice and task.decoupled == decoupled
            ]
            if not mine:
                continue
            figure.add_scatter(
                x=[task.width for task, _ in mine],
                y=[abs(task.pearson or 0) for task, _ in mine],
                mode="markers+text",
                text=[escape(task.task[:30]) for task, _ in mine],
                textposition=[side for _, side in mine],
                textfont={"size": 13, "color": "#1d2733"},
                marker={
                    "size": 14 if decoupled else 11,
                    "color": color,
                    "symbol": "diamond" if decoupled else "circle",
                    "line": {"color": "#1d2733" if decoupled else "#ffffff", "width": 2 if decoupled else 1},
                },
                name=_WORDS[advice] + (", decoupled" if decoupled else ""),
                customdata=[[task.rows, task.coverage, escape(task.reason), _gap(task)] for task, _ in mine],
                hovertemplate=(
                    "<b>%{text}</b>, %{customdata[0]} rows<br>width %{x:.2f}, |Pearson| %{y:.2f}, coverage "
                    "%{customdata[1]:.3f}<br>gap %{customdata[3]}<br>%{customdata[2]}<extra></extra>"
                ),
            )
    figure.update_layout(
        template="simple_white",
        height=_HEIGHT,
        margin={"l": 60, "r": 20, "t": 20, "b": 60},
        font={"family": 'system-ui, "Segoe UI", Helvetica, Arial, sans-serif', "size": 14, "color": "#1d2733"},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        xaxis={
            "title": f"mean raw width of the intervals ({report.gap_method}); narrower is better",
            "range": [low, high],
            "gridcolor": "#eef1f5",
            "showgrid": True,
        },
        yaxis={
            "title": "|Pearson| with the human scores",
            "range": [0, top_shown],
            "gridcolor": "#eef1f5",
            "showgrid": True,
        },
    )
    figure.add_annotation(
        x=0.99, y=0.97, xref="paper", yref="paper", xanchor="right", yanchor="top", showarrow=False,
        text="ranks better than it scores", font={"color": "#8a5a12", "size": 13},
    )  # fmt: skip
    figure.add_annotation(
        x=0.01, y=0.03, xref="paper", yref="paper", xanchor="left", yanchor="bottom", showarrow=False,
        text="scores better than it ranks", font={"color": "#5b6774", "size": 13},
    )  # fmt: skip
    return figure


def _gap(task: TaskReport) -> str:
    if task.gap is None or task.gap_interval is None:
        return "-"
    return f"{task.gap:+.2f} ({task.gap_interval[0]:+.2f} to {task.gap_interval[1]:+.2f})"


def _number(value: float | None, digits: int = 2, sign: str = "") -> str:
    return "–" if value is None else f"{value:{sign}.{digits}f}"


def _table(head: list[str], rows: list[list[str]], text_columns: tuple[int, ...] = ()) -> str:
    def cell(tag: str, index: int, value: str) -> str:
        return f'<{tag} class="text">{value}</{tag}>' if index in text_columns else f"<{tag}>{value}</{tag}>"

    lines = ["<tr>" + "".join(cell("th", i, escape(name)) for i, name in enumerate(head)) + "</tr>"]
    lines += ["<tr>" + "".join(cell("td", i, value) for i, value in enumerate(row)) + "</tr>" for row in rows]
    return '<div class="wide"><table>' + "\n".join(lines) + "</table></div>"


def _task_table(report: JudgeReport) -> str:
    """Two rows a task: the figures, then why, and how many labels a narrower interval would take."""
    head = ["task", "advice", "rows", "width", "coverage", "Pearson", "Spearman", "gap (95 %)"]
    lines = ["<tr>" + "".join(f"<th>{escape(name)}</th>" for name in head) + "</tr>"]
    for task in sorted(report.tasks, key=lambda item: item.width_adjusted):
        tag = f'<span class="tag" style="background:{_COLORS[task.advice]}">{_WORDS[task.advice]}</span>'
        cells = [
            f"<b>{escape(task.task[:60])}</b>" + (" ◆" if task.decoupled else ""),
            tag,
            str(task.rows),
            f"{task.width_adjusted:.2f}",
            f"{task.coverage:.3f}",
            _number(task.pearson),
            _number(task.spearman),
            _gap(task),
        ]
        why = escape(task.reason) + "."
        if task.labels_note:
            why += f" <span class=quiet>Labels: {escape(task.labels_note)}.</span>"
        lines.append('<tr class="figures">' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        lines.append(f'<tr><td class="text" colspan="{len(head)}">{why}</td></tr>')
    return '<div class="wide"><table class="tasks">' + "\n".join(lines) + "</table></div>"


def _method_table(report: JudgeReport) -> str:
    rows = []
    for method in report.methods:
        whole = method.overall
        rows.append(
            [
                escape(method.method),
                escape(method.by or "–"),
                f"{whole.coverage:.3f}",
                f"{whole.width:.2f}",
                f"{whole.coverage_adjusted:.3f}",
                f"{whole.width_adjusted:.2f}",
                f"{method.midpoint.mae:.3f}",
                escape(method.paper),
            ]
        )
    head = ["method", "groups", "coverage", "width", "adjusted coverage", "adjusted width", "midpoint MAE", "paper"]
    return _table(head, rows, (7,))


def _coverage_table(report: JudgeReport) -> str:
    """Coverage by human score and by the judge's error: the guarantee holds on average over them, not for each."""
    first = next(method for method in report.methods if method.method == report.task_method)
    rows = [
        [f"{title} {escape(part.name)}", f"{part.rows:.0f}", f"{part.coverage:.3f}", f"{part.width:.2f}",
         f"{part.coverage_adjusted:.3f}", f"{part.width_adjusted:.2f}"]
        for title, parts in (("human score", first.by_level), ("judge off by", first.by_error))
        for part in parts
    ]  # fmt: skip
    head = [f"{report.task_method}, rows with", "rows", "coverage", "width", "adjusted coverage", "adjusted width"]
    return _table(head, rows)


def _points(report: JudgeReport) -> str:
    points, sure = report.points, report.confidence
    if points is None or sure is None:
        return f"<p class=quiet>{report.rows} rows, the judges' log-probabilities side by side.</p>"
    bias = ", ".join(f"{level}: {value:+.2f}" for level, value in points.bias_by_level.items())
    return (
        f"<p>{report.rows} rows, {points.left_out} without a readable score. The written scores: Pearson "
        f"{_number(points.pearson, 3)}, Spearman {_number(points.spearman, 3)}, Kendall {_number(points.kendall, 3)}; "
        f"exact {points.exact:.1%}, within one {points.within_one:.1%}; MAE {points.mae:.3f}, bias {points.bias:+.2f} "
        f"(by human score {bias}).</p><p>A rating has more than 0.99 of the probability in {sure.over_99:.1%} of the "
        f"rows; on average {sure.mean_top_probability:.2f}, and is right in {sure.exact:.2f}.</p>"
    )


def _summary(report: JudgeReport) -> str:
    counts = {advice: sum(task.advice == advice for task in report.tasks) for advice in _COLORS}
    words = "; ".join(f"{count} {_WORDS[advice]}" for advice, count in counts.items())
    return f"{len(report.tasks)} task{'s' if len(report.tasks) > 1 else ''}: {words}"


def render_map(evaluation: JudgeEvaluation) -> str:
    """Return the page: a map and tables for each judge, then agreement and fusion. It asks nothing of the network."""
    require_plotly()
    import plotly.io
    from plotly.offline import get_plotlyjs

    span = evaluation.levels - 1
    correlations = [abs(t.pearson) for r in evaluation.judges for t in r.tasks if t.pearson is not None]
    top = min(1.0, max([0.3, *correlations]) * 1.15)
    parts = [
        "<h1>When can the judge be trusted?</h1>",
        f"<p class=quiet>{evaluation.splits} random halves, target coverage {1 - evaluation.alpha:g}, scale "
        f"1–{evaluation.levels}, argus-edge {escape(evaluation.tool_version)}, "
        f"{evaluation.created:%Y-%m-%d %H:%M} UTC</p>",
        "<p>Each point is a task. To the left the judge's scores come with narrow intervals; upwards it orders answers "
        "as humans do. In the shaded corner it ranks better than it scores; a diamond marks a decoupled task: good "
        "to rank by, not to score by, and surely in that corner.</p>",
    ]
    for index, report in enumerate(evaluation.judges):
        parts.append(f"<h2>{escape(report.judge)}</h2><p><b>{_summary(report)}</b></p>")
        figure = plotly.io.to_html(
            _figure(report, span, top),
            full_html=False,
            include_plotlyjs=False,
            div_id=f"map-{index}",
            config={"displaylogo": False, "responsive": True, "displayModeBar": False},
        )
        parts += [figure, f"<h3>Advice (intervals: {escape(report.task_method)})</h3>", _task_table(report)]
        parts += ["<h3>Methods</h3>", _method_table(report)]
        parts += ["<h3>Where the coverage is</h3>", _COVERAGE_NOTE, _coverage_table(report)]
        parts += ["<h3>The judge itself</h3>", _points(report)]
    if evaluation.agreement:
        parts.append("<h2>Do the judges agree on what is hard?</h2>")
        parts += [
            f"<p>{' and '.join(escape(name) for name in a.judges)}: order of {a.tasks} tasks by {escape(a.method)} "
            f"width, Spearman {_number(a.spearman)}.</p>"
            for a in evaluation.agreement
        ]
    if evaluation.fusion:
        head = ["method", "best alone", "width", "together", "gain", "coverage", "together"]
        rows = [
            [
                escape(f.method),
                escape(f.best_judge),
                f"{f.width_best:.2f}",
                f"{f.width_together:.2f}",
                f"{f.gain:+.2f}",
                f"{f.coverage_best:.3f}",
                f"{f.coverage_together:.3f}",
            ]
            for f in evaluation.fusion
        ]
        parts += ["<h2>Does putting the judges together help?</h2>", _table(head, rows)]
    if evaluation.warnings:
        items = "".join(f"<li>{escape(warning)}</li>" for warning in evaluation.warnings)
        parts.append(f"<h3>About the rows</h3><ul>{items}</ul>")
    body = "\n".join(parts)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Reliability map</title><style>{_STYLE}</style><script>{get_plotlyjs()}</script></head>"
        f"<body>\n{body}\n</body></html>\n"
    )
