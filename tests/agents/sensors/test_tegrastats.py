"""tegrastats and nvpmodel: every release's form is read, the unknown never crashes, sizes stay bounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_edge.agents.sensors.tegrastats import nvpmodel, tegrastats
from tests.board.recordings import NVPMODEL, TEGRASTATS

MIB = 1 << 20


def test_nano():
    said = tegrastats(TEGRASTATS["32.4 Nano"])
    assert said == {
        "ram_used_bytes": 2457 * MIB,
        "ram_total_bytes": 3956 * MIB,
        "swap_used_bytes": 71 * MIB,
        "swap_total_bytes": 1978 * MIB,
        "cpu": [
            {"load_percent": 28, "clock_khz": 1_479_000},
            {"load_percent": 21, "clock_khz": 1_479_000},
            None,
            None,
        ],
        "emc_load_percent": 11,
        "emc_clock_khz": 1_600_000,
        "gpu_load_percent": 76,
        "gpu_clock_khz": [921_000],
        "temperature_c": {"PLL": 36, "CPU": 39.5, "PMIC": 100, "GPU": 36, "AO": 45, "thermal": 37.75},
        "power_w": {"POM_5V_IN": 5.318, "POM_5V_GPU": 1.226, "POM_5V_CPU": 1.064},
        "power_mean_w": {"POM_5V_IN": 5.318, "POM_5V_GPU": 1.226, "POM_5V_CPU": 1.064},
    }


@pytest.mark.parametrize(
    ("name", "input_rail", "watts", "gpu_khz", "cores_on"),
    [
        ("32.7 Nano", "POM_5V_IN", 2.451, [76_000], 4),
        ("32.7 Xavier", "SYS5V", 1.492, [318_000], 4),
        ("32.7 Xavier NX", "VDD_IN", 3.209, [114_000], 2),
        ("35.4 Orin Nano", "VDD_IN", 4.123, [305_000], 4),
        ("36.4 Orin Nano", "VDD_IN", 4.792, [0], 6),
        ("39.2 Orin Nano", "VDD_IN", 7.123, [918_000], 6),
        ("39.2 Orin AGX", "VIN_SYS_5V0", 5.5, [1_300_000, 1_300_000], 12),
        ("38.2 Thor", "VIN", 28.906, [1_574_000, 1_574_000], 2),
    ],
)
def test_every_release(name, input_rail, watts, gpu_khz, cores_on):
    said = tegrastats(TEGRASTATS[name])
    assert said["power_w"][input_rail] == watts
    assert said["gpu_clock_khz"] == gpu_khz
    assert sum(core is not None for core in said["cpu"]) == cores_on
    assert said["ram_total_bytes"] > said["ram_used_bytes"]
    assert {"RAM", "SWAP", "IRAM"}.isdisjoint(said["power_w"])


def test_zones_that_are_off_are_left_out():
    assert set(tegrastats(TEGRASTATS["35.4 Orin Nano"])["temperature_c"]) == {
        "CPU",
        "SOC2",
        "SOC0",
        "GPU",
        "tj",
        "SOC1",
    }


def test_third_figure_of_new_releases_is_the_maximum():
    said = tegrastats(TEGRASTATS["39.2 Orin Nano"])
    assert said["temperature_c"]["cpu"] == 50.125
    assert said["power_mean_w"]["VDD_IN"] == 6.890


def test_one_clock_for_all_cores():
    assert tegrastats(TEGRASTATS["38.2 Thor"])["cpu"][1] == {"load_percent": 5, "clock_khz": 2_601_000}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("32.4 Nano", {"mode": "MAXN", "mode_id": 0}),
        ("32.7 Nano", {"mode": "MAXN", "mode_id": 0, "fan_mode": "quiet"}),
        ("32.7 Nano 5W", {"mode": "5W", "mode_id": 1, "fan_mode": "quiet"}),
        ("32.7 Xavier NX", {"mode": "MODE_15W_6CORE", "mode_id": 2, "fan_mode": "cool"}),
        ("35.4 Orin Nano", {"mode": "15W", "mode_id": 0}),
        ("36.4 Orin Nano", {"mode": "MAXN_SUPER", "mode_id": 2}),
        ("39.2 Orin Nano", {"mode": "25W", "mode_id": 1}),
    ],
)
def test_nvpmodel(name, expected):
    assert nvpmodel(NVPMODEL[name]) == expected


WORDS = st.sampled_from(
    [
        *("RAM", "CPU", "[", "]", "@", "%", "1/2MB", "GR3D_FREQ", "EMC_FREQ", "VDD_IN", "5mW/5mW", "-256C", "off"),
        *("\x1b[31m", "9" * 400, "VDD_IN " + "9" * 400 + "mW/1mW", "cpu@" + "9" * 400 + "C"),
    ]
)


@given(st.one_of(st.text(max_size=400), st.lists(WORDS, max_size=60).map(" ".join), st.lists(WORDS).map("".join)))
def test_nothing_crashes_the_parsers(text):
    said = tegrastats(text)
    assert set(said) <= set(tegrastats(TEGRASTATS["32.7 Nano"]))
    nvpmodel(text)


@given(st.sampled_from(sorted(TEGRASTATS)), st.data())
def test_a_cut_line_is_still_read(name, data):
    line = TEGRASTATS[name]
    tegrastats(line[: data.draw(st.integers(0, len(line)))])


def test_a_flood_of_fields_is_bounded():
    line = " ".join(f"Z{i}@1C R{i} 5mW/5mW" for i in range(10_000)) + " CPU [" + "1%@1," * 10_000 + "]"
    said = tegrastats(line)
    assert max(len(said["temperature_c"]), len(said["power_w"]), len(said["cpu"])) <= 128
