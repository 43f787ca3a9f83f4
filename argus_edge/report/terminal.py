"""Bench reports as tables for a terminal: the verdict first, then the figures, then what to know about them."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from argus_edge.bench.percentiles import floor_samples
from argus_edge.bench.plan import duration_text
from argus_edge.gate.units import format_quantity
from argus_edge.report.units import WITHHELD, interval, megabytes, milliseconds, rate
from argus_edge.schema.bench import BenchReport, EncodedArray, Energy, Estimate, Generation, Measurement, Roofline
from argus_edge.text import clean

PERCENTILES = ("p50", "p90", "p95", "p99")
OPS_SHOWN = 10
MEMORY_KINDS = {
    "peak-rss": "peak RSS",
    "system-delta": "fall of the system's free memory",
    "device-peak": "peak of the GPU's memory",
    "server-tree": "the server's processes",
}


def print_report(report: BenchReport, console: Console) -> None:
    """Print a bench report."""
    for part in bench_report(report):
        console.print(part)


def bench_report(report: BenchReport) -> Iterator[RenderableType]:
    """Yield what a terminal shows of a bench report."""
    yield Text(_title(report), style="bold")
    yield Text(_setup(report), style="dim")
    yield Text("")
    yield verdict(report)
    yield Text("")
    yield latency_table(report)
    if any(measurement.generation is not None for measurement in report.measurements):
        yield Text("")
        yield writing_table(report)
    yield from _withheld(report)
    yield from _spread(report)
    yield Text("")
    first = [measurement for measurement in report.measurements if measurement.repeat == 0 or measurement.error]
    for measurement in first:
        yield from _details(measurement, several=len(report.measurements) > 1)
    if len(first) < len(report.measurements):
        yield Text("of the other runs the report file holds the same", style="dim")
    for measurement in report.measurements:
        if measurement.ops:
            yield Text("")
            yield ops_table(measurement)
    for note in dict.fromkeys(report.notes):
        yield Text(f"note: {clean(note, limit=400)}", style="dim")


def _shown(text: str | None, limit: int = 120) -> str:
    return clean(text or "", limit=limit)


def _title(report: BenchReport) -> str:
    facts = report.device.facts
    board = _shown(facts.model) or _shown(facts.cpu_model) or facts.arch
    return f"{_shown(report.model.name)} on {report.device.name} ({board})"


def _setup(report: BenchReport) -> str:
    first = report.measurements[0] if report.measurements else None
    version = _shown(first.runtime_version) if first else ""
    threads = first.threads if first and first.threads else report.setup.threads
    scenario = report.setup.scenario
    words = [
        f"{report.setup.runtime} {version}".strip(),
        report.setup.provider,
        f"{threads} thread{'s' if threads > 1 else ''}" if threads else "default threads",
        f"{scenario.name}, {scenario.duration_s:g} s" + (f", batch {scenario.batch}" if scenario.batch > 1 else ""),
        f"inputs {report.setup.inputs}" if report.setup.runtime != "null" else "no inputs",
    ]
    if report.model.precision:
        words.insert(0, report.model.precision)
    if report.setup.background:
        words.append(f"beside {', '.join(_shown(name) for name in report.setup.background)}")
    words += [f"{_shown(key, 40)}={_shown(value, 60)}" for key, value in report.labels.items()]
    return " · ".join(words)


def verdict(report: BenchReport) -> RenderableType:
    """Say whether the run is valid, and if not, why and what to do."""
    validity = report.validity
    if validity.valid:
        return Text("VALID", style="bold green")
    head = Text("NOT VALID", style="bold red") if validity.valid is False else Text("CANNOT TELL", style="bold yellow")
    lines = [head]
    for cause in validity.causes:
        begun = f" (from {cause.from_s:.0f} s on)" if cause.from_s is not None else ""
        lines.append(Text(f"  {cause.code}: {_shown(cause.detail, 300)}{begun}"))
        if cause.remedy:
            lines.append(Text(f"    {_shown(cause.remedy, 300)}", style="dim"))
    return Group(*lines)


def latency_table(report: BenchReport) -> Table:
    """Return the latency and throughput of every measurement, with 95 % intervals below the figures."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("component" if len({m.component for m in report.measurements}) > 1 else "")
    for name in (*PERCENTILES, "max", "throughput"):
        table.add_column(name, justify="right", no_wrap=True)
    names = _names(report)
    for name, measurement in zip(names, report.measurements, strict=True):
        whole = len(set(names)) > 1 and measurement.component == report.headline
        figures = measurement.figures
        if figures is None:
            table.add_row(name, Text(measurement.state, style="red"), *[""] * 5)
            continue
        estimates = [getattr(figures, p) for p in PERCENTILES]
        table.add_row(
            name,
            *(milliseconds(estimate.value) for estimate in estimates),
            milliseconds(figures.max_s),
            rate(figures.throughput.value),
            style="bold" if whole else None,
        )
        table.add_row(
            f"  {_counted(figures.count, 'call')} in {duration_text(figures.window_s)}",
            *(_interval_like(estimate) for estimate in estimates),
            "",
            interval(figures.throughput),
            style="dim",
        )
    if "p50" in report.summary and report.headline not in {m.component for m in report.measurements}:
        table.add_row(
            f"{report.headline.replace('-', ' ')} (sum)",
            milliseconds(report.summary["p50"].value),
            *[""] * 5,
            style="bold",
        )
    return table


