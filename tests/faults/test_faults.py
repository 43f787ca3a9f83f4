"""Faults that really happen to a real bench on a real board behind a real sshd: each ends in the right account."""

from __future__ import annotations

import concurrent.futures
import random

import pytest

from benchmarks.faults.board import why_not
from benchmarks.faults.faults import drawn, make_model, possible, strike

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
]

PAIRS = [(name, phase) for name, kind in possible().items() for phase in kind.phases] if why_not() is None else []


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("model"))


@pytest.mark.parametrize(("kind", "phase"), PAIRS, ids=[f"{kind}-{phase}" for kind, phase in PAIRS])
def test_each_kind_in_each_phase(kind, phase, model):
    result = strike(kind, phase, random.Random(f"{kind}/{phase}"), model)
    assert result["right"], result["problems"]


@pytest.mark.timeout(1200)
def test_ten_at_random(model):
    """As many as a change is given time for; ``benchmarks/faults`` does two hundred."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda number: strike(*drawn(10, number), model), range(10)))
    assert all(result["right"] for result in results), [result for result in results if not result["right"]]
