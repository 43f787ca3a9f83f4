"""Where a budget's figure is found in a bench or an eval report, and its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import NormalDist

from argus_edge.gate.metrics import CELL, Metric, less_is_better
from argus_edge.gate.originals import check_same_data, original_of
from argus_edge.reports import Found
from argus_edge.schema.bench import BenchReport, Estimate, Measurement
from argus_edge.schema.evaluation import EvalReport
from argus_edge.schema.verdict import Counted

LEVEL = 0.95
PERCENTILES = {"latency_p50": 0.50, "latency_p90": 0.90, "latency_p95": 0.95, "latency_p99": 0.99}

NO_ORIGINAL = "the drop needs the eval report of the fp32 model too"
NO_ENERGY = "no power sensor was read: bench with --energy (a Pi 5's own), or --meter FILE.csv"


@dataclass(frozen=True)
class Figure:
    """A measured figure, or why there is none; ``low`` and ``high`` are None where that side is not bounded.

    ``n`` is how many of what is ``counted`` its interval is from; 0 where more of them would not narrow it.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str | None = None
    needed_s: float | None = None
    source: str | None = None
    n: int = 0
    counted: Counted = "samples"


def _missing(reason: str, needed_s: float | None = None, source: str | None = None) -> Figure:
    return Figure(None, reason=reason, needed_s=needed_s, source=source)


def _point(value: float | None, source: str, reason: str) -> Figure:
    """A figure without a sampling error: its interval is itself."""
    return _missing(reason, source=source) if value is None else Figure(value, value, value, source=source)


def _of_estimate(
    estimate: Estimate | None, source: str, what: str, level: float, counted: Counted = "samples"
) -> Figure:
    if estimate is None:
        return _missing(f"{what} was not measured", source=source)
    if estimate.value is None:
        return _missing(estimate.reason or f"{what} is withheld", estimate.needed_s, source)
    value, low, high = estimate.value, estimate.low, estimate.high
    if level != estimate.level:
        # At another confidence the interval is taken to be as much wider as a normal one would be.
        known, wanted = (NormalDist().inv_cdf((1 + each) / 2) for each in (estimate.level, level))
        low = None if low is None else value - (value - low) * wanted / known
        high = None if high is None else value + (high - value) * wanted / known
    reason = estimate.reason if low is None and high is None else None
    return Figure(value, low, high, reason, source=source, n=estimate.n, counted=counted)


def _at_level(measurement: Measurement, name: str, level: float) -> Estimate | None:
    """Return a percentile of one run's own samples at another confidence than the report's; None: it has none."""
    if measurement.latency is None:
        return None
    from argus_edge.bench.percentiles import percentile
    from argus_edge.bench.samples import decode

    window_s = measurement.figures.window_s if measurement.figures else None
    return percentile(decode(measurement.latency), PERCENTILES[name], window_s=window_s, level=level)


def _spread(values: Sequence[float | None], source: str, reason: str) -> Figure:
    """Over repeats: the largest as the value, the interval from the smallest to the largest seen."""
    seen = [value for value in values if value is not None]
    if not seen:
        return _missing(reason, source=source)
    return Figure(max(seen), min(seen), max(seen), source=source)


def measurements_of(report: BenchReport, component: str | None) -> list[Measurement]:
    """Return the repeats of a component, or of the headline."""
    name = component or report.headline
    return [measurement for measurement in report.measurements if measurement.component == name]


def bench_figure(found: Found[BenchReport], metric: Metric, component: str | None, level: float = LEVEL) -> Figure:
    """Return a figure of a bench report with its interval at a level of confidence.

    Where a report holds repeats, latency and throughput are its run-to-run figures. Parity is of all components unless
    one is named: what runs end to end has no golden outputs of its own.
    """
    report, source = found.artifact, found.label
    repeats = measurements_of(report, component)
    if not repeats:
        named = ", ".join(dict.fromkeys(each.component for each in report.measurements)) or "none"
        return _missing(f"the report has no component {component or report.headline!r} (it has {named})", source=source)
    first = repeats[0]
    if first.state != "done":
        return _missing(f"the run did not end: {first.state}", source=source)
    if metric.kind in ("latency", "rate"):
        name = metric.name.removeprefix("latency_")
        whole = report.summary.get(name) if component in (None, report.headline) else None
        own = getattr(first.figures, name) if first.figures else None
        if len(repeats) > 1 or own is None:
            return _of_estimate(whole or own, source, metric.name, level, "runs" if whole else "samples")
        # Of a single run the run-to-run figure has no interval; its own samples have.
        if level != LEVEL and metric.name in PERCENTILES:
            own = _at_level(first, metric.name, level) or own
        return _of_estimate(own, source, metric.name, level)
    if metric.kind == "generation":
        generation = first.generation
        spread = report.summary.get(metric.name) if len(repeats) > 1 and component in (None, report.headline) else None
        own = getattr(generation, metric.name) if generation else None
        return _of_estimate(spread or own, source, metric.name, level, "runs" if spread else "samples")
    if metric.kind == "memory":
        return _memory(repeats, metric.name, source)
    if metric.kind == "size":
        value = report.model.bytes if metric.name == "file_size" else report.model.macs
        return _point(value, source, f"the report does not say {metric.name}")
    if metric.kind == "energy":
        why = next((each.energy.reason for each in repeats if each.energy and each.energy.reason), NO_ENERGY)
        joules = [each.energy.joules_per_inference if each.energy else None for each in repeats]
        return _spread(joules, source, f"no energy: {why}")
    if metric.kind == "temperature":
        return _spread([_hottest(each) for each in repeats], source, "no temperature sensor")
    return _parity(repeats if component else report.measurements, metric.name, source)


