"""Compare: at the level of runs, dropped by cause and never by value, with what else changed."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from argus_edge.artifacts import write_artifact
from argus_edge.cli.main import cli
from argus_edge.errors import InputError
from argus_edge.gate import student, welch
from argus_edge.gate.compare import compare_reports
from argus_edge.report.comparison_table import print_comparison
from argus_edge.schema.bench import Estimate, ValidityCause
from tests.support.reports import bench


def runs(values: list[float], side: int, **facts: object):
    """Reports of one repeat each; ``side`` 0 and 1 take turns in time."""
    found = []
    for index, value in enumerate(values):
        each = bench("m", p50=value)
        each.artifact.measurements[0].window_wall = 1000.0 + 100 * (2 * index + side)
        for name, fact in facts.items():
            setattr(each.artifact.device.facts, name, fact)
        found.append(each)
    return found


def latency(comparison):
    return next(figure for figure in comparison.figures if figure.figure == "latency_p50")


FIVE = [0.100, 0.101, 0.099, 0.1005, 0.0995]


@pytest.mark.parametrize(
    ("df", "level", "t"), [(1, 0.975, 12.7062), (4, 0.975, 2.7764), (8, 0.975, 2.3060), (30, 0.95, 1.6973)]
)
def test_student_quantiles_are_the_tables(df: float, level: float, t: float) -> None:
    assert student.quantile(level, df) == pytest.approx(t, abs=1e-4)


@given(st.floats(1, 200), st.floats(0.51, 0.999))
def test_student_is_scipys(df: float, level: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    assert student.quantile(level, df) == pytest.approx(stats.t.ppf(level, df), rel=1e-8)


def test_welch_is_scipys() -> None:
    stats = pytest.importorskip("scipy.stats")
    a, b = [1.0, 1.1, 0.95, 1.02], [1.2, 1.15, 1.3]
    ratio = welch.unpaired(a, b)
    interval = stats.ttest_ind(np.log(b), np.log(a), equal_var=False).confidence_interval(0.95)
    assert ratio.interval == pytest.approx((interval.low, interval.high))


@pytest.mark.parametrize(
    ("ratio", "half", "lower", "higher"),
    [
        (0.10, 0.02, "worse", "better"),
        (-0.10, 0.02, "better", "worse"),
        (0.0, 0.01, "no difference", "no difference"),
        (0.015, 0.03, "no difference found", "no difference found"),
        (0.05, 0.2, "too few runs", "too few runs"),
    ],
)
def test_outcomes(ratio: float, half: float, lower: str, higher: str) -> None:
    figure = welch.Ratio(ratio, half, half)
    assert welch.outcome_of(figure, lower_is_better=True) == lower
    assert welch.outcome_of(figure, lower_is_better=False) == higher


def test_a_ten_percent_slow_down_is_worse() -> None:
    comparison = compare_reports(runs(FIVE, 0), runs([value * 1.1 for value in FIVE], 1))
    figure = latency(comparison)
    assert figure.outcome == "worse"
    assert figure.change == pytest.approx(0.1)
    assert comparison.warnings == []


def test_the_same_against_the_same_is_no_difference() -> None:
    assert latency(compare_reports(runs(FIVE, 0), runs(FIVE[::-1], 1))).outcome == "no difference"


def test_two_runs_a_side_are_too_few_however_alike() -> None:
    figure = latency(compare_reports(runs(FIVE[:2], 0), runs(FIVE[:2], 1)))
    assert figure.outcome == "too few runs"
    assert figure.runs_needed >= 3


def test_scattered_runs_say_how_many_are_needed() -> None:
    figure = latency(compare_reports(runs([0.08, 0.1, 0.13], 0), runs([0.09, 0.12, 0.1], 1)))
    assert figure.outcome == "too few runs"
    assert figure.runs_needed > 3


@given(st.floats(0.01, 0.5))
def test_runs_needed_is_enough_and_not_more(sd: float) -> None:
    count = welch.runs_needed(sd)
    if count is not None:

        def half(n: int) -> float:
            return student.quantile(0.975, 2 * n - 2) * sd * math.sqrt(2 / n)

        assert half(count) <= math.log(1.05)
        assert count == 3 or half(count - 1) > math.log(1.05)


def test_invalid_runs_are_dropped_by_their_cause() -> None:
    bad = bench("m", p50=0.5, valid=False)
    comparison = compare_reports([*runs(FIVE, 0), bad], runs(FIVE, 1))
    assert [run.side for run in comparison.dropped] == ["baseline"]
    assert 0.5 not in latency(comparison).baseline


def test_a_comparison_of_nothing_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    print_comparison(compare_reports([bench("m", valid=False)], [bench("m")]))
    shown = " ".join(capsys.readouterr().out.split())
    assert "Nothing could be compared" in shown
    assert "left out: baseline run" in shown


@pytest.mark.parametrize("candidate_valid", [None, False], ids=["was not reached", "has no good run"])
def test_a_board_that_the_candidate_lacks_leaves_the_gate_undecided(tmp_path: Path, candidate_valid) -> None:
    for number, each in enumerate([*runs(FIVE, 0), bench("m", device="nano")]):
        write_artifact(each.artifact, tmp_path / "before" / f"{number}.json")
    after = runs(FIVE, 1)
    if candidate_valid is False:
        after.append(bench("m", device="nano", valid=False))
    for number, each in enumerate(after):
        each.artifact.run += "-again"
        write_artifact(each.artifact, tmp_path / "after" / f"{number}.json")
    sides = ["--baseline", str(tmp_path / "before"), "--candidate", str(tmp_path / "after")]

    def code(*argv: str) -> int:
        return CliRunner().invoke(cli, ["compare", *argv], standalone_mode=False).return_value

    assert code(*sides, "--fail-on-worse", "5%") == 8
    assert code(*sides) == 0
    swapped = ["--baseline", str(tmp_path / "after"), "--candidate", str(tmp_path / "before")]
    assert code(*swapped, "--fail-on-worse", "5%") == 0, "a board that is new hides nothing"


def test_repeats_left_out_for_one_cause_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    bad = bench("m", valid=False)
    (measured,) = bad.artifact.measurements
    measured.validity.causes = [ValidityCause(code="contended", detail=name) for name in ("before", "within")]
    bad.artifact.measurements = [measured, measured.model_copy(update={"repeat": 1})]
    print_comparison(compare_reports([bad], [bench("m")]))
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.count("left out") == 1
    assert "end-to-end: contended (2 repeats)" in shown


def test_a_side_that_ran_wholly_first_is_warned_about() -> None:
    later = runs(FIVE, 1)
    for each in later:
        each.artifact.measurements[0].window_wall += 1e6
    assert any("interleave" in line for line in compare_reports(runs(FIVE, 0), later).warnings)


def test_what_else_changed_is_warned_about_and_what_is_meant_to_is_not() -> None:
    sides = runs(FIVE, 0, firmware="A", kernel="6.1"), runs(FIVE, 1, firmware="B", kernel="6.6")
    comparison = compare_reports(*sides, varying=["firmware"])
    assert [(change.fact, change.expected) for change in comparison.environment] == [
        ("firmware", True),
        ("kernel", False),
    ]
    assert len(comparison.warnings) == 1
    assert "kernel changed too: 6.1 -> 6.6" in comparison.warnings[0]


def test_what_was_meant_to_vary_and_did_not_is_said() -> None:
    assert (
        "firmware was meant to vary and did not"
        in compare_reports(runs(FIVE, 0), runs(FIVE, 1), varying=["firmware"]).warnings
    )


def test_where_nothing_is_compared_nothing_is_said_of_what_was_meant_to_vary() -> None:
    warnings = compare_reports([bench("m", valid=False)], [bench("m")], varying=["firmware"]).warnings
    assert not any("meant to vary" in warning for warning in warnings)


def test_boards_are_paired_so_that_a_slow_board_hides_nothing() -> None:
    baseline, candidate = [], []
    for index, speed in enumerate([0.05, 0.1, 0.2, 0.4]):
        for side, factor, into in ((0, 1.0, baseline), (1, 1.08, candidate)):
            each = bench("m", device=f"pi5-{index}", p50=speed * factor * (1 + 0.002 * index))
            each.artifact.device.facts.firmware = "AB"[side]
            into.append(each)
    comparison = compare_reports(baseline, candidate, varying=["firmware"])
    across = next(f for f in comparison.figures if f.device == "all boards" and f.figure == "latency_p50")
    assert across.paired
    assert across.outcome == "worse"
    assert across.change == pytest.approx(0.08, abs=1e-6)


def test_nothing_in_common_is_an_error() -> None:
    with pytest.raises(InputError, match="stand on both sides"):
        compare_reports([bench("a")], [bench("b")])


@pytest.mark.slow
def test_verdicts_at_a_run_to_run_sd_of_two_percent() -> None:
    """A against A is not called a change in 98 % of comparisons, a 10 % change is found in 99 %; 5 runs a side."""
    rng = np.random.default_rng(3)
    trials = 4000
    found = {1.0: 0, 1.1: 0}
    for change in found:
        for _ in range(trials):
            a, b = np.exp(0.02 * rng.standard_normal((2, 5)))
            found[change] += (
                welch.outcome_of(welch.unpaired(list(a), list(change * b)), lower_is_better=True) == "worse"
            )
    assert found[1.0] / trials <= 0.01
    assert found[1.1] / trials >= 0.99


def test_a_copy_of_a_report_is_no_further_run() -> None:
    one, other = bench("a"), bench("a")
    comparison = compare_reports([one, one, one], [other])
    assert [dropped.cause for dropped in comparison.dropped] == ["given twice", "given twice"]


def test_a_change_that_two_models_share_out_between_them_is_seen() -> None:
    def side(threads: dict[str, int], number: int):
        found = []
        for name, count in threads.items():
            for each in runs(FIVE, number):
                each.artifact.model.name = name
                each.artifact.setup.threads = count
                found.append(each)
        return found

    comparison = compare_reports(side({"m": 4, "n": 2}, 0), side({"m": 2, "n": 4}, 1))
    changes = [(change.fact, change.baseline, change.candidate) for change in comparison.environment]
    assert changes == [("threads", "2", "4"), ("threads", "4", "2")]


def test_what_only_one_side_s_further_models_have_is_no_change() -> None:
    other = bench("n")
    other.artifact.model.precision = "fp32"
    assert compare_reports([*runs(FIVE, 0), other], runs(FIVE, 1)).environment == []


def test_a_figure_that_only_one_side_has_is_named() -> None:
    after = runs(FIVE, 1)
    for each in after:
        each.artifact.measurements[0].figures.p90 = Estimate(value=None, reason="withheld")
    assert "only the baseline has latency_p90 of m / pi5 / end-to-end / single-stream" in (
        compare_reports(runs(FIVE, 0), after).warnings
    )


def test_rows_of_two_scenarios_can_be_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    sides = [[*runs(FIVE, side), *(bench("m", scenario="offline", p50=value) for value in FIVE)] for side in (0, 1)]
    for side, found in enumerate(sides):
        for index, each in enumerate(found):
            each.artifact.run = f"{side}-{index}"
    print_comparison(compare_reports(*sides), Console(width=200))
    shown = [line for line in capsys.readouterr().out.splitlines() if "latency_p50" in line]
    assert ["offline" in line for line in shown].count(True) == 1
    assert ["single-stream" in line for line in shown].count(True) == 1
