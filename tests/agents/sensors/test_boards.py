"""The sensors on recorded trees of boards: Raspberry Pi 5, Jetson Nano, Jetson Orin Nano, an x86 server."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_edge.agents.sensors import MODULES, open_sensors, raspberrypi
from argus_edge.devices import profiles
from tests.board import recordings, trees

EVERY = list(MODULES)


@pytest.fixture
def opened():
    """Opens sensors below a tree, and closes them at the end."""
    found = []

    def open_below(tree, *names):
        sensors = open_sensors(names or EVERY, str(tree.root))
        found.append(sensors)
        return sensors

    yield open_below
    for sensors in found:
        sensors.close()


def opened_sensors(sensors):
    return [fact["name"] for fact in sensors.facts() if fact["available"]]


# ---------------------------------------------------------------- Raspberry Pi


@pytest.fixture
def pi(tmp_path):
    return trees.pi5(tmp_path)


def test_pi_reading(pi, opened):
    sensors = opened(pi, *profiles.load("pi5").sensors)
    assert sensors.read() == {
        "temperature_c": 52.35,
        "temperature_c/cpu-thermal": 52.35,
        "clock_khz": 1_500_000,
        "clock_min_khz": 1_500_000,
        "clock_limit_khz": 2_400_000,
        "clock_max_khz": 2_400_000,
        "under_voltage": 0,
    }
    assert sensors.missing.keys() == {"memory"}, "the tree has no /proc/meminfo"


def test_pi_values_that_change(pi, opened):
    sensors = opened(pi, *profiles.load("pi5").sensors)
    pi["/sys/class/thermal/thermal_zone0/temp"] = 84250
    pi["/sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq"] = 1_500_000
    pi["/sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq"] = 1_800_000
    pi["/sys/class/hwmon/hwmon1/in0_lcrit_alarm"] = 1
    values = sensors.read()
    assert values["temperature_c"] == 84.25
    assert values["clock_limit_khz"] == 1_800_000
    assert values["under_voltage"] == 1


def test_pi_between_the_windows(pi, opened):
    pi[trees.VALUES + "/throttled"] = "0x50005"
    said = opened(pi, "raspberrypi").vendor()["raspberrypi"]
    assert said["throttled"] == 0x50005
    assert said["throttled_now"] == ["under-voltage", "throttled"]
    assert said["throttled_since_boot"] == ["under-voltage", "throttled"]
    assert said["clock_khz"] == pytest.approx(1500020.48)
    assert said["temperature_c"] == 52.3
    assert said["core_v"] == 0.72
    assert said["rails"]["VDD_CORE"] == {"current_a": 1.03293, "voltage_v": 0.7204}
    assert said["rails"]["EXT5V"] == {"voltage_v": 5.1507}
    # Twelve rails have both; worked out by hand: 0.0830 A x 3.713 V + 0.1259 A x 3.310 V + …
    assert said["power_w"] == pytest.approx(2.3315, abs=1e-3)
    assert said["raw"]["get_throttled"] == "throttled=0x50005"
    assert "energy" not in opened(pi, "raspberrypi").vendor()


def test_pi_power_pass(pi, opened):
    sensors = opened(pi, "pmic")
    values = sensors.read()
    assert values["power_w"] == pytest.approx(sum(v for k, v in values.items() if "/" in k))
    assert sensors.vendor()["energy"]["source"] == "vcgencmd pmic_read_adc"
    assert "5 V input" in sensors.vendor()["energy"]["coverage"]


def test_pi_without_rights(pi, opened):
    pi.tool("/usr/bin/vcgencmd", f"#!/bin/sh\necho '{recordings.VCGENCMD_REFUSED.strip()}' >&2\nexit 255\n")
    said = opened(pi, "raspberrypi").vendor()["raspberrypi"]
    assert said == {"raw": dict.fromkeys(said["raw"], "VCHI initialization failed")}
    assert "only a Raspberry Pi 5" in opened(pi, "pmic").missing["pmic"]


def test_pi_firmware_that_lacks_commands(pi, opened):
    pi.tool("/usr/bin/vcgencmd", f"#!/bin/sh\necho '{recordings.VCGENCMD_UNKNOWN.strip()}'\nexit 255\n")
    assert set(opened(pi, "raspberrypi").vendor()["raspberrypi"]) == {"raw"}


def test_pi_without_vcgencmd_but_with_the_kernels_file(pi, opened):
    del pi["/usr/bin/vcgencmd"]
    pi["/sys/devices/platform/soc@107c000000/soc@107c000000:firmware/get_throttled"] = "50000"
    said = opened(pi, "raspberrypi").vendor()["raspberrypi"]
    assert said["throttled"] == 0x50000
    assert said["throttled_now"] == []


def test_a_tool_that_hangs_is_ended(pi, opened, monkeypatch):
    pi.tool("/usr/bin/vcgencmd", "#!/bin/sh\nsleep 600\n")
    real = raspberrypi.tool.run
    monkeypatch.setattr(raspberrypi.tool, "run", lambda argv: real(argv, timeout=0.2))
    assert opened(pi, "raspberrypi").vendor() == {"raspberrypi": {"raw": {}}}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("throttled=0x0", 0),
        ("throttled=0x50000\n", 0x50000),
        ("throttled=e0008", 0xE0008),
        ("throttled=", None),
        ("", None),
    ],
)
def test_throttle_word(text, word):
    assert raspberrypi.throttled(text).get("throttled") == word


@given(
    st.text(max_size=300)
    | st.lists(st.sampled_from(["A_A current(", "1)=", "=.", "0.5A", "V_V volt(3)=1V", "-"])).map("".join)
)
def test_nothing_crashes_the_firmware_parsers(text):
    raspberrypi.throttled(text)
    raspberrypi.rails(text)


# ---------------------------------------------------------------- Jetson


def test_nano_reading(tmp_path, opened):
    nano = trees.jetson_nano(tmp_path)
    sensors = opened(nano, *profiles.load("jetson-nano").sensors)
    values = sensors.read()
    assert values["power_w"] == values["power_w/POM_5V_IN"] == 2.451
    assert values["power_w/POM_5V_GPU"] == 0.04
    assert values["temperature_c"] == 41.5, "the constant 100 C of PMIC-Die is no temperature of the processor"
    assert values["temperature_c/PMIC-Die"] == 100
    assert values["cooling_state"] == 0
    assert values["gpu_clock_khz"] == 76_800
    assert values["gpu_clock_limit_khz"] == 921_600
    assert values["gpu_load_percent"] == 12.5
    said = sensors.vendor()
    assert (said["jetson"]["mode"], said["jetson"]["fan_mode"]) == ("MAXN", "quiet")
    assert said["jetson"]["tegrastats"]["power_w"]["POM_5V_IN"] == 2.451
    assert said["jetson"]["raw"]["tegrastats"] == recordings.TEGRASTATS["32.7 Nano"]
    assert said["energy"]["source"] == "INA3221 POM_5V_IN"


def test_nano_that_throttles(tmp_path, opened):
    nano = trees.jetson_nano(tmp_path)
    sensors = opened(nano, "thermal")
    nano["/sys/class/thermal/cooling_device1/cur_state"] = 2
    nano["/sys/class/thermal/cooling_device0/cur_state"] = 3
    values = sensors.read()
    assert values["cooling_state"] == values["cooling_state/cpu-balanced"] == 2, "a fan is no throttling"


@pytest.mark.parametrize("l4t", ["35.4.1", "36.4.3", "39.2.0"])
def test_orin_reading(tmp_path, opened, l4t):
    orin = trees.orin_nano(tmp_path, l4t=l4t)
    sensors = opened(orin, *profiles.load("jetson-orin-nano").sensors)
    values = sensors.read()
    assert values["power_w"] == values["power_w/VDD_IN"] == pytest.approx(5.032 * 0.952)
    assert {key for key in values if key.startswith("power_w/")} == {
        "power_w/VDD_IN",
        "power_w/VDD_CPU_GPU_CV",
        "power_w/VDD_SOC",
    }
    assert values["temperature_c"] == 48.1
    assert "temperature_c/cv0-thermal" not in values
    assert values["over_current"] == values["over_current_events"] == 0
    assert values["gpu_clock_limit_khz"] == 1_020_000
    assert sensors.vendor()["jetson"]["mode"] in ("15W", "MAXN_SUPER", "25W")


def test_orin_over_current(tmp_path, opened):
    orin = trees.orin_nano(tmp_path)
    sensors = opened(orin, "jetson")
    orin["/sys/class/hwmon/hwmon1/curr1_max_alarm"] = 1
    orin["/sys/class/hwmon/hwmon3/oc3_event_cnt"] = 7
    values = sensors.read()
    assert values["over_current"] == 1
    assert values["over_current_events"] == 7


def test_a_channel_that_is_off_or_not_connected_is_no_rail(tmp_path, opened):
    orin = trees.orin_nano(tmp_path)
    orin["/sys/class/hwmon/hwmon1/in3_enable"] = 0
    orin["/sys/class/hwmon/hwmon1/in2_label"] = "NC"
    assert [key for key in opened(orin, "jetson").read() if key.startswith("power_w/")] == ["power_w/VDD_IN"]


def test_without_an_input_rail_power_is_the_sum_and_says_so(tmp_path, opened):
    agx = trees.orin_nano(tmp_path)
    agx["/sys/class/hwmon/hwmon1/in1_label"] = "VDD_GPU_SOC"
    sensors = opened(agx, "jetson")
    values = sensors.read()
    assert values["power_w"] == pytest.approx(sum(v for k, v in values.items() if k.startswith("power_w/")))
    assert sensors.vendor()["energy"]["coverage"].startswith("the sum of the measured rails VDD_GPU_SOC + ")


# ---------------------------------------------------------------- x86


def test_server_reading(tmp_path, opened):
    server = trees.x86_server(tmp_path)
    sensors = opened(server, "thermal", "cpufreq", "rapl")
    values = sensors.read()
    assert values["temperature_c"] == 61, "the network card's 88 C is not the processor's"
    assert values["cooling_state"] == 0
    assert (values["clock_khz"], values["clock_min_khz"]) == (2_300_000, 2_000_000)
    assert values["throttle_count"] == 0 + 1 + 2 + 3 + 5
    assert values["energy_j"] == 0
    assert "power_w" not in values, "power needs two readings"
    server["/sys/class/powercap/intel-rapl:0/energy_uj"] = 4_000_000
    server["/sys/class/powercap/intel-rapl:0:0/energy_uj"] = 700_000
    values = sensors.read()
    assert values["energy_j"] == values["energy_j/package-0"] == 3
    assert values["energy_j/package-0.dram"] == pytest.approx(0.2)
    assert values["power_w"] > 0


def test_energy_counter_that_wraps(tmp_path, opened):
    server = trees.x86_server(tmp_path)
    span = 262_143_328_850
    server["/sys/class/powercap/intel-rapl:0/energy_uj"] = span - 1_000_000
    sensors = opened(server, "rapl")
    assert sensors.read()["energy_j"] == 0
    server["/sys/class/powercap/intel-rapl:0/energy_uj"] = 500_000
    assert sensors.read()["energy_j"] == pytest.approx(1.5)
    server["/sys/class/powercap/intel-rapl:0/energy_uj"] = 400_000
    assert sensors.read()["energy_j"] == pytest.approx(1.4 + span * 1e-6)


# ---------------------------------------------------------------- any


def test_a_device_with_nothing(tmp_path):
    sensors = open_sensors(EVERY, str(tmp_path))
    assert sensors.read() == {}
    assert sensors.vendor() == {}
    assert set(sensors.missing) == set(EVERY)
    assert all(fact["detail"] for fact in sensors.facts())


def test_a_python_without_ctypes_lacks_nvml_alone(pi, opened, monkeypatch):
    import sys

    from argus_edge.agents import sensors

    monkeypatch.delitem(sys.modules, sensors.__name__ + ".nvml", raising=False)
    monkeypatch.setitem(sys.modules, "ctypes", None)
    found = opened(pi, "thermal", "nvml")
    assert "ctypes" in found.missing["nvml"]
    assert found.read()["temperature_c"] == 52.35


def test_an_unknown_sensor_is_said_to_be_missing(pi, opened):
    assert opened(pi, "thermal", "barometer").missing == {"barometer": "this agent has no such sensor"}


@pytest.mark.parametrize("rubbish", ["", "nonsense", "-", "9" * 500, "\x00\xff"])
def test_rubbish_in_files_is_no_value(tmp_path, opened, rubbish):
    for plant, names in ((trees.pi5, "pi5"), (trees.jetson_nano, "jetson-nano"), (trees.orin_nano, "jetson-orin-nano")):
        tree = plant(tmp_path / names)
        sensors = opened(tree, *profiles.load(names).sensors)
        for path in sorted(tree.root.rglob("sys/**/*")):
            if path.is_file() and path.name not in ("type", "name") and "label" not in path.name:
                path.write_text(rubbish)
        assert {key for key, value in sensors.read().items() if value - value == 0} <= {"clock_max_khz"}


def test_power_is_the_first_named_sensors(tmp_path, opened):
    tree = trees.x86_server(tmp_path)
    trees.jetson_nano(tmp_path / "other")
    nano = trees.Tree(tmp_path / "other")
    (tree.root / "sys/bus").symlink_to(nano.root / "sys/bus")
    sensors = opened(tree, "rapl", "jetson")
    assert "power_w" not in sensors.read(), (
        "the first reading of a counter is no power, and no other's stands in for it"
    )
    assert sensors.vendor()["energy"]["sensor"] == "rapl"
    assert opened(tree, "jetson", "rapl").read()["power_w"] == 2.451


def test_power_that_could_not_be_told_at_first_ends_no_run(pi, opened):
    class Late:
        power = None  # the GPU slept when it was asked

        def read(self):
            return {"power_w": 61.0, "gpu_power_w": 61.0}

        def close(self):
            pass

    sensors = opened(pi, "thermal")
    sensors._opened.append(("nvml", Late()))
    values = sensors.read()
    assert values["gpu_power_w"] == 61.0
    assert "power_w" not in values, "nothing says what it covers"


def test_closing_leaves_no_descriptor(pi):
    import os

    before = set(os.listdir("/proc/self/fd"))
    sensors = open_sensors(EVERY, str(pi.root))
    sensors.read()
    sensors.vendor()
    sensors.close()
    assert set(os.listdir("/proc/self/fd")) == before
