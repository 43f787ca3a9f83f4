"""Scenarios, each on a clock of its own: calls take no time but what the test says."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_edge.agents import scenarios, warmup
from argus_edge.agents.scenarios import closed_loop, multi_stream, paced, queueing, server
from argus_edge.agents.wire import SCENARIOS


class World:
    """A clock that only calls and sleeps move."""

    def __init__(self, monkeypatch, durations) -> None:
        self.now = 1000.0
        self.calls = 0
        self._durations = durations
        for module in (closed_loop, paced, server):
            monkeypatch.setattr(module, "perf_counter", lambda: self.now)
            monkeypatch.setattr(module, "sleep", self.sleep, raising=False)

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds

    def call(self) -> None:
        self.now += self._durations(self.calls)
        self.calls += 1


class Writer:
    def __init__(self, capacity: int, columns: int) -> None:
        self.capacity = capacity
        self.columns = [[0.0] * capacity for _ in range(columns)]
        self.starts, self.ends = self.columns[:2]

    def latencies(self, origin: int = 0) -> list[float]:
        return [end - begin for begin, end in zip(self.columns[origin], self.ends, strict=True) if end]


def spec(**fields):
    return scenarios.complete(fields)


def test_every_scenario_of_the_wire_has_a_module_that_says_what_it_records() -> None:
    assert set(scenarios.MODULES) == set(SCENARIOS)
    for name in SCENARIOS:
        module = scenarios.load(name)
        assert module.COLUMNS in (2, 3)
        assert module.samples_per_call(spec(batch=4, streams=8)) in (4, 8)


@pytest.mark.parametrize(
    ("fields", "call_s", "calls", "stopped_by"),
    [
        ({"duration_s": 1.0, "min_calls": 1}, 0.1, 10, "duration"),
        ({"duration_s": 1.0, "min_calls": 64}, 0.1, 64, "duration"),
        ({"duration_s": 1.0, "min_calls": 64, "max_duration_s": 3.0}, 0.1, 30, "max-duration"),
        ({"duration_s": 9.0, "min_calls": 1, "max_duration_s": 3.0}, 0.1, 30, "max-duration"),
        ({"duration_s": 9.0, "max_calls": 7}, 0.1, 7, "calls"),
        ({"duration_s": 1.0, "min_calls": 100, "max_calls": 7}, 0.1, 7, "calls"),
        ({"duration_s": 900.0}, 0.1, 100, "capacity"),
        ({"duration_s": 0.01, "min_calls": 1}, 5.0, 1, "duration"),
    ],
)
def test_a_closed_loop_ends_when_it_should(monkeypatch, fields, call_s, calls, stopped_by) -> None:
    world, writer = World(monkeypatch, lambda _: call_s), Writer(100, 2)
    # Sums of tenths are not exact: a hair of slack keeps the count what it is meant to be.
    figures = closed_loop.run(world.call, spec(**{**fields, "duration_s": fields["duration_s"] - 1e-6}), writer)
    assert figures["stopped_by"] == stopped_by
    assert world.calls == pytest.approx(calls, abs=1 if stopped_by == "max-duration" else 0)
    assert writer.latencies() == pytest.approx([call_s] * world.calls)


def test_a_closed_loop_starts_a_call_when_the_one_before_has_ended(monkeypatch) -> None:
    world, writer = World(monkeypatch, lambda k: 0.1 + 0.01 * k), Writer(50, 2)
    closed_loop.run(world.call, spec(duration_s=2.0, min_calls=1), writer)
    assert writer.starts[1 : world.calls] == writer.ends[: world.calls - 1]


def test_a_multi_stream_query_is_all_its_calls(monkeypatch) -> None:
    world, writer = World(monkeypatch, lambda _: 0.1), Writer(50, 2)
    scenario = spec(name="multi-stream", duration_s=3.9999, min_calls=1, streams=8, batch=2)
    multi_stream.run(world.call, scenario, writer)
    assert multi_stream.samples_per_call(scenario) == 8
    assert writer.latencies() == pytest.approx([0.4] * 10)
    assert multi_stream.samples_per_call(spec(streams=5, batch=2)) == 6


def test_a_paced_call_waits_for_its_frame(monkeypatch) -> None:
    world, writer = World(monkeypatch, lambda _: 0.01), Writer(100, 3)
    figures = paced.run(world.call, spec(name="paced", duration_s=1.99, fps=10, min_calls=1), writer)
    assert figures == {"stopped_by": "duration", "dropped": 0}
    assert world.calls == 20
    assert writer.columns[2][:20] == pytest.approx([1000 + k / 10 for k in range(20)])
    assert writer.latencies(origin=2) == pytest.approx([0.01] * 20)


def test_frames_that_fall_due_during_a_call_are_dropped(monkeypatch) -> None:
    # A call of 0.25 s at 10 frames a second: frames 0, 3, 6 … are served, two of three are dropped.
    world, writer = World(monkeypatch, lambda _: 0.25), Writer(100, 3)
    figures = paced.run(world.call, spec(name="paced", duration_s=3.0, fps=10, min_calls=1), writer)
    assert writer.columns[2][:3] == pytest.approx([1000.0, 1000.3, 1000.6])
    assert figures["dropped"] == 2 * world.calls


@given(fps=st.floats(1, 200), call_s=st.floats(1e-4, 1.0), seconds=st.floats(0.1, 10))
def test_served_and_dropped_frames_are_all_frames(fps, call_s, seconds) -> None:
    with pytest.MonkeyPatch.context() as patch:
        world, writer = World(patch, lambda _: call_s), Writer(4000, 3)
        figures = paced.run(world.call, spec(name="paced", duration_s=seconds, fps=fps, min_calls=1), writer)
        last = round((writer.columns[2][world.calls - 1] - 1000.0) * fps)
        after = max(last + 1, math.ceil((world.now - 1000.0) * fps))
        assert world.calls + figures["dropped"] == after
        # At most one call at a time: none begins before the one before has ended.
        assert all(a >= b for a, b in zip(writer.starts[1 : world.calls], writer.ends, strict=False))


def test_a_server_serves_arrivals_in_order_and_counts_the_wait(monkeypatch) -> None:
    world, writer = World(monkeypatch, lambda _: 0.05), Writer(2000, 3)
    scenario = spec(name="server", qps=10.0, duration_s=100.0, latency_bound_s=0.2)
    figures = server.run(world.call, scenario, writer)
    arrivals = queueing.arrivals(10.0, 1000, scenario["seed"])
    assert writer.columns[2][:1000] == pytest.approx([1000 + a for a in arrivals])
    free, expected = 0.0, []
    for came in arrivals:
        free = max(free, came) + 0.05
        expected.append(free - came)
    assert writer.latencies(origin=2) == pytest.approx(expected)
    late = sum(latency > 0.2 for latency in expected)
    assert figures["server"]["late"] == late == queueing.simulated_late([0.05], arrivals, 0.2)
    assert figures["server"]["held"] == (late <= 10)


def test_an_overloaded_server_gives_up(monkeypatch) -> None:
    world, writer = World(monkeypatch, lambda _: 1.0), Writer(2000, 3)
    figures = server.run(world.call, spec(name="server", qps=10.0, duration_s=20.0, latency_bound_s=0.2), writer)
    assert figures["stopped_by"] == "max-duration"
    assert world.now - 1000 == pytest.approx(3 * 20, abs=3)
    assert figures["server"]["held"] == 0.0


def test_arrivals_are_poisson() -> None:
    times = queueing.arrivals(50.0, 100_000, 3)
    gaps = [b - a for a, b in pairwise(times)]
    mean = sum(gaps) / len(gaps)
    assert mean == pytest.approx(1 / 50, rel=0.02)
    # Of an exponential law the share beyond its mean is 1/e, and beyond three times it 1/e^3.
    assert sum(gap > 1 / 50 for gap in gaps) / len(gaps) == pytest.approx(math.exp(-1), abs=0.01)
    assert sum(gap > 3 / 50 for gap in gaps) / len(gaps) == pytest.approx(math.exp(-3), abs=0.005)
    assert queueing.arrivals(50.0, 10, 3) == times[:10]
    assert queueing.arrivals(50.0, 10, 4) != times[:10]


def test_the_simulation_agrees_with_the_known_answer_for_exponential_service() -> None:
    # M/M/1: the time in the system is exponential with rate mu - lambda (e.g. Kleinrock, Queueing Systems I, 3.2).
    draw = random.Random(5)
    service = [draw.expovariate(100.0) for _ in range(200_000)]
    times = queueing.arrivals(60.0, 200_000, 6)
    for bound in (0.02, 0.05, 0.1):
        share = queueing.simulated_late(service, times, bound) / len(times)
        assert share == pytest.approx(math.exp(-(100.0 - 60.0) * bound), abs=0.012)


def test_the_predicted_rate_is_the_one_that_theory_gives() -> None:
    draw = random.Random(5)
    service = [draw.expovariate(1000.0) for _ in range(5000)]
    # P(T > bound) = 1 % at lambda = mu - ln(100) / bound.
    theory = 1000.0 - math.log(100) / 0.02
    assert queueing.predicted_rate(service, 0.02, seed=1) == pytest.approx(theory, rel=0.08)


def test_no_rate_holds_a_bound_below_the_service_time() -> None:
    assert queueing.predicted_rate([0.05] * 200, 0.04, seed=1) == 0.0


@given(limit=st.floats(1.0, 1000.0), guess=st.floats(0.5, 2000.0))
def test_the_search_brackets_the_limit_within_3_percent(limit, guess) -> None:
    held = broken = None
    for _ in range(200):
        rate = queueing.next_rate(held, broken, guess)
        if rate is None:
            break
        if rate <= limit:
            held = rate
        else:
            broken = rate
    assert held <= limit < broken
    assert broken / held <= 1.03


def test_the_rate_that_is_found_holds(monkeypatch) -> None:
    draw = random.Random(9)
    world = World(monkeypatch, lambda _: draw.uniform(0.008, 0.012))
    scenario = spec(name="server", duration_s=60.0, latency_bound_s=0.05)
    server.prepare(world.call, scenario, [0.01] * 50, lambda **_: None)
    writer = Writer(20_000, 3)
    figures = server.run(world.call, scenario, writer)["server"]
    assert figures["held"] == 1.0
    assert figures["p99_s"] <= 0.05
    assert 0.5 / 0.01 < figures["qps"] < 1 / 0.01
    assert figures["trials"] >= 2


def test_a_server_without_a_bound_or_a_rate_is_refused() -> None:
    with pytest.raises(Exception, match="needs a latency bound"):
        server.prepare(lambda: None, spec(name="server"), [0.1], lambda **_: None)


# ---------------------------------------------------------------- warm-up


class Clock:
    def __init__(self, durations) -> None:
        self.now = 0.0
        self.durations = iter(durations)

    def __call__(self) -> float:
        return self.now

    def call(self) -> None:
        self.now += next(self.durations)


def endless(first, then):
    yield from first
    while True:
        yield then


def test_warm_up_goes_on_until_three_windows_agree() -> None:
    # 0.6 s of slow calls that get faster, then steady ones of 10 ms.
    clock = Clock(endless([0.3, 0.2, 0.1, 0.05], 0.01))
    figures, latencies = warmup.warm_up(clock.call, warmup.DEFAULTS, clock)
    assert figures["warmup_steady"] is True
    assert list(latencies) == pytest.approx([0.01] * len(latencies))
    assert figures["warmup_s"] == pytest.approx(clock.now)
    # The slow ones fill two windows and begin a third; of the steady ones it takes two more.
    assert 0.5 + 3 * 0.2 <= clock.now <= 0.5 + 3 * 0.2 + 0.1


def test_warm_up_that_never_settles_ends_and_says_so() -> None:
    growing = (0.01 * 1.1**k for k in range(10_000))
    clock = Clock(growing)
    figures, _ = warmup.warm_up(clock.call, {**warmup.DEFAULTS, "max_s": 5.0}, clock)
    assert figures["warmup_steady"] is False
    assert clock.now >= 5.0


def test_slow_calls_are_a_window_each() -> None:
    clock = Clock(endless([], 2.0))
    figures, _ = warmup.warm_up(clock.call, warmup.DEFAULTS, clock)
    assert (figures["warmup_calls"], figures["warmup_steady"]) == (5, True)


def test_a_fixed_number_of_calls_is_exactly_that() -> None:
    for number in (0, 1, 17):
        clock = Clock(endless([], 0.001))
        figures, latencies = warmup.warm_up(clock.call, {**warmup.DEFAULTS, "fixed_calls": number}, clock)
        assert (figures["warmup_calls"], figures["warmup_steady"], len(latencies)) == (number, None, number)


@given(st.lists(st.floats(1e-6, 10), min_size=1, max_size=20))
def test_windows_agree_only_within_5_percent(medians) -> None:
    last = medians[-3:]
    assert warmup.agree(medians) == (len(last) == 3 and max(last) <= 1.05 * min(last))