def _memory(repeats: Sequence[Measurement], name: str, source: str) -> Figure:
    if name == "peak_memory":
        return _spread([each.memory_headline.bytes for each in repeats], source, "memory was not measured")
    if name == "peak_rss":
        peaks = [
            max(filter(None, (each.memory.peak_rss_load, each.memory.peak_rss_steady)), default=None)
            for each in repeats
        ]
        return _spread(peaks, source, "the kernel does not tell the peak resident set")
    attribute = {"pss": "pss", "system_memory": "system_delta", "device_memory": "device_peak"}[name]
    return _spread(
        [getattr(each.memory, attribute) for each in repeats], source, f"{name} was not measured on this device"
    )


def _hottest(measurement: Measurement) -> float | None:
    readings = [
        value
        for point in measurement.series
        for name, value in point.values.items()
        if name == "temperature_c" or name.endswith("_temperature_c")
    ]
    return max(readings, default=None)


def _parity(repeats: Sequence[Measurement], name: str, source: str) -> Figure:
    parities = [each.parity for each in repeats if each.parity is not None]
    if not parities:
        return _missing("parity on the board was not checked: bench a bundle with golden inputs", source=source)
    if name == "parity_error":
        return _point(max(each.max_abs_error for each in parities), source, "")
    return _point(min(each.cosine_min for each in parities), source, "")


def cell_figure(own: Sequence[Found[EvalReport]], evals: Sequence[Found[EvalReport]], name: str) -> Figure:
    """Return a metric of a dataset (``coco.r1_i2t``), or its drop against the fp32 report.

    The drop's interval takes the two intervals as independent. They are of the same images, so their errors mostly
    agree, and the interval is wider than it need be: a gate errs towards "measure longer", never towards "pass".

    Parameters
    ----------
    own
        The model's eval reports; of several of one dataset the newest counts.
    evals
        All eval reports, the fp32 model's among them.
    name
        As the budget has it.

    Raises
    ------
    InputError
        The fp32 report is of other data, another split, gallery or prompt.
    """
    match = CELL.fullmatch(name)
    assert match is not None
    dataset, metric = match["dataset"], match["metric"]
    found = _evaluated_on(own, dataset, metric)
    figure = _cell_metric(found, dataset, metric)
    if not match["drop"]:
        return figure
    baseline = original_of(found, evals, dataset)
    if baseline is None:
        return _missing(NO_ORIGINAL, source=found.label)
    if baseline is found:
        return figure if figure.value is None else Figure(0.0, 0.0, 0.0, source=found.label)
    check_same_data(found, baseline, dataset)
    reference = _cell_metric(baseline, dataset, metric)
    if figure.value is None or reference.value is None:
        return figure if figure.value is None else reference
    source = f"{found.label} against {baseline.label}"
    sign = -1.0 if less_is_better(metric) else 1.0
    drop = sign * (reference.value - figure.value)
    if figure.low is None or figure.high is None or reference.low is None or reference.high is None:
        return Figure(drop, None, None, source=source)
    # How far each may be to either side; where less is better, the sides change places.
    above = ((reference.high - reference.value) ** 2 + (figure.value - figure.low) ** 2) ** 0.5
    below = ((reference.value - reference.low) ** 2 + (figure.high - figure.value) ** 2) ** 0.5
    down, up = (below, above) if sign > 0 else (above, below)
    return Figure(drop, drop - down, drop + up, source=source, n=figure.n, counted=figure.counted)


def _evaluated_on(own: Sequence[Found[EvalReport]], dataset: str, metric: str) -> Found[EvalReport]:
    """Return the newest report with the metric of the dataset; without one the newest with the dataset, or at all."""

    def fitness(found: Found[EvalReport]) -> tuple[bool, bool, datetime]:
        cells = [cell for cell in found.artifact.cells if cell.dataset == dataset]
        return any(metric in cell.clean.metrics for cell in cells), bool(cells), found.artifact.created

    return max(own, key=fitness)


def _cell_metric(found: Found[EvalReport], dataset: str, metric: str) -> Figure:
    source = found.label
    cells = [cell for cell in found.artifact.cells if cell.dataset == dataset]
    if not cells:
        known = ", ".join(dict.fromkeys(cell.dataset for cell in found.artifact.cells))
        return _missing(f"no dataset {dataset!r} in the eval report (it has {known})", source=source)
    for cell in cells:
        figure = cell.clean.metrics.get(metric)
        if figure is not None:
            interval = figure.interval
            return Figure(
                figure.value,
                interval.low if interval else None,
                interval.high if interval else None,
                source=source,
                n=found.artifact.dataset(dataset).images,
                counted="images",
            )
    known = ", ".join(sorted({name for cell in cells for name in cell.clean.metrics}))
    return _missing(f"no metric {metric!r} on {dataset} (it has {known or 'none'})", source=source)
