"""Intervals on the scale, and label sets grown from the mode."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from argus_edge.errors import UsageError
from argus_edge.judge.labelsets import mass_before, set_ends
from argus_edge.judge.scale import Intervals, Scale


@pytest.mark.parametrize(("text", "levels"), [("1..5", 5), ("1-7", 7), ("10", 10), ("1 .. 3", 3)])
def test_scales_are_read(text, levels):
    assert Scale.parse(text).levels == levels


@pytest.mark.parametrize("text", ["0..5", "five", "1..1", "1..101", "", "2..5"])
def test_other_scales_are_refused(text):
    with pytest.raises(UsageError):
        Scale.parse(text)


def test_boundary_adjustment_widens():
    found = Intervals.build(np.array([1.2, 2.0, 3.0000000000000004]), np.array([3.4, 4.0, 3.9]), Scale(5))
    low, high = found.adjusted
    assert low.tolist() == [1, 2, 3]
    assert high.tolist() == [4, 4, 4]
    assert found.covers(np.array([1, 4, 3]), adjusted=True).all()


def test_infinite_ends_are_the_whole_scale_and_say_so():
    found = Intervals.build(np.array([-np.inf, 2.0, np.nan]), np.array([np.inf, 9.0, 3.0]), Scale(5))
    assert found.unbounded.tolist() == [True, False, True]
    assert (found.lower.tolist(), found.upper.tolist()) == ([1, 2, 1], [5, 5, 5])


def test_crossed_ends_meet():
    found = Intervals.build(np.array([4.0]), np.array([3.0]), Scale(5))
    assert (found.lower[0], found.upper[0]) == (3.5, 3.5)


@given(arrays(float, (7, 5), elements=st.floats(0.001, 1)))
def test_adjusted_intervals_hold_the_raw_ones(values):
    low, high = np.sort(1 + 4 * values[:, :2], axis=1).T
    found = Intervals.build(low, high, Scale(5))
    a, b = found.adjusted
    assert (a <= found.lower + 1e-5).all()
    assert (b >= found.upper - 1e-5).all()
    assert (found.width(adjusted=True) >= found.width() - 1e-4).all()


@given(arrays(float, (6, 5), elements=st.floats(0.001, 1)), st.floats(0, 1))
def test_sets_are_contiguous_hold_the_mode_and_grow(values, threshold):
    probabilities = values / values.sum(axis=1, keepdims=True)
    before = mass_before(probabilities)
    assert (before[np.arange(6), probabilities.argmax(axis=1)] == 0).all()
    included = before <= threshold
    low, high = set_ends(included)
    assert (included.sum(axis=1) == high - low + 1).all()
    assert (included <= (before <= min(1, threshold + 0.1))).all()


def test_mass_before_by_hand():
    assert mass_before(np.array([[0.1, 0.5, 0.3, 0.1]]))[0] == pytest.approx(
        [0.9, 0, 0.5, 0.8]
    )  # a tie of the neighbours goes upwards
    assert mass_before(np.array([[0.2, 0.6, 0.2]]))[0] == pytest.approx([0.8, 0, 0.6])
