"""Tables of what happens within a unit of work: the steps, and the text that is written."""

from __future__ import annotations

from collections.abc import Sequence

from argus_edge.gate.units import format_quantity
from argus_edge.report.cells import MISSING, Cell, Table, number_cell, text_cell
from argus_edge.reports import Found
from argus_edge.schema.bench import BenchReport, Estimate, Measurement
from argus_edge.text import clean

PREPROCESSING = "preprocessing (apart)"


def _headlines(benches: Sequence[Found[BenchReport]]) -> list[tuple[Found[BenchReport], Measurement]]:
    """Return each report with the first repeat of what stands for its model."""
    found = []
    for bench in benches:
        report = bench.artifact
        first = next((each for each in report.measurements if each.component == report.headline), None)
        if first is not None:
            found.append((bench, first))
    return found


def _estimate(estimate: Estimate | None, unit: str) -> Cell:
    if estimate is None or estimate.value is None:
        return Cell(MISSING, float("inf"))
    ends = [format_quantity(end, unit) if end is not None else "?" for end in (estimate.low, estimate.high)]
    interval = "" if estimate.low is None and estimate.high is None else f" [{ends[0]}, {ends[1]}]"
    return Cell(format_quantity(estimate.value, unit) + interval, estimate.value)


def writing_table(benches: Sequence[Found[BenchReport]]) -> Table | None:
    """Return a row for each model that writes text: first token, between tokens, rate, prompt, cache."""
    rows, notes = [], []
    for bench, measured in _headlines(benches):
        written, report = measured.generation, bench.artifact
        if written is None:
            continue
        prompt = MISSING if written.prompt_tokens is None else str(written.prompt_tokens)
        prompt += f" ({written.image_tokens} of the image)" if written.image_tokens else ""
        rows.append(
            [
                text_cell(report.model.name),
                text_cell(report.model.precision),
                text_cell(report.device.name),
                text_cell(prompt),
                text_cell(MISSING if written.output_tokens is None else str(written.output_tokens)),
                _estimate(written.ttft, "s"),
                _estimate(written.inter_token, "s"),
                _estimate(written.tokens_per_s, "1/s"),
                _estimate(written.prefill_tokens_per_s, "1/s"),
                number_cell(written.kv_cache_bytes, "bytes"),
                text_cell(bench.path.name),
            ]
        )
        notes += [f"{clean(report.model.name)}: {clean(note, limit=300)}" for note in written.notes]
    if not rows:
        return None
    columns = (
        "Model", "Precision", "Device", "Prompt tokens", "Tokens written", "First token", "Between tokens", "Tokens",
        "Prefill", "KV cache", "Source",
    )  # fmt: skip
    notes.append("Medians with 95 % intervals; the first token's time counts from the call's start, vision included.")
    return Table("writing", "Writing text", columns, rows, list(dict.fromkeys(notes)), (5, 6, 7, 8, 9))


def steps_table(benches: Sequence[Found[BenchReport]]) -> Table | None:
    """Return where the time of a unit of work goes, step by step; preprocessing is beside it."""
    rows = []
    for bench, measured in _headlines(benches):
        report = bench.artifact
        whole = measured.figures.p50.value if measured.figures else None
        for step in measured.steps:
            share = step.p50.value / whole if step.p50.value is not None and whole else None
            rows.append(
                [
                    text_cell(report.model.name),
                    text_cell(report.device.name),
                    text_cell(step.name),
                    _estimate(step.p50, "s"),
                    Cell(MISSING, float("inf")) if share is None else Cell(f"{share:.0%}", share),
                    text_cell(bench.path.name),
                ]
            )
        if measured.preprocessing is not None:
            rows.append(
                [
                    text_cell(report.model.name),
                    text_cell(report.device.name),
                    text_cell(PREPROCESSING),
                    _estimate(measured.preprocessing.p50, "s"),
                    Cell(MISSING, float("inf")),
                    text_cell(bench.path.name),
                ]
            )
    columns = ("Model", "Device", "Step", "Median [95 %]", "Share of the whole", "Source")
    return Table("steps", "Where the time of a unit of work goes", columns, rows, numeric=(3, 4)) if rows else None
