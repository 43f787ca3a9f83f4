"""The ARGUS score for a person at a terminal: one table across devices, then what it depends on."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from argus_edge.gate.units import format_quantity
from argus_edge.report.console import stdout_console
from argus_edge.report.published import CAVEAT, PUBLISHED, QUALITY, SOURCE, quality
from argus_edge.report.score_words import by_rank, score_notes
from argus_edge.report.tables import titled_table
from argus_edge.schema.score import DeviceScore, Scored, ScoredModel, ScoreReport


def _scored(part: Scored) -> str:
    if part.value is None:
        return "–"
    if part.low is None or part.high is None:
        return f"{part.value:.3f}"
    return f"{part.value:.3f} [{part.low:.3f}, {part.high:.3f}]"


def _row(model: ScoredModel, device: DeviceScore | None) -> list[Text]:
    scores = model.scores
    cells = [
        "–" if device is None or device.rank is None else str(device.rank),
        model.name,
        "–" if device is None else device.device,
        _scored(scores.capability),
        _scored(scores.consistency),
        _scored(scores.robustness),
        "–" if device is None else _scored(device.efficiency.efficiency),
        "–" if device is None else _scored(device.argus),
        "–" if device is None or device.first_share is None else f"{device.first_share:.0%}",
    ]
    return [Text(cell) for cell in cells]


def print_score(report: ScoreReport, console: Console | None = None) -> None:
    """Print parts and ARGUS per model and device, pair probabilities, flips, and the published table."""
    console = console or stdout_console()
    numbers = ("rank", "capability", "consistency", "robustness", "efficiency", "ARGUS", "first under")
    columns = ("rank", "model", "device", *numbers[1:])
    table = titled_table(f"ARGUS, {report.level:.0%} intervals", columns, numbers)
    for model, device in by_rank(report):
        table.add_row(*_row(model, device))
    console.print(table)
    weights = ", ".join(f"{term} {weight:.2f}" for term, weight in report.weights.items())
    reference = "the best of these models" if report.efficiency_reference == "cohort" else "the budget"
    lines = [
        f"Weights: {weights}. Efficiency against {reference}: {', '.join(report.efficiency_terms) or 'no term'}.",
        "first under: share of all weightings under which the model comes first.",
    ]
    lines += score_notes(report)
    for line in lines:
        console.print(Text(line))
    figures = ("latency", "memory", "robustness", "ARGUS", *QUALITY)
    published = titled_table(f"Published ({CAVEAT})", ("model", *figures), figures, caption=SOURCE)
    for row in PUBLISHED:
        published.add_row(
            Text(row.model),
            format_quantity(None if row.latency_ms is None else row.latency_ms / 1e3, "s"),
            format_quantity(None if row.memory_gb is None else row.memory_gb * 1e9, "bytes"),
            "–" if row.robustness is None else f"{row.robustness:.3f}",
            "–" if row.argus is None else f"{row.argus:.3f}",
            *(text for text, _ in quality(row)),
        )
    console.print(published)
