"""Validity: each cause from what a board would report, and none where there is no reason."""

import pytest

from argus_edge.bench.validity import Observed, judge, together
from argus_edge.schema.agent import (
    AgentFault,
    DeviceFacts,
    MemoryFigures,
    ParityFigures,
    PartResult,
    Scenario,
    SeriesPoint,
)
from argus_edge.schema.bench import Estimate, Figures, Validity, ValidityCause
from argus_edge.schema.bundle import ParityLimits

NONE = Estimate(value=None)


def figures(**changes):
    fields = {"count": 1000, "window_s": 10.0, "p50": NONE, "p90": NONE, "p95": NONE, "p99": NONE}
    fields |= {"mean_s": 0.01, "min_s": 0.01, "max_s": 0.01, "throughput": NONE, "drift": 0.0}
    return Figures(**{**fields, **changes})


def seen(series=(), scenario="single-stream", arch="aarch64", figures_=None, emulated=False, **part):
    extra = {key: part.pop(key) for key in ("limits", "largest_output", "throttle_temperature_c") if key in part}
    fields = {"name": "m", "state": "done", "runtime": "onnxruntime", "warmup_steady": True, "stopped_by": "duration"}
    return Observed(
        part=PartResult(**{**fields, **part}),
        series=[SeriesPoint(t=t, took_s=0.0, values=values) for t, values in series],
        figures=figures_ or figures(),
        facts=DeviceFacts(wire=1, arch=arch, python="3.11", emulated=emulated),
        scenario=Scenario(name=scenario),
        **extra,
    )


def codes(observed):
    return [cause.code for cause in judge(observed).causes]


def pi(before, after, **more):
    return seen(
        vendor_before={"raspberrypi": {"throttled": before}}, vendor_after={"raspberrypi": {"throttled": after}}, **more
    )


def test_a_quiet_run_is_valid():
    assert judge(seen()).valid is True
    assert judge(pi(0, 0)).valid is True


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (0x0, 0x40000, ["throttled"]),  # the since-boot bit came on during the run
        (0x0, 0x40004, ["throttled"]),
        (0x4, 0x4, ["throttled"]),  # throttled when the window began
        (0x40000, 0x40000, ["throttle-unknown"]),  # it cannot come on again
        (0x40000, 0x40004, ["throttled"]),
        (0x40000, 0x60000, ["throttled", "throttle-unknown"]),
        (0x0, 0x10000, ["under-voltage"]),
        (0x10000, 0x10000, ["throttle-unknown"]),
        (0x50005, 0x50005, ["throttled", "under-voltage"]),
        (0x80000, 0x80000, ["throttle-unknown"]),
    ],
)
def test_the_pis_throttle_word_is_read_as_a_difference(before, after, expected):
    assert codes(pi(before, after)) == expected


def test_cannot_tell_is_neither_valid_nor_invalid():
    verdict = judge(pi(0x40000, 0x40000))
    assert verdict.valid is None
    assert "reboot" in verdict.causes[0].remedy


def test_the_alarm_of_the_kernel_settles_what_the_bit_cannot_tell():
    quiet = [(t, {"under_voltage": 0.0}) for t in range(10)]
    assert codes(pi(0x10000, 0x10000, series=quiet)) == []
    assert codes(pi(0x0, 0x0, series=[*quiet[:5], (5.0, {"under_voltage": 1.0})])) == ["under-voltage"]


def test_a_throttle_counter_that_rose():
    risen = [(-1.0, {"throttle_count": 7.0}), (1.0, {"throttle_count": 7.0}), (4.0, {"throttle_count": 9.0})]
    (cause,) = judge(seen(series=risen)).causes
    assert (cause.code, cause.from_s) == ("throttled", 4.0)
    assert "2 times" in cause.detail
    assert codes(seen(series=[(1.0, {"throttle_count": 7.0}), (4.0, {"throttle_count": 7.0})])) == []


def test_a_counter_that_rose_after_the_window_does_not_count():
    assert codes(seen(series=[(1.0, {"throttle_count": 7.0}), (11.0, {"throttle_count": 9.0})])) == []


def test_a_cooling_device_at_work():
    assert codes(seen(series=[(3.0, {"cooling_state": 2.0})])) == ["throttled"]


def test_over_current_on_a_jetson():
    assert codes(seen(series=[(3.0, {"over_current": 1.0, "over_current_events": 4.0})])) == ["throttled"]
    rise = [(-1.0, {"over_current_events": 4.0}), (3.0, {"over_current_events": 5.0, "over_current": 0.0})]
    assert [cause.from_s for cause in judge(seen(series=rise)).causes] == [3.0]
    assert codes(seen(series=[(3.0, {"over_current": 0.0, "over_current_events": 4.0})])) == []


def test_a_gpu_that_throttles():
    assert codes(seen(series=[(2.0, {"gpu_throttled": 1.0})])) == ["throttled"]
    assert codes(seen(series=[(2.0, {"gpu_throttled": 0.0})])) == []


def test_overheated_by_the_profile():
    assert codes(seen(series=[(3.0, {"temperature_c": 81.0})], throttle_temperature_c=80.0)) == ["overheated"]
    assert codes(seen(series=[(3.0, {"temperature_c": 79.0})], throttle_temperature_c=80.0)) == []


