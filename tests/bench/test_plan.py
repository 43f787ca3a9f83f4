"""Plans: parts and repeats, limits, and how long it will take."""

from datetime import datetime, timezone

import pytest

from argus_edge.bench.context import ComponentContext, Cost
from argus_edge.bench.model_types import BenchComponent, ResolvedModel
from argus_edge.bench.options import Options, scenario_of
from argus_edge.bench.plan import (
    Placed,
    describe,
    duration_text,
    estimate_s,
    make_job,
    memory_limit,
    new_run_id,
)
from argus_edge.errors import UsageError
from argus_edge.schema.agent import DeviceFacts, Warmup

MODEL = ResolvedModel(
    "clip", None, tuple(BenchComponent(name=name, format="onnx", model=None) for name in ("image", "text"))
)
PLACED = {name: Placed(f"~/x/{name}.onnx", "~/x/inputs.npz", "~/x/golden.npz") for name in ("image", "text")}


def job(**options):
    return make_job("r1", MODEL, Options(**options), PLACED, runtime="onnxruntime", provider="cpu", sensors=["thermal"])


def test_repeats_go_round_the_components():
    parts = job(runs=2).parts
    assert [(part.name, part.repeat) for part in parts] == [("image", 0), ("text", 0), ("image", 1), ("text", 1)]
    # Parity once is enough.
    assert [part.golden is not None for part in parts] == [True, True, False, False]


def test_operators_are_profiled_in_a_pass_of_their_own():
    parts = job(profile_ops=True).parts
    assert [part.profile_ops for part in parts] == [False, False, True, True]
    assert parts[2].golden is None


def test_the_estimate_counts_every_part():
    short, long = job(scenario=scenario_of("soak", duration=10)), job(scenario=scenario_of("soak", duration=100))
    assert estimate_s(MODEL, long) - estimate_s(MODEL, short) == pytest.approx(180)
    assert estimate_s(MODEL, job(runs=3)) == pytest.approx(3 * estimate_s(MODEL, job()))
    assert "2 components" in describe(MODEL, short, device="pi5")
    assert "about" in describe(MODEL, short, device="pi5")


def test_the_estimate_knows_that_large_models_go_past_their_window():
    small, large = ({"image": ComponentContext(cost=Cost(macs, 0.0))} for macs in (4e9, 700e9))
    short = job(scenario=scenario_of("single-stream", duration=5))
    assert estimate_s(MODEL, short, small) == pytest.approx(estimate_s(MODEL, short), rel=0.1)
    # 35 s a call: the first, one of warming up, and the 65 s that a window of 5 s is kept open.
    more = estimate_s(MODEL, short, large) - estimate_s(MODEL, short)
    assert more > 35 + 60
    fixed = job(scenario=scenario_of("single-stream", duration=5), warmup=Warmup(fixed_calls=0))
    assert estimate_s(MODEL, fixed, large) < estimate_s(MODEL, short, large)


def test_the_wall_limit_leaves_room():
    assert job().wall_limit_s > 10 * estimate_s(MODEL, job())


def test_a_run_may_have_what_is_free_and_little_more():
    facts = DeviceFacts(wire=1, arch="aarch64", python="3.6.9", memory_available_bytes=3000, memory_total_bytes=4000)
    assert memory_limit(facts) == 3400
    assert memory_limit(facts.model_copy(update={"memory_available_bytes": None})) is None


def test_a_run_id_says_when_what_and_where():
    run = new_run_id("Weird näme/ü.onnx", "pi5", datetime(2026, 11, 30, 18, 41, 46, tzinfo=timezone.utc))
    assert run.startswith("20261130-184146-weird-n-me-onnx-pi5-")
    assert len(new_run_id("x" * 500, "y" * 64)) <= 80


def test_a_duration_that_was_asked_for_is_not_stretched_for_p90():
    assert scenario_of("single-stream").min_calls == 64
    assert scenario_of("single-stream", duration=3).min_calls == 11
    assert scenario_of("soak").duration_s == 60


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("single-stream", {"fps": 30.0}),
        ("soak", {"qps": 1.0}),
        ("paced", {"streams": 2}),
        ("offline", {"latency_bound_s": 0.1}),
        ("server", {}),
        ("soak", {"duration": 1e6}),
        ("paced", {"fps": float("nan")}),
        ("paced", {"fps": float("inf")}),
        ("paced", {"fps": 1e-300}),
        ("server", {"qps": float("nan")}),
        ("server", {"qps": 1e7}),
        ("server", {"latency_bound_s": 11.0}),
    ],
)
def test_options_belong_to_their_scenario(name, options):
    with pytest.raises(UsageError):
        scenario_of(name, **options)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (0.4, "0.4 s"),
        (0.96, "1 s"),
        (45, "45 s"),
        (200, "3 min 20 s"),
        (3900, "1 h 05 min"),
        (59.6, "1 min 00 s"),
    ],
)
def test_durations_for_people(seconds, text):
    assert duration_text(seconds) == text
