"""Outputs against golden outputs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from argus_edge.agents.parity import cases_of, compare_golden, difference
from argus_edge.schema.agent import ParityFigures

ARRAYS = hnp.arrays(np.float32, (7,), elements=st.floats(-1e6, 1e6, width=32))


@given(ARRAYS, ARRAYS)
def test_the_error_is_the_largest_difference_and_the_cosine_the_cosine(a, b) -> None:
    error, cosine = difference(a, b)
    x, y = a.astype(float), b.astype(float)
    assert error == pytest.approx(np.abs(x - y).max())
    norms = np.linalg.norm(x) * np.linalg.norm(y)
    if norms > 1e-30 and error:
        assert cosine == pytest.approx(float(x @ y) / norms, abs=1e-6)
    assert -1.0000001 <= cosine <= 1.0000001


@pytest.mark.parametrize(
    ("found", "expected", "error", "cosine"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0, 1.0),
        ([0.0, 0.0], [0.0, 0.0], 0.0, 1.0),
        ([0.0, 0.0], [1.0, 0.0], 1.0, 0.0),
        ([], [], 0.0, 1.0),
        ([math.inf, 1.0], [math.inf, 1.0], 0.0, 1.0),
        ([math.nan, 1.0], [math.nan, 1.5], 0.5, 1.0),
        ([math.nan, 1.0], [2.0, 1.0], float(np.finfo(float).max), -1.0),
        ([2.0, 1.0], [math.inf, 1.0], float(np.finfo(float).max), -1.0),
        ([1e308, 1.0], [1e308, 1.0], 0.0, 1.0),
        ([3, 4], [4, 3], 1.0, 0.96),
    ],
)
def test_special_values(found, expected, error, cosine) -> None:
    got = difference(np.array(found), np.array(expected))
    assert got == pytest.approx((error, cosine))
    assert all(math.isfinite(value) for value in got)


def test_the_worst_over_cases_and_outputs_counts() -> None:
    golden = {
        "in/x/0": np.array([1.0]),
        "out/y/z/0": np.array([2.0]),
        "out/w/0": np.array([3.0]),
        "in/x/10": np.array([2.0]),
        "out/y/z/10": np.array([4.5]),
        "out/w/10": np.array([4.0]),
    }
    seen = []

    def infer(inputs):
        seen.append(float(inputs["x"][0]))
        return {"y/z": 2 * inputs["x"], "w": inputs["x"] + 2}

    figures = ParityFigures.model_validate(compare_golden(infer, golden))
    assert seen == [1.0, 2.0]
    assert figures.cases == 2
    assert figures.outputs == {"y/z": 0.5, "w": 0.0}
    assert figures.max_abs_error == 0.5


@pytest.mark.parametrize(
    "golden", [{}, {"x": 1}, {"in/x/0": 1}, {"out/y/0": 1}, {"in/0": 1, "out/y/0": 1}, {"in/x/0": 1, "out/y/1": 1}]
)
def test_a_golden_file_that_is_none_is_refused(golden) -> None:
    with pytest.raises(Exception, match="golden"):
        cases_of(golden)


def test_another_shape_is_an_error_not_a_broadcast() -> None:
    with pytest.raises(Exception, match="shape"):
        difference(np.zeros((1, 3)), np.zeros((3,)))
