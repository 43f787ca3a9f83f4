"""Every parser of what a board or a stranger wrote, on inputs in order and on damaged ones: a refusal by name, or none.

The same targets as ``benchmarks/fuzz``, which lets a coverage-guided fuzzer at them for longer.
"""

from __future__ import annotations

import functools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.fuzz.targets import TARGETS, run


@functools.cache
def seeds(name: str) -> list[bytes]:
    return list(TARGETS[name].seeds())


@st.composite
def damaged(draw, name: str) -> bytes:
    """A seed with some pieces taken out, doubled, overwritten, or replaced by a word of the format."""
    data = draw(st.sampled_from(seeds(name)))
    words = [word.encode() for word in TARGETS[name].dictionary] or [b"\0"]
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.sampled_from([0, 1, 1, 4, 16, 10_000])))
        put = draw(st.one_of(st.just(b""), st.binary(max_size=8), st.sampled_from(words), st.just(data[start:end] * 2)))
        data = data[:start] + put + data[end:]
    return data


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_in_order_is_taken(name):
    assert seeds(name)
    for seed in seeds(name):
        TARGETS[name].parse(seed)


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_damaged_is_refused_by_name_or_taken(name):
    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    @given(damaged(name))
    def check(data):
        run(TARGETS[name], data)

    check()


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.binary(max_size=300))
def test_noise_is_refused_by_name_or_taken(name, data):
    run(TARGETS[name], data)
