"""Shares of the weight simplex, the flip points, and outranking."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_edge.score.sensitivity import first_shares, flips, outranking


def test_a_model_that_is_better_everywhere_is_first_under_every_weighting() -> None:
    assert first_shares(np.array([[0.9, 0.9, 0.9, 0.9], [0.1, 0.2, 0.3, 0.4]])).tolist() == [1.0, 0.0]


def test_two_models_that_differ_in_two_parts_share_by_symmetry() -> None:
    shares = first_shares(np.array([[1.0, 0.0, 0.5, 0.5], [0.0, 1.0, 0.5, 0.5]]))
    assert shares == pytest.approx([0.5, 0.5], abs=0.01)
    assert shares.sum() == pytest.approx(1.0)


def test_equal_models_share_first_place() -> None:
    assert first_shares(np.ones((3, 4))) == pytest.approx([1 / 3] * 3)


def test_the_flip_of_two_models_is_where_their_lines_cross() -> None:
    # Δm = 0.2, ΔE = -0.6: x* = 0.2 / (0.2 + 0.6) = 0.25
    ((at, before, after),) = flips([0.8, 0.6], [0.3, 0.9])
    assert (at, before, after) == (pytest.approx(0.25), 0, 1)


def test_no_flip_where_one_model_leads_in_both() -> None:
    assert flips([0.8, 0.6], [0.9, 0.3]) == []


def test_a_model_that_never_leads_is_in_no_flip() -> None:
    # The middle one lies below the envelope of the other two.
    assert [(b, a) for _, b, a in flips([1.0, 0.4, 0.0], [0.0, 0.4, 1.0])] == [(0, 2)]


@given(
    st.lists(
        st.tuples(st.floats(0, 1).map(lambda v: round(v, 3)), st.floats(0, 1).map(lambda v: round(v, 3))),
        min_size=1,
        max_size=6,
    )
)
def test_flips_follow_the_leader_along_the_whole_axis(models: list[tuple[float, float]]) -> None:
    m, e = np.array(models).T
    turns = flips(list(m), list(e))
    edges = [0.0, *(at for at, _, _ in turns), 1.0]
    assert edges == sorted(edges)
    leader = turns[0][1] if turns else int(max(range(len(m)), key=lambda i: (m[i], e[i])))
    for low, high, turn in zip(edges, edges[1:], [*turns, None], strict=False):
        x = (low + high) / 2
        scores = (1 - x) * m + x * e
        assert scores[leader] == pytest.approx(scores.max(), abs=1e-9)
        if turn is not None:
            assert turn[1] == leader
            leader = turn[2]


def test_outranking_counts_ties_half_and_leaves_out_missing_replicates() -> None:
    p = outranking(np.array([[1.0, 2.0, 3.0, np.nan], [1.0, 1.0, 4.0, 0.0]]))
    assert p[0, 1] == pytest.approx((0.5 + 1 + 0) / 3)
    assert p[0, 1] + p[1, 0] == pytest.approx(1.0)
    assert p[0, 0] == 0.5
