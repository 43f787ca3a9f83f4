"""Sizing: what fits first, the front, and what a profile's roofline rules out before a board is on the desk."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_edge.devices import profiles
from argus_edge.errors import InputError
from argus_edge.gate.budget import parse_budget
from argus_edge.gate.foresight import latency_floor, rulings
from argus_edge.gate.pareto import dominates, front
from argus_edge.gate.sizing import size_reports
from argus_edge.reports import Found
from argus_edge.schema.base import Source
from argus_edge.schema.bundle import BundleFile, BundleManifest, Component, MacCount, Step, UnitOfWork
from tests.support.reports import bench, found_in, sha


def budget(limits: str):
    return parse_budget(f"budget: 1\nlimits:\n{limits}\n", Source(name="b.yaml"), "b.yaml")


def bundle(
    name: str = "clip", *, gmacs: float = 4.4, weights: int = 350_000_000, opset: int = 18, precision: str = "fp32"
) -> Found:
    component = Component(
        name="image",
        role="image-encoder",
        format="onnx",
        precision=precision,  # type: ignore[arg-type]
        file=BundleFile(path="image.onnx", sha256=sha("f"), bytes=weights + 1000),
        inputs=[],
        outputs=[],
        params=weights // 4,
        weight_bytes=weights,
        macs=[MacCount(dims={"batch": 1}, macs=int(gmacs * 1e9), by_counter={}, disagreement=0.0)],
        opset=opset,
        ir_version=8,
        converter="by hand",
    )
    return found_in(
        f"{name}/manifest.json",
        BundleManifest(
            name=name,
            family="clip",
            architecture="CLIPModel",
            source_id=name,
            format="onnx",
            precision=precision,  # type: ignore[arg-type]
            random_weights=True,
            parity_passed=True,
            components=[component],
            unit_of_work=UnitOfWork(
                task="retrieval", description="one image", steps=[Step(component="image", phase="encode")]
            ),
        ),
    )


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
    assert each.next_step == "argus-edge bench m --device pi5 --until-decided b.yaml"


def test_the_floor_of_clip_on_a_pi_5_is_the_field_s_57_ms() -> None:
    own, best = latency_floor(bundle().artifact, profiles.load("pi5"))
    assert own == pytest.approx(0.0573, rel=0.01)
    assert best < own


def test_a_roofline_rules_out_what_no_way_of_running_reaches() -> None:
    pi5 = profiles.load("pi5")
    assert rulings(budget("  latency_p95: 1 ms"), bundle().artifact, pi5)[0].verdict == "cannot"
    assert rulings(budget("  latency_p95: 40 ms"), bundle().artifact, pi5)[0].verdict == "unlikely"
    assert rulings(budget("  latency_p95: 100 ms"), bundle().artifact, pi5) == []


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
    assert "argus-edge bench '$(reboot)' --device pi5 --until-decided b.yaml" in commands
    assert "argus-edge bench 'a; b' --device pi5" in commands
