"""The table and the progress line: what a tired engineer reads, and nothing a board could smuggle in."""

import io

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from argus_edge.bench.figures import window_figures
from argus_edge.bench.samples import encode
from argus_edge.report.console import SafeConsole
from argus_edge.report.progress import Progress, ProgressLine
from argus_edge.report.terminal import print_report
from argus_edge.report.units import interval, megabytes, milliseconds, rate
from argus_edge.schema.agent import DeviceFacts, Event, OpRow, ParityFigures, Scenario, Warmup
from argus_edge.schema.bench import (
    BenchedDevice,
    BenchedModel,
    BenchReport,
    Energy,
    Estimate,
    Generation,
    Measurement,
    MemoryHeadline,
    Roofline,
    Setup,
    StepFigures,
    Validity,
    ValidityCause,
)
from tests.bench.test_figures import back_to_back


def measurement(component="image", repeat=0, calls=100, **changes):
    fields = {
        "component": component,
        "repeat": repeat,
        "state": "done",
        "unit_of_work": "one call, batch 1",
        "runtime": "onnxruntime",
        "runtime_version": "1.32.0",
        "figures": window_figures(back_to_back([0.0123] * calls), Scenario()),
        "memory_headline": MemoryHeadline(bytes=312_000_000, memory_kind="peak-rss"),
        "validity": Validity(valid=True),
    }
    return Measurement(**{**fields, **changes})


def shown(*measurements, width=160, **changes):
    facts = DeviceFacts(wire=1, arch="aarch64", python="3.11", model="Raspberry Pi 5 \x1b[31mModel B")
    fields = {
        "run": "r1",
        "device": BenchedDevice(name="pi5", profile="pi5", facts=facts),
        "model": BenchedModel(name="m.onnx", sha256=None, format="onnx", precision="fp32"),
        "setup": Setup(
            scenario=Scenario(), warmup=Warmup(), runtime="onnxruntime", provider="cpu", threads=4, inputs="golden"
        ),
        "measurements": list(measurements),
        "validity": Validity(valid=True),
        "headline": measurements[0].component,
    }
    stream = io.StringIO()
    print_report(BenchReport(**{**fields, **changes}), Console(file=stream, width=width))
    return stream.getvalue()


def test_the_verdict_comes_first_and_says_what_to_do():
    cause = ValidityCause(code="throttled", detail="hot", remedy="cool it", from_s=12.0)
    text = shown(measurement(), validity=Validity(valid=False, causes=[cause]))
    assert (
        text.index("NOT VALID")
        < text.index("throttled: hot (from 12 s on)")
        < text.index("cool it")
        < text.index("p50")
    )
    assert "CANNOT TELL" in shown(measurement(), validity=Validity(valid=None, causes=[cause]))
    assert "\nVALID" in shown(measurement())


def test_withheld_percentiles_say_how_long_a_run_shows_them():
    text = shown(measurement(calls=100))
    assert "12.3 ms" in text
    assert "withheld with 100 calls: p95 needs 130 (--duration 2), p99 needs 662 (--duration 9)" in text


def test_nothing_that_a_board_says_reaches_the_terminal_raw():
    text = shown(measurement(), notes=["\x1b[2Jgone\x07"])
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "Raspberry Pi 5 Model B" in text


def test_details():
    text = shown(
        measurement(
            energy=Energy(
                source="INA3221", coverage="the 5 V input", mean_w=5.0, idle_w=2.0, joules_per_inference=0.037
            ),
            roofline=Roofline(floor_s=0.02, bound="compute", share=1.6, macs=4.1e9, peak="76.8", warning="Winograd"),
            parity=ParityFigures(cases=32, max_abs_error=1e-3, cosine_min=0.9999),
            ops=[OpRow(op="Conv", provider="cpu", calls=20, total_s=1.0), OpRow(op="Relu", calls=20, total_s=1.0)],
        )
    )
    assert "37 mJ an inference (5.00 W, idle 2.00 W; INA3221: the 5 V input)" in text
    assert "160% of the compute floor, 20.0 ms (4.1 GMAC; 76.8); WARNING: Winograd" in text
    assert "32 golden cases: cosine at least 0.999900" in text
    assert "50.0 ms" in text
    assert "312.0 MB peak RSS" in text


