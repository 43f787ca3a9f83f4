"""The gate: a line passes only if its whole interval does, an invalid run never, and a lost board hides nothing."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_edge.errors import InputError
from argus_edge.gate.budget import Limit, parse_budget
from argus_edge.gate.decide import headroom, outcome_of, worst
from argus_edge.gate.figures import Figure
from argus_edge.gate.metrics import METRICS
from argus_edge.gate.validate import validate_files, validate_reports
from argus_edge.report.junit import junit_xml
from argus_edge.report.verdict_table import remark
from argus_edge.schema.agent import ParityFigures
from argus_edge.schema.base import Source
from argus_edge.schema.bench import Estimate
from argus_edge.schema.evaluation import Interval, Metric
from tests.support.reports import bench, evaluation


def budget(limits: str, rest: str = ""):
    return parse_budget(f"budget: 1\nname: b\nlimits:\n{limits}\n{rest}", Source(name="b.yaml"), "b.yaml")


def at_most(value: float) -> Limit:
    return Limit(METRICS["latency_p50"], value, str(value), 1)


def at_least(value: float) -> Limit:
    return Limit(METRICS["throughput"], value, str(value), 1)


@pytest.mark.parametrize(
    ("limit", "figure", "outcome"),
    [
        (at_most(1.0), Figure(0.8, 0.7, 0.9), "pass"),
        (at_most(1.0), Figure(0.8, 0.7, 1.0), "pass"),
        (at_most(1.0), Figure(0.8, 0.7, 1.01), "unknown"),
        (at_most(1.0), Figure(1.2, 0.9, 1.4), "unknown"),
        (at_most(1.0), Figure(1.2, 1.0, 1.4), "unknown"),
        (at_most(1.0), Figure(1.2, 1.1, 1.4), "fail"),
        (at_most(1.0), Figure(0.8, 0.7, None), "unknown"),
        (at_most(1.0), Figure(1.2, 1.1, None), "fail"),
        (at_most(1.0), Figure(None), "unknown"),
        (at_least(10), Figure(12, 11, 13), "pass"),
        (at_least(10), Figure(12, 9, 13), "unknown"),
        (at_least(10), Figure(8, 7, 9), "fail"),
        (at_least(10), Figure(12, None, 13), "unknown"),
    ],
)
def test_the_whole_interval_decides(limit: Limit, figure: Figure, outcome: str) -> None:
    assert outcome_of(limit, figure) == outcome


@given(st.floats(0.01, 100), st.floats(0.01, 100), st.floats(0, 5), st.floats(0, 5))
def test_no_figure_both_passes_and_fails_and_a_wider_interval_never_decides_more(
    limit: float, value: float, down: float, up: float
) -> None:
    narrow = outcome_of(at_most(limit), Figure(value, value - down, value + up))
    wide = outcome_of(at_most(limit), Figure(value, value - 2 * down - 1, value + 2 * up + 1))
    assert wide in (narrow, "unknown")


def test_headroom() -> None:
    assert headroom(at_most(1.0), 0.8) == pytest.approx(0.2)
    assert headroom(at_least(10), 12) == pytest.approx(0.2)
    assert headroom(at_most(1.0), 1.3) == pytest.approx(-0.3)
    assert headroom(at_most(0.0), 1.3) is None


def test_worst() -> None:
    assert worst(["pass", "unknown", "fail"]) == "fail"
    assert worst(["pass", "unknown"]) == "unknown"
    assert worst([]) == "unknown"


def test_a_passing_run_ships() -> None:
    verdict = validate_reports(budget("  latency_p95: 120 ms\n  peak_memory: 900 MB"), [bench("a")], [])
    assert verdict.outcome == "pass"
    assert [line.outcome for line in verdict.lines] == ["pass", "pass"]
    assert "to spare" in verdict.cause


def test_a_failing_line_blocks_and_is_named() -> None:
    verdict = validate_reports(budget("  latency_p95: 40 ms\n  peak_memory: 900 MB"), [bench("a")], [])
    assert verdict.outcome == "fail"
    assert "latency_p95 is 60.0 ms, the budget allows at most 40 ms" in verdict.cause


@pytest.mark.parametrize("valid", [False, None])
def test_a_run_that_is_not_known_to_be_valid_never_passes(valid: bool | None) -> None:
    verdict = validate_reports(budget("  latency_p95: 120 ms"), [bench("a", valid=valid)], [])
    assert verdict.outcome == "unknown"
    assert "valid" in verdict.lines[0].reason


def test_an_invalid_run_that_fails_still_fails() -> None:
    assert validate_reports(budget("  latency_p95: 1 ms"), [bench("a", valid=False)], []).outcome == "fail"


def test_a_figure_that_was_not_measured_is_unknown_with_its_reason() -> None:
    verdict = validate_reports(budget("  energy: 1 J\n  temperature: 80 C\n  parity_cosine: 0.99"), [bench("a")], [])
    assert [line.outcome for line in verdict.lines] == ["unknown"] * 3
    assert all(line.reason for line in verdict.lines)


def test_throughput_is_read_from_the_offline_run_and_latency_is_not() -> None:
    runs = [bench("a"), bench("a", scenario="offline", throughput=100.0, p50=9.0)]
    verdict = validate_reports(budget("  throughput: 90\n  latency_p50: 100 ms"), runs, [])
    assert [line.measured for line in verdict.lines] == [100.0, 0.05]


def test_a_budget_of_another_device_is_an_error() -> None:
    with pytest.raises(InputError, match="no bench report is of that device"):
        validate_reports(budget("  latency_p95: 1 s", "device: jetson-nano"), [bench("a")], [])


def test_capability_and_a_dataset_s_metric_are_read_from_the_eval_report() -> None:
    report = evaluation("a", {("retrieval", "coco"): 0.6}, images=500)
    report.artifact.cells[0].clean.metrics["r1_i2t"] = Metric(value=0.6, interval=Interval(low=0.55, high=0.65), n=500)
    verdict = validate_reports(
        budget("  capability: 0.5\n  coco.r1_i2t: 0.58\n  coco.nope: 0.1\n  vg.r1_i2t: 0.1"), [], [report]
    )
    assert [line.outcome for line in verdict.lines] == ["pass", "unknown", "unknown", "unknown"]
    assert verdict.lines[1].reason == "the interval spans the limit: evaluate more images"
    assert "no metric 'nope'" in verdict.lines[2].reason
    assert "no dataset 'vg'" in verdict.lines[3].reason


def ranked(name: str, precision: str, value: float, *, dataset: str = "coco", half: float = 0.003, **facts: object):
    """An eval report of a file of clip with one metric of one dataset."""
    found = evaluation(name, {("retrieval", dataset): value}, **facts)
    found.artifact.model.precision = precision
    found.artifact.model.source_id = "clip"
    found.artifact.cells[0].clean.metrics["r1_i2t"] = Metric(
        value=value, interval=Interval(low=value - half, high=value + half), n=200
    )
    return found


def test_the_drop_is_against_the_fp32_report() -> None:
    report = ranked
    held = budget("  coco.r1_i2t.drop: 0.02")
    both = [report("int8", "int8", 0.59), report("fp32", "fp32", 0.60)]
    verdict = validate_reports(held, [bench("int8")], both)
    (line,) = verdict.lines
    assert line.measured == pytest.approx(0.01)
    assert line.high == pytest.approx(0.01 + 0.003 * 2**0.5)
    assert line.outcome == "pass"
    alone = validate_reports(held, [bench("int8")], both[:1])
    assert "fp32" in alone.lines[0].reason


def test_a_median_rank_is_better_where_it_is_lower() -> None:
    def report(name: str, precision: str, value: float):
        found = evaluation(name, {("retrieval", "coco"): 0.6})
        found.artifact.model.precision = precision
        found.artifact.model.source_id = "clip"
        found.artifact.cells[0].clean.metrics["medr_i2t"] = Metric(
            value=value, interval=Interval(low=value - 1, high=value + 1), higher_is_better=False, n=200
        )
        return found

    both = [report("int8", "int8", 9), report("fp32", "fp32", 4)]
    verdict = validate_reports(budget("  coco.medr_i2t: 6\n  coco.medr_i2t.drop: 2"), [bench("int8")], both)
    outcomes = {(line.model, line.metric): line.outcome for line in verdict.lines}
    assert outcomes["int8", "coco.medr_i2t"] == "fail"
    assert outcomes["int8", "coco.medr_i2t.drop"] == "fail"
    drop = next(line for line in verdict.lines if line.metric == "coco.medr_i2t.drop" and line.model == "int8")
    assert drop.measured == 5


FLEET = "quorum:\n  pass: 3\n  of: [a, b, c, d]"


def fleet(latencies: dict[str, float]):
    return [bench("m", device=name, p50=p50) for name, p50 in latencies.items()]


def test_a_quorum_passes_with_enough_boards() -> None:
    verdict = validate_reports(
        budget("  latency_p50: 60 ms", FLEET), fleet({"a": 0.05, "b": 0.05, "c": 0.05, "d": 0.09}), []
    )
    assert verdict.outcome == "pass"
    assert verdict.quorums[0].failed == ["d"]


def test_a_board_that_was_not_reached_is_reported_apart_and_leaves_it_open() -> None:
    verdict = validate_reports(budget("  latency_p50: 60 ms", FLEET), fleet({"a": 0.05, "b": 0.05}), [])
    assert verdict.outcome == "unknown"
    assert verdict.quorums[0].not_reached == ["c", "d"]
    assert verdict.notes == ["m: not reached: c, d"]


def test_a_board_that_was_not_reached_never_hides_a_regression() -> None:
    verdict = validate_reports(budget("  latency_p50: 60 ms", FLEET), fleet({"a": 0.05, "b": 0.09, "c": 0.09}), [])
    assert verdict.outcome == "fail"


def test_junit_counts_and_escapes() -> None:
    report = bench("<b>&\x1b[31m")
    verdict = validate_reports(budget("  latency_p95: 120 ms\n  latency_p50: 1 ms\n  energy: 1 J"), [report], [])
    root = ET.fromstring(junit_xml(verdict))
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("3", "1", "1")
    assert root[0].get("name") == "<b>& on pi5"


def test_validate_as_a_command(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from argus_edge.artifacts import write_artifact
    from argus_edge.cli.main import cli

    write_artifact(bench("a").artifact, tmp_path / "bench.json")
    (tmp_path / "b.yaml").write_text("budget: 1\nlimits: {latency_p50: 60 ms}")
    (tmp_path / "tight.yaml").write_text("budget: 1\nlimits: {latency_p50: 1 ms}")

    def run(*arguments: str):
        return CliRunner().invoke(cli, ["validate", str(tmp_path / "bench.json"), *arguments], standalone_mode=False)

    good = run("--budget", str(tmp_path / "b.yaml"), "--junit", str(tmp_path / "j.xml"))
    assert good.return_value == 0
    assert good.stdout.startswith("SHIP")
    assert (tmp_path / "j.xml").exists()
    bad = run("--budget", str(tmp_path / "tight.yaml"))
    assert bad.return_value == 1
    assert bad.stdout.startswith("BLOCK")


def test_a_report_of_a_window_of_no_time_is_no_fault_of_ours() -> None:
    found = bench("a", spread=0.3)
    found.artifact.measurements[0].figures.window_s = 0.0
    (line,) = validate_reports(budget("  latency_p95: 60 ms"), [found], []).lines
    assert (line.outcome, line.needed_samples) == ("unknown", None)


def test_strict_is_about_the_runs_that_count(tmp_path: Path) -> None:
    from argus_edge.artifacts import write_artifact

    (tmp_path / "b.yaml").write_text("budget: 1\nlimits: {latency_p50: 60 ms}")
    first = bench("a", valid=False).artifact
    write_artifact(first, tmp_path / "first.json")
    assert validate_files([tmp_path], budget=tmp_path / "b.yaml", strict=True).outcome == "fail"
    again = bench("a").artifact
    write_artifact(again.model_copy(update={"created": first.created + timedelta(1)}), tmp_path / "again.json")
    assert validate_files([tmp_path], budget=tmp_path / "b.yaml", strict=True).outcome == "pass"


def test_a_single_real_run_is_judged_by_its_own_samples_not_by_a_spread_over_one_run() -> None:
    # A report of one run has a summary over its repeats as well: of one, and so without an interval.
    found = bench("a", p50=0.05)
    found.artifact.summary = {"p50": Estimate(value=0.05, n=1, reason="too few runs for an interval (3 are needed)")}
    verdict = validate_reports(budget("  latency_p50: 60 ms"), [found], [])
    assert verdict.outcome == "pass"
    assert verdict.lines[0].low is not None


def test_two_runs_have_no_interval_and_say_so() -> None:
    found = bench("a", p50=0.05)
    found.artifact.measurements = found.artifact.measurements * 2
    found.artifact.summary = {"p50": Estimate(value=0.05, n=2, reason="too few runs for an interval (3 are needed)")}
    line = validate_reports(budget("  latency_p50: 60 ms"), [found], []).lines[0]
    assert line.outcome == "unknown"
    assert line.reason == "too few runs for an interval (3 are needed)"


def test_parity_of_a_model_in_parts_is_its_worst_component_s() -> None:
    found = bench("a")
    part = found.artifact.measurements[0].model_copy(deep=True)
    part.component = "image"
    part.parity = ParityFigures(cases=1, max_abs_error=0.1, cosine_min=0.97)
    found.artifact.measurements.append(part)
    line = validate_reports(budget("  parity_cosine: 0.99"), [found], []).lines[0]
    assert (line.outcome, line.measured) == ("fail", 0.97)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_figure_that_is_no_number_is_no_report(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        Estimate(value=value)


def test_a_median_outside_the_interval_of_the_mean_is_not_passed_over() -> None:
    assert outcome_of(at_most(1.0), Figure(1.1, 0.8, 0.9)) == "unknown"
    assert outcome_of(at_least(10), Figure(9, 11, 12)) == "unknown"


@pytest.mark.parametrize(("failing", "failures", "outcome"), [(1, 0, "pass"), (2, 1, "fail")])
def test_for_a_fleet_junit_comes_to_the_verdict_of_the_quorum(failing: int, failures: int, outcome: str) -> None:
    held = budget("  latency_p50: 60 ms", "quorum: {pass: 3, of: [b0, b1, b2, b3]}")
    boards = [bench("a", device=f"b{n}", p50=0.2 if n < failing else 0.05) for n in range(4)]
    verdict = validate_reports(held, boards, [])
    root = ET.fromstring(junit_xml(verdict))
    assert verdict.outcome == outcome
    assert root.get("failures") == str(failures)
    assert root.get("tests") == "5"
    assert "fail: measured 200 ms" in (root.findtext(".//testsuite[@name='a on b0']/testcase/system-out") or "")


def test_boards_that_were_not_reached_are_named_where_they_leave_the_quorum_open() -> None:
    held = budget("  latency_p50: 60 ms", "quorum: {pass: 3, of: [b0, b1, b2, b3]}")
    verdict = validate_reports(held, [bench("a", device="b0"), bench("a", device="b1")], [])
    assert verdict.outcome == "unknown"
    assert verdict.cause == "a: 2 of 4 boards pass, 3 must; not reached: b2, b3"


def test_a_model_s_eval_reports_count_together_whatever_their_order() -> None:
    parts = [ranked("a", "int8", 0.6, dataset="coco"), ranked("a", "int8", 0.5, dataset="mine")]
    held = budget("  coco.r1_i2t: 0.5\n  mine.r1_i2t: 0.4\n  capability: 0.4")
    for evals in (parts, parts[::-1]):
        verdict = validate_reports(held, [], evals)
        assert [line.measured for line in verdict.lines] == pytest.approx([0.6, 0.5, 0.55])
        assert verdict.outcome == "pass"


def test_the_drop_is_against_the_fp32_report_of_the_same_dataset() -> None:
    evals = [
        ranked("int8", "int8", 0.59),
        ranked("fp32", "fp32", 0.60),
        ranked("fp32", "fp32", 0.9, dataset="mine"),
    ]
    (line,) = validate_reports(budget("  coco.r1_i2t.drop: 0.02"), [bench("int8")], evals).lines
    assert (line.measured, line.outcome) == (pytest.approx(0.01), "pass")


@pytest.mark.parametrize(
    ("facts", "named"), [({"dataset_sha": "other"}, "the dataset hash of coco"), ({"prompt": "other"}, "the prompt")]
)
def test_a_drop_between_reports_of_other_data_is_refused_by_name(facts: dict[str, str], named: str) -> None:
    evals = [ranked("int8", "int8", 0.59), ranked("fp32", "fp32", 0.60, **facts)]
    with pytest.raises(InputError, match=named) as refused:
        validate_reports(budget("  coco.r1_i2t.drop: 0.02"), [bench("int8")], evals)
    assert refused.value.where == "int8.eval.json and fp32.eval.json"
    # Without a drop they need not belong together.
    assert validate_reports(budget("  coco.r1_i2t: 0.5"), [bench("int8")], evals).outcome == "pass"


def test_the_fp32_model_has_no_drop_against_itself() -> None:
    evals = [ranked("int8", "int8", 0.59), ranked("fp32", "fp32", 0.60)]
    verdict = validate_reports(budget("  coco.r1_i2t.drop: 0.02"), [bench("int8"), bench("fp32")], evals)
    assert {line.model: line.measured for line in verdict.lines} == {"int8": pytest.approx(0.01), "fp32": 0.0}
    assert verdict.outcome == "pass"


def test_an_undecided_metric_of_a_dataset_says_how_many_more_images_would_decide() -> None:
    (line,) = validate_reports(
        budget("  coco.r1_i2t: 0.60"), [], [ranked("a", "int8", 0.62, half=0.04, images=200)]
    ).lines
    assert "evaluate more images" in line.reason
    # [0.04 (1 + 0.84 / 1.96) / 0.02]^2 times 200 images, less the 200.
    assert (line.needed_samples, line.needed_of) == (pytest.approx(1433, abs=1), "images")
    assert remark(line).endswith("evaluate more images; about 1,433 more images")


def test_an_undecided_throughput_says_how_much_longer_would_decide() -> None:
    found = bench("a", throughput=100.0, spread=0.04)
    (line,) = validate_reports(budget("  throughput: 98"), [found], []).lines
    assert line.outcome == "unknown"
    # [4 (1 + 0.84 / 1.96) / 2]^2 - 1 times what was measured: 50 s and 1,000 calls.
    assert line.needed_s == pytest.approx(358, abs=1)
    assert line.needed_samples == pytest.approx(7163, abs=5)


def test_an_undecided_figure_over_runs_says_how_many_more_runs_would_decide() -> None:
    found = bench("a", p50=0.05)
    found.artifact.measurements = found.artifact.measurements * 3
    found.artifact.summary = {"p50": Estimate(value=0.05, low=0.046, high=0.054, n=3)}
    (line,) = validate_reports(budget("  latency_p50: 52 ms"), [found], []).lines
    assert (line.needed_samples, line.needed_of) == (pytest.approx(22, abs=1), "runs")
    assert "--runs" in line.reason


@pytest.mark.parametrize("kind", ["animal", "yes/no", "how many"])
def test_a_part_of_a_metric_can_be_limited_under_the_name_that_the_report_has(kind: str) -> None:
    report = ranked("a", "int8", 0.6)
    report.artifact.cells[0].clean.metrics[f"accuracy.{kind}"] = Metric(
        value=0.8, interval=Interval(low=0.7, high=0.9), n=50
    )
    (line,) = validate_reports(budget(f"  coco.accuracy.{kind}: 60 %"), [], [report]).lines
    assert (line.measured, line.outcome) == (0.8, "pass")
    original = ranked("b", "fp32", 0.6)
    original.artifact.cells[0].clean.metrics.update(report.artifact.cells[0].clean.metrics)
    (line,) = validate_reports(budget(f"  coco.accuracy.{kind}.drop: 20 %"), [bench("a")], [report, original]).lines
    assert (line.measured, line.outcome) == (0.0, "pass")
