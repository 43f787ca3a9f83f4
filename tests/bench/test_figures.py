"""Figures of a window: what is counted, what is withheld, drift, sensors' touch, run-to-run spread."""

import numpy as np
import pytest

from argus_edge.bench.figures import spread, student_975, throughput, touched, window_figures
from argus_edge.bench.memory import headline
from argus_edge.bench.samples import Samples
from argus_edge.schema.agent import MemoryFigures, Scenario, SeriesPoint


def back_to_back(latency, begin=100.0):
    latency = np.asarray(latency, dtype=float)
    end = begin + np.cumsum(latency)
    return Samples(start=end - latency, end=end, latency=latency)


def test_a_window_of_equal_calls():
    figures = window_figures(back_to_back(np.full(800, 0.01)), Scenario(), per_call=4)
    assert figures.count == 800
    assert figures.window_s == pytest.approx(8.0)
    assert figures.p50.value == pytest.approx(0.01)
    assert figures.p99.value == pytest.approx(0.01)
    assert figures.throughput.value == pytest.approx(400.0)
    assert figures.drift == pytest.approx(0.0)


def test_nothing_is_clipped_and_the_maximum_is_shown():
    figures = window_figures(back_to_back([0.01] * 99 + [5.0]), Scenario())
    assert figures.max_s == 5.0
    assert figures.mean_s == pytest.approx(0.0599)


def test_a_window_that_slows_down_drifts():
    figures = window_figures(back_to_back(np.linspace(0.010, 0.020, 400)), Scenario())
    assert figures.cold_p50_s == pytest.approx(0.01124, rel=0.01)
    assert figures.hot_p50_s == pytest.approx(0.01876, rel=0.01)
    assert figures.drift == pytest.approx(0.668, rel=0.01)


def test_an_empty_window_has_no_figures():
    figures = window_figures(back_to_back([]), Scenario())
    assert figures.count == 0
    assert figures.p50.value is None
    assert figures.throughput.value is None
    assert figures.max_s is None


def test_paced_counts_the_frames_that_came_too_late():
    begin = 100.0 + np.arange(90) / 30
    latency = np.where(np.arange(90) % 3 == 0, 0.040, 0.010)
    samples = Samples(start=begin, end=begin + latency, latency=latency)
    figures = window_figures(samples, Scenario(name="paced", fps=30), dropped=10)
    assert figures.on_time_share == pytest.approx(60 / 100)


def test_the_window_of_a_schedule_begins_with_the_first_arrival():
    start = np.array([1.5, 2.0])
    samples = Samples(start=start, end=start + 0.5, latency=np.array([1.0, 1.0]))
    assert window_figures(samples, Scenario(name="server", latency_bound_s=1)).window_s == pytest.approx(1.5)


def test_calls_that_a_sensor_touched_are_counted_once():
    samples = back_to_back(np.full(10, 1.0), begin=0.0)
    points = [SeriesPoint(t=2.5, took_s=0.1), SeriesPoint(t=2.7, took_s=0.1), SeriesPoint(t=5.9, took_s=0.3)]
    assert touched(samples, points) == 3
    assert touched(samples, []) == 0
    assert touched(samples, [SeriesPoint(t=-5, took_s=1), SeriesPoint(t=50, took_s=1)]) == 0


def test_the_interval_of_throughput_covers_the_truth():
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(300):
        end = np.cumsum(rng.gamma(4.0, 0.0025, 400))
        estimate = throughput(end, end[-1], 1)
        inside += estimate.low <= 100.0 <= estimate.high
    assert inside >= 275


def test_spread_takes_runs_as_the_unit():
    assert spread([1.0, 2.0]).low is None
    estimate = spread([1.0, 2.0, 3.0])
    assert estimate.value == 2.0
    # 2 +/- 4.303 * 1 / sqrt(3)
    assert (estimate.low, estimate.high) == (pytest.approx(-0.484, abs=1e-3), pytest.approx(4.484, abs=1e-3))
    assert spread([]).value is None


def test_students_quantiles():
    stats = pytest.importorskip("scipy.stats")
    for degrees in range(1, 100):
        assert student_975(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), abs=3e-3)


@pytest.mark.parametrize(
    ("fields", "unified", "gpu", "expected"),
    [
        ({"peak_rss_load": 10, "peak_rss_steady": 7}, False, False, (10, "peak-rss")),
        ({"peak_rss_load": 10, "peak_rss_steady": 12}, False, False, (12, "peak-rss")),
        ({"peak_rss_load": 10, "system_delta": 30}, True, False, (30, "system-delta")),
        ({"peak_rss_load": 10, "system_delta": 30}, False, False, (10, "peak-rss")),
        ({"peak_rss_load": 10, "device_peak": 99}, False, True, (99, "device-peak")),
        ({"peak_rss_load": 10}, False, True, (10, "peak-rss")),
        ({}, False, False, (None, None)),
    ],
)
def test_the_memory_headline_says_its_kind(fields, unified, gpu, expected):
    found = headline(MemoryFigures(**fields), unified=unified, gpu=gpu)
    assert (found.bytes, found.memory_kind) == expected
