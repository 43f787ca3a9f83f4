"""Budgets: quantities with units, and errors that name the line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_edge.errors import InputError
from argus_edge.gate.budget import parse_budget
from argus_edge.gate.units import FACTORS, format_quantity, parse_quantity
from argus_edge.schema.base import Source


def budget(text: str):
    return parse_budget(text, Source(name="b.yaml"), "b.yaml")


GOOD = """\
budget: 1
name: doorbell
device: pi5
limits:
  latency_p95: 120 ms
  peak_memory: {limit: 900 MB, component: vision}
  coco.r1_i2t: 45 %
  coco.r1_i2t.drop: 0.01
quorum:
  pass: 3
  of: [a, b, c, d]
"""


def test_a_budget_is_read() -> None:
    read = budget(GOOD)
    assert read.name == "doorbell"
    assert [(limit.metric.name, limit.value, limit.line) for limit in read.limits] == [
        ("latency_p95", pytest.approx(0.12), 5),
        ("peak_memory", 9e8, 6),
        ("coco.r1_i2t", pytest.approx(0.45), 7),
        ("coco.r1_i2t.drop", 0.01, 8),
    ]
    assert read.limits[1].component == "vision"
    assert [limit.metric.direction for limit in read.limits] == ["at most", "at most", "at least", "at most"]
    assert (read.quorum.required, read.quorum.total, read.quorum.boards) == (3, 4, ("a", "b", "c", "d"))


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", None, "empty"),
        ("budget: 1\nlimits:\n  latency_p95: [", 3, "not YAML"),
        ("- a", 1, "must be a mapping"),
        ("budget: 1\nlimits:\n  latency_p95: -5 ms", 3, "below 0"),
        ("budget: 2\nlimits: {latency_p95: 1 s}", 1, "first line must be"),
        ("budget: 1\nname: x", 1, "no limits"),
        ("budget: 1\nlimits: {}", 2, "no limits"),
        ("budget: 1\nlimits:\n  latency_p96: 1 s", 3, "unknown metric 'latency_p96'"),
        ("budget: 1\nlimits:\n  latency_p95: 120", 3, "needs a unit"),
        ("budget: 1\nlimits:\n  latency_p95: 120 MB", 3, "the unit 'MB' is none of"),
        ("budget: 1\nlimits:\n  latency_p95: soon", 3, "not a quantity"),
        ("budget: 1\nlimits:\n  latency_p95: .nan", 3, "needs a unit|finite"),
        ("budget: 1\nlimits:\n  throughput: .inf", 3, "finite"),
        ("budget: 1\nlimits:\n  latency_p95: 2024-01-01", 3, "expected a quantity"),
        ("budget: 1\nlimits:\n  latency_p95: 1 s\n  latency_p95: 2 s", 4, "stands twice"),
        ("budget: 1\nlimits:\n  latency_p95: {component: a}", 3, "no limit"),
        ("budget: 1\nlimits:\n  coco.r1_i2t: 45", 3, "more than any measurement .*write 45 %"),
        ("budget: 1\nlimits:\n  coco.r1_i2t.drop: 1", 3, "allows any drop; write 1 %"),
        ("budget: 1\nlimits:\n  capability: 140 %", 3, "more than any measurement"),
        ("budget: 1\nlimits:\n  parity_cosine: 1.5", 3, "more than any measurement"),
        ("budget: 1\nlimts:\n  latency_p95: 1 s", 2, "unknown key 'limts'"),
        ("budget: 1\nlimits: {throughput: 1}\nquorum: {pass: 5, of: 4}", 3, "can never pass"),
        ("budget: 1\nlimits: {throughput: 1}\nquorum: {pass: 1}", 3, "both pass and of"),
        ("budget: 1\nlimits: {throughput: 1}\nquorum: {pass: 1, of: [a, a]}", 3, "stands twice in the quorum"),
        ("budget: 1\nlimits: {throughput: 1}\nquorum: {pass: true, of: 2}", 3, "whole number"),
    ],
)
def test_an_error_names_the_line(text: str, line: int | None, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        budget(text)
    assert error.value.where == ("b.yaml" if line is None else f"b.yaml, line {line}")


@given(st.text(max_size=200))
def test_any_text_is_a_budget_or_an_input_error(text: str) -> None:
    try:
        budget(text)
    except InputError:
        return


def test_python_objects_are_not_built_from_yaml() -> None:
    with pytest.raises(InputError):
        budget("budget: 1\nlimits:\n  throughput: !!python/object/apply:os.system ['true']")


@given(st.sampled_from(sorted(FACTORS)), st.floats(1e-3, 1e9))
def test_every_unit_is_read_as_its_factor(unit: str, number: float) -> None:
    for name, factor in FACTORS[unit].items():
        if name:
            assert parse_quantity(f"{number!r} {name}", unit) == pytest.approx(number * factor)


def test_quantities_are_shown_with_three_digits() -> None:
    assert format_quantity(0.1234, "s") == "123 ms"
    assert format_quantity(0.0000123, "s") == "12.3 µs"
    assert format_quantity(2.5e9, "bytes") == "2.50 GB"
    assert format_quantity(0.0, "s") == "0 µs"
    assert format_quantity(None, "s") == "–"
