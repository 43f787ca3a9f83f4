"""Measuring on until the gate can decide: when it stops, how long it goes on, and how seldom it is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from argus_edge.bench.figures import window_figures
from argus_edge.bench.samples import Samples, encode
from argus_edge.bench.until_decided import bench_budget, level_of, until_decided
from argus_edge.errors import UsageError
from argus_edge.gate.budget import parse_budget
from argus_edge.reports import Found
from argus_edge.schema.base import Source
from argus_edge.schema.bench import Validity, ValidityCause
from tests.support.reports import bench


def budget(*lines: str):
    text = "budget: 1\nlimits:\n" + "".join(f"  {line}\n" for line in lines)
    return bench_budget(parse_budget(text, Source(name="b.yaml"), "b.yaml"))


class Board:
    """A board whose latencies are exponential around a mean, 100 a second of its own clock; loading takes 3 s."""

    def __init__(self, mean: float = 0.01, seed: int = 0, valid: list[bool] | None = None) -> None:
        self.mean, self.rng, self.valid = mean, np.random.default_rng(seed), list(valid or [])
        self.now = 0.0
        self.durations: list[float] = []

    def clock(self) -> float:
        return self.now

    def measure(self, duration: float) -> Found:
        self.now += 3 + duration
        self.durations.append(duration)
        latency = self.rng.exponential(self.mean, max(1, round(100 * duration)))
        end = np.arange(1, len(latency) + 1) * 0.01
        samples = Samples(start=end - latency, end=end, latency=latency)
        found = bench("model")
        measured = found.artifact.measurements[0]
        measured.latency = encode(latency, "ns")
        measured.figures = window_figures(samples, found.artifact.setup.scenario)
        if self.valid and not self.valid.pop(0):
            found.artifact.validity = Validity(valid=False, causes=[ValidityCause(code="contended", detail="a load")])
        return Found(Path("run.json"), "", found.artifact)


def decide(board: Board, limit_ms: float, first_s: float = 2.0, most_s: float = 600.0, p: str = "latency_p95"):
    return until_decided(
        budget(f"{p}: {limit_ms:.4f} ms"), board.measure, first_s=first_s, most_s=most_s, clock=board.clock
    )


# The 95th percentile of an exponential latency of mean 10 ms.
TRUE_P95_MS = 10 * np.log(20)


def test_the_levels_spend_five_per_cent_over_all_looks() -> None:
    assert sum(1 - level_of(look) for look in range(1, 60)) == pytest.approx(0.05)


@pytest.mark.parametrize(("limit", "outcome"), [(3 * TRUE_P95_MS, "pass"), (TRUE_P95_MS / 3, "fail")])
def test_a_clear_case_takes_one_look(limit: float, outcome: str) -> None:
    board = Board()
    decision = decide(board, limit)
    assert decision.last.verdict.outcome == outcome
    assert decision.last.verdict.level == 0.975
    assert board.durations == [2.0]


def test_a_percentile_that_few_samples_withhold_is_measured_again_for_as_long_as_it_needs() -> None:
    board = Board()
    decision = decide(board, 3 * TRUE_P95_MS, first_s=0.5)
    assert decision.last.verdict.outcome == "pass"
    assert board.durations[0] == 0.5
    assert board.durations[1] >= 1.3  # 130 samples show p95


def test_a_close_case_goes_on_each_look_at_least_twice_as_long_and_ends_decided() -> None:
    board = Board(seed=3)
    decision = decide(board, 1.1 * TRUE_P95_MS)
    assert decision.last.verdict.outcome == "pass"
    assert len(board.durations) > 1
    assert all(later >= 2 * earlier for earlier, later in zip(board.durations, board.durations[1:], strict=False))


def test_no_look_is_begun_that_the_time_does_not_allow() -> None:
    board = Board(seed=1)
    decision = decide(board, 1.03 * TRUE_P95_MS, most_s=60)
    assert decision.last.verdict.outcome == "unknown"
    assert "time is up" in decision.why
    assert board.now <= 60
    assert "and 0 s are left of 1 s" in decide(Board(seed=1), 1.03 * TRUE_P95_MS, most_s=1).why


def test_a_run_that_is_not_valid_is_measured_again_at_its_length() -> None:
    board = Board(valid=[False, True])
    decision = decide(board, 3 * TRUE_P95_MS)
    assert board.durations == [2.0, 2.0]
    assert decision.last.verdict.outcome == "pass"


def test_what_no_length_of_a_run_can_tell_ends_at_once() -> None:
    board = Board()
    decision = until_decided(
        budget(f"latency_p95: {3 * TRUE_P95_MS} ms", "energy: 1 J"), board.measure, first_s=2, most_s=600
    )
    assert decision.last.verdict.outcome == "unknown"
    assert "does not help" in decision.why
    assert len(board.durations) == 1


def test_a_budget_without_a_line_for_a_bench_is_refused() -> None:
    with pytest.raises(UsageError, match="no line that a bench can decide"):
        budget("capability: 0.4")


def test_the_last_run_alone_is_held_at_its_level_so_validate_says_the_same() -> None:
    from argus_edge.gate.validate import validate_reports

    held = budget(f"latency_p95: {1.1 * TRUE_P95_MS} ms")
    board = Board(seed=3)
    decision = until_decided(held, board.measure, first_s=2, most_s=600, clock=board.clock)
    assert validate_reports(held, [decision.last.report], []).outcome == decision.last.verdict.outcome


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.999, 1.001])
def test_looking_again_and_again_is_wrong_at_most_five_times_in_a_hundred(factor: float) -> None:
    repeats, wrong, decided = 150, 0, 0
    right = "pass" if factor > 1 else "fail"
    for seed in range(repeats):
        outcome = decide(Board(seed=seed), factor * TRUE_P95_MS, most_s=60).last.verdict.outcome
        decided += outcome != "unknown"
        wrong += outcome not in (right, "unknown")
    assert wrong / repeats <= 0.05 + 3 * (0.05 * 0.95 / repeats) ** 0.5
    assert decided > 0
