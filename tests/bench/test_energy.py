"""Energy: counters and power readings over the window, minus idle; an external meter joined by the clock."""

import pytest

from argus_edge.bench.energy import energy, read_meter
from argus_edge.errors import InputError
from argus_edge.schema.agent import PartResult, SeriesPoint

VENDOR = {"energy": {"sensor": "jetson", "source": "INA3221", "coverage": "the 5 V input"}}


def part(**fields):
    return PartResult(name="m", state="done", runtime="onnxruntime", **fields)


def series(name, values):
    return [SeriesPoint(t=t, took_s=0.0, values={name: value}) for t, value in values]


def test_power_readings_are_weighted_by_time():
    points = series("power_w", [(-1, 99.0), (0, 4.0), (1, 4.0), (9, 8.0), (11, 99.0)])
    found = energy(part(vendor_after=VENDOR, idle_power_w=2.0), points, window_s=10.0, inferences=100)
    # 4 W for 1 s, then a ramp from 4 to 8 W over 8 s.
    assert found.mean_w == pytest.approx((4 * 1 + 6 * 8) / 9)
    assert found.joules_per_inference == pytest.approx((found.mean_w - 2.0) * 10 / 100)
    assert (found.source, found.coverage) == ("INA3221", "the 5 V input")


def test_a_counter_is_preferred():
    points = [SeriesPoint(t=t, took_s=0.0, values={"energy_j": 5.0 * t, "power_w": 1.0}) for t in (0, 5, 10)]
    assert energy(part(vendor_after=VENDOR), points, window_s=10.0, inferences=10).mean_w == pytest.approx(5.0)


def test_without_idle_power_the_report_says_so():
    found = energy(part(vendor_after=VENDOR), series("power_w", [(0, 4.0), (9, 4.0)]), window_s=10.0, inferences=10)
    assert found.joules_per_inference == pytest.approx(4.0)
    assert "idle" in found.reason


def test_a_gpu_at_rest_says_nothing_about_a_model_on_the_cpu():
    vendor = {"energy": {"sensor": "nvml", "source": "NVML", "coverage": "the GPU board"}}
    points = series("power_w", [(0, 60.0), (9, 60.0)])
    on_cpu = part(vendor_after=vendor, providers_used=["cpu"])
    on_gpu = part(vendor_after=vendor, providers_used=["cuda", "cpu"])
    assert energy(on_cpu, points, window_s=10.0, inferences=10) is None
    assert energy(on_gpu, points, window_s=10.0, inferences=10).mean_w == pytest.approx(60.0)


def test_joules_are_not_negative():
    points = series("power_w", [(0, 4.0), (9, 4.0)])
    found = energy(part(vendor_after=VENDOR, idle_power_w=5.0), points, window_s=10.0, inferences=10)
    assert found.joules_per_inference is None
    assert "not above" in found.reason


def test_no_sensor_no_energy():
    assert energy(part(), [], window_s=10.0, inferences=10) is None
    assert energy(part(vendor_after=VENDOR), [], window_s=10.0, inferences=10).mean_w is None


@pytest.mark.parametrize(
    "text",
    [
        "time,power_w\n995,2\n1000,4\n1005,4\n1010,4\n",
        "timestamp;mW\n995000000000;2000\n1000000000000;4000\n1005000000000;4000\n1010000000000;4000\n",
        "date,voltage,watts\n1970-01-01T00:16:35Z,5,2\n1970-01-01T00:16:40Z,5,4\n1970-01-01T00:16:45Z,5,4\n"
        "1970-01-01T00:16:50Z,5,4\n",
        "time,power_w\n995,2\n1000,4\n1005,4\n1010,4\n1020,1",  # still being written
    ],
)
def test_a_meters_log(tmp_path, text):
    path = tmp_path / "meter.csv"
    path.write_text(text)
    meter = read_meter(path)
    start = 1e9 if "mW" in text else 1000.0
    # Milliseconds since the epoch are told from seconds by their size.
    span = 1.0 if "mW" not in text else 5e6
    found = meter.energy(window_wall=start, window_s=10.0 * span, started_wall=start, inferences=20)
    assert found.mean_w == pytest.approx(4.0)
    if "mW" not in text:
        assert found.idle_w == pytest.approx(2.0)
        assert found.joules_per_inference == pytest.approx(1.0)


def test_a_meter_whose_clock_does_not_agree(tmp_path):
    path = tmp_path / "meter.csv"
    path.write_text("time,power\n0,4\n10,4\n")
    found = read_meter(path).energy(window_wall=5000.0, window_s=10.0, started_wall=4990.0, inferences=1)
    assert found.mean_w is None
    assert "clocks" in found.reason


STRANGE = [
    "time,power\n1e300,1\n",
    "time,power\n-1e18,1\n",
    "time,power\nnan,1\n",
    "time,power\n0001-01-01T00:00:00,1\n",
    f"time,power\n1,{'x' * 200_000}\n",
]


@pytest.mark.parametrize("unit", [1, 10**3, 10**6, 10**9])
def test_the_epoch_in_parts_of_a_second(tmp_path, unit):
    path = tmp_path / "meter.csv"
    path.write_text("time,power\n" + "".join(f"{1_796_000_000 * unit + second * unit},4\n" for second in range(3)))
    assert read_meter(path).t == pytest.approx([1_796_000_000, 1_796_000_001, 1_796_000_002], abs=1e-3, rel=0)


@pytest.mark.parametrize(
    "text",
    ["", "a,b\n1,2\n", "time,power\n1,x\n", "time,power\n1\n", "time,power\n1,nan\n", "time,power\n1,inf\n", *STRANGE],
)
def test_logs_that_cannot_be_used(tmp_path, text):
    path = tmp_path / "meter.csv"
    path.write_text(text)
    with pytest.raises(InputError):
        read_meter(path)