def clocks(*values, limit=2_400_000.0):
    return [(float(t), {"clock_khz": value, "clock_limit_khz": limit}) for t, value in enumerate(values)]


def test_a_clock_that_is_capped_late_in_the_window_is_found_and_placed():
    late = seen(series=clocks(*[2.4e6] * 8, 1.5e6, 1.5e6))
    (cause,) = judge(late).causes
    assert (cause.code, cause.from_s) == ("clock-limited", 8.0)
    (cause,) = judge(seen(series=clocks(*[4.5e6] * 8, 3.2e6, 3.2e6, limit=4.9e6), arch="x86_64")).causes
    assert (cause.code, cause.from_s) == ("clock-limited", 8.0)
    (cause,) = judge(seen(series=clocks(4.5e6, 4.5e6, *[3.2e6] * 8, limit=4.9e6), arch="x86_64")).causes
    assert (cause.code, cause.from_s) == ("clock-limited", 2.0)
    # One low reading is the governor's, between two others.
    assert codes(seen(series=clocks(*[2.4e6] * 5, 1.5e6, *[2.4e6] * 4))) == []
    # Of a long window two readings are as little.
    assert codes(seen(series=clocks(*[2.4e6] * 98, 1.5e6, 1.5e6))) == []


def test_a_clock_below_its_limit():
    assert codes(seen(series=clocks(1.5e6, 1.5e6, 1.5e6))) == ["clock-limited"]
    assert codes(seen(series=clocks(2.4e6, 2.4e6, 2.4e6))) == []
    assert codes(seen(series=clocks(1.5e6, 1.5e6, 1.5e6), scenario="paced")) == []


def test_on_x86_only_a_fall_within_the_window_counts():
    assert codes(seen(series=clocks(3.2e6, 3.2e6, 3.2e6, 3.2e6, limit=4.9e6), arch="x86_64")) == []
    assert codes(seen(series=clocks(4.5e6, 4.5e6, 3.2e6, 3.2e6, limit=4.9e6), arch="x86_64")) == ["clock-limited"]


def test_drift():
    assert codes(seen(figures_=figures(drift=0.08))) == ["drifting"]
    assert codes(seen(figures_=figures(drift=-0.08))) == ["drifting"]
    assert codes(seen(figures_=figures(drift=0.04))) == []
    assert codes(seen(figures_=figures(drift=0.3), scenario="soak")) == []


def test_contended_names_the_culprit_and_the_way_out():
    (cause,) = judge(seen(other_cpu_share=0.3, other_load=["apt: 60 % of a core", "x\x1b[31m"])).causes
    assert cause.code == "contended"
    assert "apt" in cause.detail
    assert "\x1b" not in cause.detail
    assert "--background" in cause.remedy
    assert codes(seen(other_cpu_share=0.02, other_load=["sshd: 6 % of a core"])) == []


def test_swapping():
    assert codes(seen(memory=MemoryFigures(swap=5 << 20))) == ["swapping"]
    assert codes(seen(series=[(-1.0, {"swap_used_bytes": 1e9}), (5.0, {"swap_used_bytes": 1.1e9})])) == ["swapping"]
    assert codes(seen(memory=MemoryFigures(swap=0), series=[(5.0, {"swap_used_bytes": 1e9})])) == []


def test_the_other_causes():
    assert codes(seen(provider_fell_back=True, provider_requested="cuda", providers_used=["cpu"])) == [
        "provider-fell-back"
    ]
    assert codes(seen(emulated=True)) == ["emulated"]
    assert codes(seen(warmup_steady=False)) == ["not-steady"]
    assert codes(seen(state="failed", error=AgentFault(kind="crashed"))) == ["incomplete"]
    assert codes(seen(figures_=figures(count=10), stopped_by="max-duration")) == ["incomplete"]


def test_parity_by_the_bundles_limits():
    figures_on_board = ParityFigures(cases=3, max_abs_error=0.02, cosine_min=0.9)
    limits = ParityLimits(max_abs_error=1e-3, cosine=0.99)
    assert codes(seen(parity=figures_on_board, limits=limits)) == ["parity"]
    close = ParityFigures(cases=3, max_abs_error=0.02, cosine_min=0.999)
    assert codes(seen(parity=close, limits=limits, largest_output=1.0)) == ["parity"]
    assert codes(seen(parity=close, limits=limits, largest_output=100.0)) == []
    assert codes(seen(parity=close)) == []


def test_a_run_is_as_valid_as_its_worst_part():
    bad = Validity(valid=False, causes=[ValidityCause(code="drifting", detail="8 %")])
    unsure = Validity(valid=None, causes=[ValidityCause(code="throttle-unknown", detail="?")])
    good = Validity(valid=True)
    assert together([("a", good), ("b", good)]).valid is True
    assert together([("a", good), ("b", unsure)]).valid is None
    assert together([("a", unsure), ("b", bad), ("b", bad)]).valid is False
    assert [cause.detail for cause in together([("a", good), ("b", bad), ("b", bad)]).causes] == ["b: 8 %"]
    assert together([]).valid is False
