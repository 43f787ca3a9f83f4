"""Which interval a latency has in the score: over repeats where there is one, else of the run's own samples."""

from __future__ import annotations

import pytest

from argus_edge.schema.bench import Estimate
from argus_edge.score.cohort import Benched
from argus_edge.score.efficiency import costs_of
from tests.support.reports import bench


@pytest.mark.parametrize("runs", [1, 2])
def test_a_summary_without_an_interval_leaves_that_of_the_samples(runs: int) -> None:
    found = bench("a", p50=0.05)
    found.artifact.summary = {"p50": Estimate(value=0.05, n=runs, reason="too few runs for an interval")}
    latency = costs_of(Benched("pi5", "pi5", latency=found)).latency_s
    assert latency is not None
    assert latency[0] == 0.05
    assert latency[1] > 0


def test_from_three_runs_on_the_spread_over_runs_counts() -> None:
    found = bench("a", p50=0.05)
    found.artifact.summary = {"p50": Estimate(value=0.06, low=0.04, high=0.08, n=3)}
    latency = costs_of(Benched("pi5", "pi5", latency=found)).latency_s
    assert latency == (0.06, pytest.approx(0.1768, abs=1e-3))
