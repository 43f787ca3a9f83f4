"""The benchmarks' made-up reports are ones that the score takes: a column that it asks for since is in them as well."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from argus_edge.score.assemble import score_reports

SCALE = Path(__file__).resolve().parents[2] / "benchmarks" / "score" / "scale.py"


@pytest.mark.skipif(not SCALE.exists(), reason="not a checkout: there are no benchmarks")
def test_the_reports_of_the_scale_benchmark_are_scored() -> None:
    script = runpy.run_path(str(SCALE))
    script["report"].__globals__["IMAGES"] = 20
    report = score_reports([script["report"](model) for model in (0, 9)], [], replicates=20)
    low, high = (model.scores.capability.value for model in sorted(report.models, key=lambda model: model.name))
    assert low < high
