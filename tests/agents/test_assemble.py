"""A result from a journal written by hand."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from argus_edge.agents import assemble, samples, wire
from argus_edge.agents.home import Journal, journal_events
from argus_edge.schema.agent import RunResult


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "run-1"
    folder.mkdir()
    part = {"name": "vision", "runtime": "onnxruntime", "provider": "cuda", "threads": 2, "scenario": {"batch": 4}}
    (folder / wire.JOB_FILE).write_text(json.dumps({"wire": 1, "run": "run-1", "parts": [part, part]}))
    yield folder
    samples.discard(folder, 0)


def write(folder, *events) -> None:
    journal = Journal(folder)
    for event in events:
        journal.write(**event)


def part_of(folder, state="done", fault=None, index=0):
    return RunResult.model_validate(assemble.result(folder, state, fault)).parts[index]


def test_figures_of_all_phases_come_together(folder) -> None:
    write(
        folder,
        {"event": "started", "boot_id": "b", "agent_sha256": "a" * 64},
        {"event": "part", "part": 0, "available": 1000},
        {"event": "note", "part": 0, "figures": {"import_s": 0.5, "memory": {"baseline_rss": 1}}},
        {"event": "note", "part": 0, "figures": {"load_s": 0.25, "memory": {"peak_rss_load": 2}, "notes": ["one"]}},
        {"event": "note", "part": 0, "message": "two"},
        {"event": "sensor", "part": 0, "start": 5.0, "took_s": 0.1, "values": {"memory_available_bytes": 400.0}},
        {"event": "sensor", "part": 0, "start": 6.0, "took_s": 0.1, "values": {"memory_available_bytes": 700.0}},
        {"event": "part-done", "part": 0, "state": "done"},
    )
    result = RunResult.model_validate(assemble.result(folder, "done", None))
    (part,) = result.parts
    assert (result.boot_id, result.agent_sha256, result.run) == ("b", "a" * 64, "run-1")
    assert (part.import_s, part.load_s, part.batch, part.threads) == (0.5, 0.25, 4, 2)
    assert (part.memory.baseline_rss, part.memory.peak_rss_load, part.memory.system_delta) == (1, 2, 600)
    assert part.notes == ["one", "two"]
    assert [(point.t, point.took_s) for point in part.series] == [(5.0, 0.1), (6.0, 0.1)]


@pytest.mark.parametrize(
    ("state", "expected", "stopped_by"),
    [
        ("lost", "lost", "fault"),
        ("stopped", "stopped", "stop"),
        ("timeout", "timeout", "stop"),
        ("done", "failed", "fault"),
    ],
)
def test_a_part_that_never_finished_has_the_runs_state(folder, state, expected, stopped_by) -> None:
    write(folder, {"event": "part", "part": 0}, {"event": "phase", "part": 0, "phase": "steady"})
    writer = samples.SampleWriter(folder, 0, 10, 3, 4)
    for column, value in zip(writer.columns, (11.0, 12.0, 10.5), strict=True):
        column[0] = value
    part = part_of(folder, state, {"kind": "supervisor-died"})
    assert (part.state, part.stopped_by, part.error.kind) == (expected, stopped_by, "supervisor-died")
    assert part.samples_count == 1
    # With a schedule the window begins when the first call was due.
    assert (part.window_start, part.window_end) == (10.5, 12.0)
    (steady,) = [event for _, event in journal_events(folder) if event.get("phase") == "steady"]
    assert part.window_wall == pytest.approx(steady["wall"] + 10.5 - steady["t"])


def test_parts_that_never_began_are_left_out(folder) -> None:
    write(folder, {"event": "part", "part": 0}, {"event": "part-done", "part": 0, "state": "done"})
    assert len(assemble.result(folder, "stopped", None)["parts"]) == 1


@pytest.mark.parametrize(("fell_back", "peak"), [(False, 250), (True, None)])
def test_the_gpus_memory_is_what_it_grew_by(folder, fell_back, peak) -> None:
    points = [
        {"event": "sensor", "part": 0, "values": {"gpu_memory_used_bytes": used}} for used in (100.0, 350.0, 300.0)
    ]
    write(
        folder,
        {"event": "part", "part": 0},
        *points,
        {"event": "note", "part": 0, "figures": {"provider_fell_back": fell_back}},
    )
    assert part_of(folder).memory.device_peak == peak


def test_a_long_series_is_thinned_evenly(monkeypatch) -> None:
    monkeypatch.setattr(assemble, "MAX_SERIES", 100)
    series = assemble.Series()
    for number in range(1, 5001):
        series.add({"t": float(number)})
    times = [point["t"] for point in series.points]
    gaps = {b - a for a, b in pairwise(times)}
    assert 50 <= len(times) <= 100
    assert len(gaps) == 1
    assert times[-1] > 4900


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(st.one_of(st.binary(max_size=40), st.text(max_size=40).map(str.encode)), max_size=12))
def test_a_damaged_journal_still_gives_a_result(folder, lines) -> None:
    """Torn, mixed up, or not JSON: what can be read counts, and nothing fails."""
    good = [{"event": "part", "part": 0, "t": 1.0, "wall": 1.0}, {"event": "sensor", "part": 0, "t": 2.0, "wall": 2.0}]
    text = b"".join(json.dumps(event).encode() + b"\n" for event in good) + b"\n".join(lines)
    (folder / wire.JOURNAL_FILE).write_bytes(text)
    assert part_of(folder, "lost", {"kind": "supervisor-died"}).state == "lost"


def test_a_line_without_its_end_is_not_read(folder) -> None:
    lines = [json.dumps({"event": event, "t": 1.0, "wall": 2.0}) for event in ("started", "ended")]
    (folder / wire.JOURNAL_FILE).write_text("\n".join(lines))
    assert [event["event"] for _, event in journal_events(folder)] == ["started"]


@pytest.mark.parametrize("line", ["[]", "3", "{}", '{"event": "phase"}', '{"event": "x", "t": "1", "wall": 1}', "{"])
def test_a_line_that_is_no_event_is_passed_over(folder, line) -> None:
    good = json.dumps({"event": "started", "t": 1.0, "wall": 2.0})
    (folder / wire.JOURNAL_FILE).write_text(f"{line}\n{good}\n")
    assert [event["event"] for _, event in journal_events(folder)] == ["started"]


def test_events_that_nonsense_was_written_into_give_a_result_all_the_same(folder) -> None:
    clocks = {"t": 1.0, "wall": 2.0, "part": 0}
    lines = [
        {**clocks, "event": "part", "available": "much"},
        {**clocks, "event": "sensor", "start": [], "values": {"power_w": 2.0, "temperature_c": "hot"}},
        {**clocks, "event": "sensor", "values": 7},
        {**clocks, "event": "note", "figures": {"memory": 3, "notes": "x"}},
        {**clocks, "event": "part-failed"},
    ]
    (folder / wire.JOURNAL_FILE).write_text("".join(json.dumps(line) + "\n" for line in lines))
    part = part_of(folder, "failed")
    assert part.state == "failed"
    assert [point.values for point in part.series] == [{"power_w": 2.0}, {}]


def test_an_event_that_is_too_long_is_cut_and_does_not_hide_the_next(folder) -> None:
    write(
        folder,
        {"event": "note", "part": 0, "figures": {"vendor_before": {"raw": "x" * (2 << 20)}}},
        {"event": "part-done", "part": 0, "state": "done"},
    )
    events = [event for _, event in journal_events(folder)]
    assert [event["event"] for event in events] == ["note", "part-done"]
    assert "left out" in events[0]["message"]