def _names(report: BenchReport) -> list[str]:
    """Return what each measurement is called: its component, numbered where there are repeats."""
    repeats = len({measurement.repeat for measurement in report.measurements}) > 1
    return [each.component + (f" #{each.repeat + 1}" if repeats else "") for each in report.measurements]


def writing_table(report: BenchReport) -> Table:
    """Return first token, time between tokens and rate of every measurement that writes text."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("writing text")
    for name in ("first token", "between tokens", "tokens", "prefill", "KV cache"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, measurement in zip(_names(report), report.measurements, strict=True):
        written = measurement.generation
        if written is None:
            continue
        prefill = written.prefill_tokens_per_s
        table.add_row(
            name,
            _typical(written.ttft, written.ttft_samples),
            _typical(written.inter_token, written.inter_token_samples),
            rate(written.tokens_per_s.value),
            rate(prefill.value) if prefill else WITHHELD,
            format_quantity(written.kv_cache_bytes, "bytes"),
        )
        table.add_row(
            f"  {_lengths(written)}",
            _interval_like(written.ttft),
            _interval_like(written.inter_token),
            interval(written.tokens_per_s),
            interval(prefill) if prefill else "",
            "",
            style="dim",
        )
    return table


def _lengths(written: Generation) -> str:
    prompt = "an unknown prompt" if written.prompt_tokens is None else f"{written.prompt_tokens} tokens read"
    image = f" ({written.image_tokens} the image's)" if written.image_tokens else ""
    return f"{prompt}{image}, {written.output_tokens} written"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _typical(estimate: Estimate, samples: EncodedArray) -> str:
    """Return a median; of too few calls for one the longest, marked: minutes of measuring show a figure."""
    if estimate.value is not None or not samples.count:
        return milliseconds(estimate.value)
    from argus_edge.bench.samples import decode

    return f"≤ {milliseconds(float(decode(samples).max()))}"


def _interval_like(estimate: Estimate) -> str:
    value = estimate.value
    if value is None:
        return ""
    return interval(estimate, 1.0 if value >= 10 else 1e6 if value < 1e-5 else 1e3)


def _withheld(report: BenchReport) -> Iterator[RenderableType]:
    """Say which percentiles are withheld, and how long a run would show each."""
    words, samples = [], set()
    for name in PERCENTILES:
        missing = [getattr(m.figures, name) for m in report.measurements if m.figures is not None]
        missing = [estimate for estimate in missing if estimate.value is None]
        if missing:
            samples |= {estimate.n for estimate in missing}
            longest = max(estimate.needed_s or 0.0 for estimate in missing)
            needed = f" (--duration {_ceil(longest)})" if longest else ""
            words.append(f"{name} needs {floor_samples(int(name[1:]) / 100)}{needed}")
    if words:
        yield Text(f"withheld with {_counted(min(samples), 'call')}: {', '.join(words)}", style="dim")


def _ceil(seconds: float) -> int:
    whole = int(seconds) + 1
    return whole if whole < 60 else (whole + 9) // 10 * 10


def _spread(report: BenchReport) -> Iterator[RenderableType]:
    estimate = report.summary.get("p50")
    if estimate is None or estimate.n < 2:
        return
    text = f"p50 over {estimate.n} runs: median {milliseconds(estimate.value)}"
    text += f", 95 % interval of the mean {_interval_like(estimate)}" if estimate.low is not None else ""
    yield Text(text + (f" ({estimate.reason})" if estimate.reason else ""))


def _details(measurement: Measurement, *, several: bool) -> Iterator[RenderableType]:
    if several:
        name = measurement.component + (f" #{measurement.repeat + 1}" if measurement.repeat else "")
        yield Text(name, style="bold")
    if measurement.error is not None:
        yield Text(f"failed: {_shown(measurement.error.kind)}: {_shown(measurement.error.message, 300)}", style="red")
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for label, text in _detail_rows(measurement):
        table.add_row(label, text)
    yield Padding(table, (0, 0, 0, 2 if several else 0), expand=False)


def _detail_rows(measurement: Measurement) -> Iterator[tuple[str, str]]:
    figures = measurement.figures
    build = f"build {milliseconds(measurement.build_s)}, " if measurement.build_s is not None else ""
    yield (
        "before",
        f"import {milliseconds(measurement.import_s)}, {build}load {milliseconds(measurement.load_s)}, "
        f"first call {milliseconds(measurement.first_s)}, warm-up {_counted(measurement.warmup_calls, 'call')} "
        f"in {measurement.warmup_s:.1f} s{_steady(measurement)}",
    )
    if measurement.steps or measurement.generation is not None:
        yield "unit of work", _shown(measurement.unit_of_work)
    if measurement.steps:
        steps = (f"{_shown(step.name)} {_typical(step.p50, step.samples)}" for step in measurement.steps)
        yield "steps", ", ".join(steps)
    if measurement.preprocessing is not None:
        apart = measurement.preprocessing
        yield "preprocessing", f"{milliseconds(apart.p50.value)} apart: {_shown(apart.description, 200)}"
    for note in measurement.generation.notes if measurement.generation is not None else ():
        yield "writing", _shown(note, 300)
    yield "memory", _memory(measurement)
    if measurement.energy is not None:
        yield "energy", _energy(measurement.energy)
    temperatures = [p.values["temperature_c"] for p in measurement.series if "temperature_c" in p.values and p.t >= 0]
    clocks = [p.values["clock_khz"] for p in measurement.series if "clock_khz" in p.values and p.t >= 0]
    if temperatures:
        yield "temperature", f"{temperatures[0]:.0f} to {max(temperatures):.0f} °C at most"
    if clocks:
        yield "clock", f"{min(clocks) / 1e6:.2f} to {max(clocks) / 1e6:.2f} GHz"
    if figures is not None and figures.drift is not None:
        yield (
            "drift",
            f"{figures.drift:+.1%} from the first quarter ({milliseconds(figures.cold_p50_s)}) to the last "
            f"({milliseconds(figures.hot_p50_s)})",
        )
    if figures is not None and figures.on_time_share is not None:
        yield "on time", f"{figures.on_time_share:.1%} of the frames were done before the next was due"
    if figures is not None and figures.held_qps is not None:
        yield "held", f"{rate(figures.held_qps)} arrivals within the bound"
    if figures is not None and figures.touched_by_sensors:
        touched = figures.touched_by_sensors
        share = touched / figures.count
        verb = "is" if touched == 1 else "are"
        yield "sensors", f"overlapped {_counted(touched, 'call')} ({share:.1%}), which {verb} in every figure"
    if measurement.parity is not None:
        parity = measurement.parity
        yield (
            "parity",
            f"{_counted(parity.cases, 'golden case')}: cosine at least {parity.cosine_min:.6f}, "
            f"largest error {parity.max_abs_error:.2e}",
        )
    if measurement.roofline is not None:
        yield "roofline", _roofline(measurement.roofline)
    if measurement.providers_used and measurement.provider_requested != "cpu":
        yield "provider", ", ".join(_shown(name, 40) for name in measurement.providers_used)


def _steady(measurement: Measurement) -> str:
    return {True: " (steady)", False: " (not steady)", None: ""}[measurement.warmup_steady]


def _memory(measurement: Measurement) -> str:
    memory, head = measurement.memory, measurement.memory_headline
    if head.bytes is None or head.memory_kind is None:
        return f"{WITHHELD} (the device does not tell)"
    text = f"{megabytes(head.bytes)} {MEMORY_KINDS[head.memory_kind]}"
    rest = [
        ("load", memory.peak_rss_load),
        ("steady" if memory.peak_rss_reset else "whole run", memory.peak_rss_steady),
        ("PSS", memory.pss),
        ("anonymous", memory.anonymous),
        ("file-backed", memory.file_backed),
        ("swap", memory.swap or None),
        ("before the runtime", memory.baseline_rss),
    ]
    if head.memory_kind == "server-tree":
        rest = [("PSS", memory.server_pss), ("the client beside it", memory.peak_rss_steady)]
    told = ", ".join(f"{name} {megabytes(size)}" for name, size in rest if size is not None)
    return f"{text} ({told})" if told else text


def _energy(energy: Energy) -> str:
    if energy.mean_w is None:
        return f"{WITHHELD} ({_shown(energy.reason, 300)})"
    idle = f", idle {energy.idle_w:.2f} W" if energy.idle_w is not None else ""
    joules = energy.joules_per_inference
    each = f"{joules * 1e3:.3g} mJ an inference" if joules is not None else ""
    reason = f"; {_shown(energy.reason, 200)}" if energy.reason else ""
    return f"{each} ({energy.mean_w:.2f} W{idle}; {_shown(energy.source)}: {_shown(energy.coverage, 200)}{reason})"


def _roofline(roofline: Roofline) -> str:
    if roofline.floor_s is None:
        return f"{WITHHELD} ({_shown(roofline.reason, 200)})"
    share = f"{roofline.share:.0%} of the {roofline.bound} floor" if roofline.share is not None else ""
    macs = f"{roofline.macs / 1e9:.3g} GMAC" if roofline.macs else ""
    warning = f"; WARNING: {roofline.warning}" if roofline.warning else ""
    return f"{share}, {milliseconds(roofline.floor_s)} ({macs}; {_shown(roofline.peak, 300)}){warning}"


def ops_table(measurement: Measurement) -> Table:
    """Return the slowest operators of a profiling pass."""
    total = sum(row.total_s for row in measurement.ops) or 1.0
    table = Table(
        title=f"slowest operators of {measurement.component}",
        title_justify="left",
        box=None,
        pad_edge=False,
        header_style="bold",
        padding=(0, 2, 0, 0),
    )
    for name, justify in (("operator", "left"), ("name", "left"), ("provider", "left")):
        table.add_column(name, justify=justify, overflow="ellipsis", no_wrap=True)  # type: ignore[arg-type]
    for name in ("calls", "time a call", "share"):
        table.add_column(name, justify="right", no_wrap=True)
    ranked = sorted(measurement.ops, key=lambda row: -row.total_s)
    for row in ranked[:OPS_SHOWN]:
        table.add_row(
            _shown(row.op, 30),
            _shown(row.name, 40),
            _shown(row.provider, 20),
            f"{row.calls:,}",
            milliseconds(row.total_s / row.calls if row.calls else None),
            f"{row.total_s / total:.1%}",
        )
    if len(ranked) > OPS_SHOWN:
        rest = sum(row.total_s for row in ranked[OPS_SHOWN:])
        table.add_row(f"({len(ranked) - OPS_SHOWN} more)", "", "", "", "", f"{rest / total:.1%}", style="dim")
    return table