def test_of_two_slow_calls_the_longest_is_shown():
    few = Estimate(value=None, n=2, reason="2 samples; p50 needs 11")
    samples = encode(np.array([45.2, 46.4]), "us")
    written = Generation(
        prompt_tokens=288, output_tokens=2, ttft=few, inter_token=few, tokens_per_s=few,
        ttft_samples=samples, inter_token_samples=encode(np.array([0.4, 0.5]), "us"),
    )  # fmt: skip
    steps = [StepFigures(name="vision", p50=few, samples=samples)]
    text = shown(measurement(calls=2, generation=written, steps=steps))
    line = next(line for line in text.splitlines() if "first token" in line)
    assert "≤ 46.4 s" in text[text.index(line) :]
    assert "≤ 500 ms" in text
    assert "vision ≤ 46.4 s" in text
    assert "1 call in" in shown(measurement(calls=1))


def test_components_and_repeats_are_told_apart():
    spread = Estimate(value=0.05, low=0.04, high=0.06, n=3)
    text = shown(
        *(measurement(name, repeat) for repeat in range(3) for name in ("image", "text")),
        headline="end-to-end",
        summary={"p50": spread},
    )
    assert "image #1" in text
    assert "text #3" in text
    assert "end to end (sum)" in text
    assert "p50 over 3 runs: median 50.0 ms, 95 % interval of the mean 40.0–60.0" in text
    # Details of one run are enough to read.
    assert text.count("peak RSS") == 2


def test_a_failed_part_is_shown_as_such():
    text = shown(measurement(figures=None, state="failed", error={"kind": "crashed", "message": "signal 11"}))
    assert "failed: crashed: signal 11" in text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (0.0123, "12.3 ms"),
        (1.234, "1,234 ms"),
        (12.34, "12.3 s"),
        (2e-7, "0.200 µs"),
        (1e-4, "0.100 ms"),
        (1e-5, "0.0100 ms"),
        (9.9996e-3, "10.0 ms"),
    ],
)
def test_times(seconds, text):
    assert milliseconds(seconds) == text


def test_other_units():
    assert megabytes(312_345_678) == "312.3 MB"
    assert megabytes(12_345_678_901) == "12.35 GB"
    assert rate(1234.5) == "1,234 /s"
    assert interval(Estimate(value=12.3, low=None, high=12.9)) == "…–12.9"
    assert interval(Estimate(value=None)) == ""


def event(kind, **fields):
    return Event(event=kind, t=0.0, wall=0.0, **fields)


def test_the_progress_line():
    progress = Progress()
    events = [
        event("part", message="image\x1b[2J"),
        event("phase", phase="steady", total_s=10.0),
        event("sensor", values={"temperature_c": 54.4}),
        event("progress", phase="steady", done=1234, elapsed_s=4.0, total_s=10.0),
    ]
    for each in events:
        progress.event(each)
    assert progress.line() == "image: timing, 1,234 calls, 6 s left, 54 °C"
    # A window of 1 s in which a model of billions has not ended its first call.
    late = Progress()
    for each in (events[1], event("progress", phase="steady", done=0, elapsed_s=163.0, total_s=1.0)):
        late.event(each)
    assert late.count == "0 calls, 2 min 42 s past its time"
    stream = io.StringIO()
    line = ProgressLine(stream)
    for each in events:
        line.event(each)
    line.transfer(1, 2)
    line.quiet()
    assert stream.getvalue() == "", "without a terminal there is no progress line"
    line.say("hello")
    assert stream.getvalue() == "hello\n"


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_on_a_narrow_terminal_figures_and_ids_stay_whole(columns):
    stream = io.StringIO()
    table = Table(box=None)
    table.add_column("run", no_wrap=True)
    table.add_column("state")
    table.add_row("20261201-020457-tiny-onnx-local-75c6", "not valid")
    prose = Table.grid()
    prose.add_row("many words " * 9)
    console = SafeConsole(file=stream, width=columns)
    console.print(table)
    console.print(prose)
    console.print(Text("word " * 30))
    lines = stream.getvalue().splitlines()
    assert lines[1].split() == ["20261201-020457-tiny-onnx-local-75c6", "not", "valid"]
    # What is prose keeps to the terminal's width.
    assert max(len(line.rstrip()) for line in lines[2:]) <= columns
