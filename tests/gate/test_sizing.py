"""Sizing: what fits first, the front, and what a profile's roofline rules out before a board is on the desk."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_edge.artifacts import write_artifact
from argus_edge.bench.options import scenario_of
from argus_edge.cli.bench import bench as bench_command
from argus_edge.devices import profiles
from argus_edge.devices.inventory import Inventory
from argus_edge.errors import InputError
from argus_edge.gate.budget import parse_budget
from argus_edge.gate.foresight import latency_floor, rulings
from argus_edge.gate.pareto import dominates, front
from argus_edge.gate.sizing import size_files, size_reports
from argus_edge.reports import Found
from argus_edge.schema.agent import ParityFigures
from argus_edge.schema.base import Source
from argus_edge.schema.device import DeviceEntry
from argus_edge.schema.evaluation import Interval, Metric
from tests.support.reports import bench, bundle, evaluation


def budget(limits: str, rest: str = "", path: str = "b.yaml"):
    return parse_budget(f"budget: 1\nlimits:\n{limits}\n{rest}", Source(name="b.yaml"), path)


points = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=8)


@given(points)
def test_the_front_is_what_nothing_dominates(rows: list[tuple[int, ...]]) -> None:
    marks = front(rows)
    assert any(marks)
    for row, mark in zip(rows, marks, strict=True):
        assert mark == (not any(dominates(other, row) for other in rows))


def test_what_fits_comes_first_with_the_smallest_margin_first() -> None:
    sizing = size_reports(
        budget("  latency_p50: 100 ms"),
        [bench("slow", p50=0.2), bench("spare", p50=0.02), bench("tight", p50=0.09)],
        [],
        [],
        [],
    )
    assert [(each.model, each.fit) for each in sizing.combinations] == [
        ("tight", "fits"),
        ("spare", "fits"),
        ("slow", "does not fit"),
    ]


def test_parity_does_not_stand_for_the_margin_of_everything_that_fits() -> None:
    reports = [bench("spare", p50=0.02), bench("tight", p50=0.09)]
    for found in reports:
        found.artifact.measurements[0].parity = ParityFigures(cases=1, max_abs_error=0.0, cosine_min=1.0)
    held = budget("  latency_p50: 100 ms\n  parity_cosine: 0.99")
    sizing = size_reports(held, reports, [], [], [])
    assert [(each.model, round(each.margin, 2)) for each in sizing.combinations] == [("tight", 0.1), ("spare", 0.8)]
    assert "latency_p50 is 90.0 ms of 100 ms" in sizing.combinations[0].reason
    reports[0].artifact.measurements[0].parity.cosine_min = 0.5
    assert "parity_cosine is 0.500" in size_reports(held, reports[:1], [], [], []).combinations[0].reason


def test_the_pareto_front_is_over_what_all_have_and_says_what_is_left_out() -> None:
    sizing = size_reports(
        budget("  latency_p50: 1 s"),
        [bench("fast", p50=0.01, memory=900), bench("small", p50=0.1, memory=100), bench("worse", p50=0.2, memory=950)],
        [],
        [],
        [],
    )
    assert sizing.pareto_over == ["latency", "memory"]
    assert {each.model for each in sizing.combinations if each.pareto} == {"fast", "small"}
    assert "ARGUS, energy" in sizing.notes[0]


def test_an_undecided_combination_names_the_command_that_decides() -> None:
    (each,) = size_reports(budget("  latency_p50: 50 ms"), [bench("m", p50=0.05)], [], [], []).combinations
    assert each.fit == "undecided"
    assert each.next_step == "argus-edge bench m --device pi5 --threads 4 --until-decided b.yaml"


def test_the_floor_of_clip_on_a_pi_5_is_the_field_s_57_ms() -> None:
    own, best = latency_floor(bundle().artifact, profiles.load("pi5"))
    assert own == pytest.approx(0.0573, rel=0.01)
    assert best < own


def test_a_roofline_rules_out_what_no_way_of_running_reaches() -> None:
    pi5 = profiles.load("pi5")
    assert rulings(budget("  latency_p95: 1 ms"), bundle().artifact, pi5)[0].verdict == "cannot"
    assert rulings(budget("  latency_p95: 40 ms"), bundle().artifact, pi5)[0].verdict == "unlikely"
    assert rulings(budget("  latency_p95: 100 ms"), bundle().artifact, pi5) == []


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ("macs: 4 GMACs", "it takes 4.40 GMACs"),
        ("throughput: 1000 /s", "highest peak allows"),
        ("ttft: 1 ms", "to the first token"),
        ("peak_rss: 100 MB", "its weights alone"),
    ],
)
def test_every_figure_that_counts_and_peaks_bound_is_ruled_on(limit: str, reason: str) -> None:
    (ruling,) = rulings(budget(f"  {limit}"), bundle().artifact, profiles.load("pi5"))
    assert ruling.verdict == "cannot"
    assert reason in ruling.reason


@pytest.mark.parametrize("limit", ["macs: 5 GMACs", "throughput: 10 /s", "ttft: 1 s", "peak_rss: 400 MB"])
def test_what_counts_and_peaks_allow_is_not_ruled_out(limit: str) -> None:
    assert rulings(budget(f"  {limit}"), bundle().artifact, profiles.load("pi5")) == []


def test_weights_larger_than_the_board_or_the_budget_cannot_fit() -> None:
    nano = profiles.load("jetson-nano")
    big = bundle(weights=16_000_000_000, opset=15)
    assert "the board has" in rulings(budget("  latency_p95: 100 s"), big.artifact, nano)[0].reason
    held = rulings(budget("  peak_memory: 100 MB\n  file_size: 100 MB"), bundle(opset=15).artifact, nano)
    assert [ruling.verdict for ruling in held] == ["cannot", "cannot"]


def test_an_opset_that_the_board_cannot_read_cannot_fit() -> None:
    (ruling,) = rulings(budget("  latency_p95: 100 s"), bundle(opset=18).artifact, profiles.load("jetson-nano"))
    assert "opset 18" in ruling.reason


def test_a_bundle_is_looked_ahead_only_where_it_was_not_benched() -> None:
    found = bundle()
    report = bench("clip")
    report.artifact.model.sha256 = found.sha256
    sizing = size_reports(budget("  latency_p50: 1 s"), [report], [], [found], [], devices=["pi5", "jetson-nano"])
    assert {(each.device, each.fit) for each in sizing.combinations} == {("pi5", "fits"), ("jetson-nano", "cannot fit")}


def test_without_anything_to_size_there_is_an_error() -> None:
    with pytest.raises(InputError, match="neither a bench report nor a bundle"):
        size_reports(budget("  latency_p50: 1 s"), [], [], [], [])


def test_commands_can_be_pasted_into_a_shell() -> None:
    sizing = size_reports(budget("  latency_p95: 120 ms"), [bench("$(reboot)", valid=False)], [], [bundle("a; b")], [])
    commands = {each.next_step for each in sizing.combinations}
    assert "argus-edge bench '$(reboot)' --device pi5 --threads 4 --until-decided b.yaml" in commands
    assert "argus-edge bench 'a; b' --device pi5" in commands


def test_the_command_that_decides_names_files_where_they_are() -> None:
    found = bundle("clip")
    report = bench("clip", p50=0.05)
    report.artifact.model.sha256 = found.sha256
    placed = Found(Path("all bundles/clip/manifest.json"), found.sha256, found.artifact)
    held = budget("  latency_p50: 50 ms", path="budgets/b.yaml")
    steps = [each.next_step for each in size_reports(held, [report], [], [placed], [], ["pi5"]).combinations]
    assert steps == [
        "argus-edge bench 'all bundles/clip' --device pi5 --threads 4 --until-decided budgets/b.yaml",
    ]
    (ahead,) = size_reports(held, [], [], [placed], [], ["pi5"]).combinations
    assert ahead.next_step == "argus-edge bench 'all bundles/clip' --device pi5"


def test_the_command_asks_for_the_same_combination_again() -> None:
    report = bench("m", p50=0.05)
    report.artifact.setup.threads = 2
    report.artifact.setup.runtime = "tensorrt"
    report.artifact.setup.provider = "cuda"
    (each,) = size_reports(budget("  latency_p50: 50 ms"), [report], [], [], []).combinations
    assert each.next_step == (
        "argus-edge bench m --device pi5 --runtime tensorrt --provider cuda --threads 2 --until-decided b.yaml"
    )


def test_the_command_for_a_server_says_that_it_is_one() -> None:
    report = bench("m", p50=0.05)
    report.artifact.setup.runtime, report.artifact.model.format = "server", "none"
    (each,) = size_reports(budget("  latency_p50: 50 ms"), [report], [], [], []).combinations
    assert each.next_step.startswith("argus-edge bench m --device pi5 --runtime server --url URL ")


@pytest.mark.parametrize(
    ("name", "load"),
    [
        ("server", {"qps": 20.0}),
        ("server", {"latency_bound_s": 0.05}),
        ("paced", {"fps": 12.5}),
        ("multi-stream", {"streams": 4}),
        ("offline", {"batch": 16}),
    ],
)
def test_the_command_asks_for_the_same_load_again(name: str, load: dict[str, float]) -> None:
    report = bench("m", p50=0.05)
    report.artifact.setup.scenario = scenario = scenario_of(name, **load)
    (each,) = size_reports(budget("  latency_p50: 50 ms"), [report], [], [], []).combinations
    given = bench_command.make_context("bench", each.next_step.split()[2:]).params
    options = {key: given[key] for key in ("batch", "fps", "qps", "streams")}
    assert scenario_of(given["scenario"], latency_bound_s=given["latency_bound"], **options) == scenario


def test_no_evaluation_is_proposed_for_what_lies_on_the_limit() -> None:
    report = bench("a")
    found = evaluation("a", {("retrieval", "coco"): 0.5})
    found.artifact.cells[0].clean.metrics["r1_i2t"] = Metric(value=0.5, interval=Interval(low=0.4, high=0.6), n=200)
    (each,) = size_reports(budget("  coco.r1_i2t: 0.5"), [report], [found], [], []).combinations
    assert (each.fit, each.next_step) == ("undecided", None)
    assert "lies on the limit" in each.reason


def test_what_no_run_can_tell_has_a_reason_and_no_command() -> None:
    (each,) = size_reports(budget("  energy: 1 J"), [bench("m")], [], [], []).combinations
    assert (each.fit, each.next_step) == ("undecided", None)
    assert "no power sensor" in each.reason


def test_what_takes_longer_than_the_usual_patience_says_so() -> None:
    (each,) = size_reports(
        budget("  throughput: 99.5"), [bench("m", throughput=100.0, spread=0.04)], [], [], []
    ).combinations
    seconds = int(each.next_step.partition("--max-duration ")[2].removesuffix("s"))
    assert seconds > 600


def test_what_an_offline_run_left_open_asks_for_another_offline_run() -> None:
    reports = [bench("m"), bench("m", scenario="offline", throughput=100.0, spread=0.1)]
    (each,) = size_reports(budget("  throughput: 98"), reports, [], [], []).combinations
    assert each.next_step.startswith("argus-edge bench m --device pi5 --scenario offline --threads 4 --until-decided b")


def test_a_budget_of_another_device_is_not_what_a_bench_is_told_to_decide() -> None:
    report = bench("m", device="nano", p50=0.05)
    (each,) = size_reports(budget("  latency_p50: 50 ms", "device: pi5-a"), [report], [], [], []).combinations
    assert each.next_step == "argus-edge bench m --device nano --threads 4"


def test_an_entry_of_the_inventory_is_looked_ahead_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    Inventory().add(DeviceEntry(name="porch", host="pi@192.0.2.1", profile="pi5"))
    (each,) = size_reports(budget("  latency_p50: 1 s"), [], [], [bundle()], [], ["porch"]).combinations
    assert (each.device, each.fit) == ("porch", "not measured")
    assert each.next_step.endswith("--device porch")
    assert each.floor_s == pytest.approx(0.0573, rel=0.01)


def test_argus_is_computed_where_no_score_report_is_given(tmp_path: Path) -> None:
    cells = {("retrieval", "coco"): 0.6, ("retrieval", "vg"): 0.5}
    hit = {place: {("image", "fog", 1): 0.8 * rate} for place, rate in cells.items()}
    for name in ("a", "b"):
        write_artifact(bench(name).artifact, tmp_path / f"{name}.bench.json")
        write_artifact(evaluation(name, cells, perturbed=hit).artifact, tmp_path / f"{name}.eval.json")
    (tmp_path / "b.yaml").write_text("budget: 1\nlimits: {latency_p50: 60 ms}")
    sizing = size_files([tmp_path], budget=tmp_path / "b.yaml")
    assert all(each.argus is not None for each in sizing.combinations)
    assert "ARGUS" in sizing.pareto_over
    # What does not belong together gives none, and says why.
    other = evaluation("b", cells, perturbed=hit, dataset_sha="other").artifact
    write_artifact(other, tmp_path / "b.eval.json")
    sizing = size_files([tmp_path], budget=tmp_path / "b.yaml")
    assert [each.argus for each in sizing.combinations] == [None, None]
    assert any("No ARGUS" in note and "dataset hash" in note for note in sizing.notes)
