"""The NVML sensor against a fake library that a C compiler makes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from argus_edge.agents.sensors import nvml, open_sensors
from tests.board import trees

SOURCE = Path(__file__).with_name("fake_nvml.c")
COMPILER = shutil.which("cc") or shutil.which("gcc")


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """A system root that holds the fake library."""
    if not COMPILER:
        pytest.skip("no C compiler to make the fake NVML with")
    root = tmp_path_factory.mktemp("nvml")
    target = root / "usr/lib/x86_64-linux-gnu" / nvml.LIBRARY
    target.parent.mkdir(parents=True)
    subprocess.run([COMPILER, "-shared", "-fPIC", "-w", "-o", str(target), str(SOURCE)], check=True)
    return root


@pytest.fixture(autouse=True)
def no_choice(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_reading(library):
    sensors = open_sensors(["nvml"], str(library))
    assert sensors.read() == {
        "gpu_clock_khz": 1_095_000,
        "gpu_memory_clock_khz": 1_512_000,
        "gpu_clock_limit_khz": 1_410_000,
        "gpu_temperature_c": 41,
        "gpu_power_w": 62.5,
        "power_w": 62.5,
        "gpu_energy_j": pytest.approx(123.456),
        "energy_j": pytest.approx(123.456),
        "gpu_throttle_reasons": 1,
        "gpu_throttled": 0,
        "gpu_memory_used_bytes": 899_345_920,
        "gpu_load_percent": 37,
    }
    sensors.close()


def test_between_the_windows(library, monkeypatch):
    monkeypatch.setenv("FAKE_REASONS", str(0x4 | 0x40 | 0x1000))
    said = open_sensors(["nvml"], str(library)).vendor()
    assert said["nvml"] == {
        "name": "Fake A100 #0",
        "driver": "580.65.06",
        "cuda": "13.0",
        "memory_total_bytes": 80 << 30,
        "power_limit_w": 400,
        "throttle_reasons": ["software-power-cap", "hardware-thermal-slowdown", "0x1000"],
    }
    assert said["energy"] == {"sensor": "nvml", "source": "NVML", "coverage": "the GPU board; leaves out the host"}


@pytest.mark.parametrize(
    ("mask", "throttled"), [(0x0, 0), (0x1 | 0x2 | 0x4, 0), (0x8, 1), (0x20, 1), (0x40 | 0x1, 1), (0x80, 1)]
)
def test_which_reasons_are_throttling(library, monkeypatch, mask, throttled):
    monkeypatch.setenv("FAKE_REASONS", str(mask))
    assert open_sensors(["nvml"], str(library)).read()["gpu_throttled"] == throttled


def test_power_and_energy_are_one_sensors(library, tmp_path):
    root = trees.x86_server(tmp_path).root
    (root / "usr").symlink_to(library / "usr")
    values = open_sensors(["nvml", "rapl"], str(root)).read()
    assert (values["power_w"], values["energy_j"]) == (62.5, pytest.approx(123.456))
    assert "energy_j/package-0" in values
    values = open_sensors(["rapl", "nvml"], str(root)).read()
    assert values["energy_j"] == 0
    assert values["gpu_power_w"] == 62.5


def test_a_jetsons_nvml_tells_no_power(library, monkeypatch):
    monkeypatch.setenv("FAKE_NO_POWER", "1")
    sensors = open_sensors(["nvml"], str(library))
    assert {"power_w", "gpu_power_w", "energy_j"}.isdisjoint(sensors.read())
    assert sensors.power is None
    assert "tells no power" in sensors.facts()[0]["detail"]


@pytest.mark.parametrize(
    ("choice", "name"), [("", "#0"), ("1", "#1"), ("1,0", "#1"), ("7", "#0"), ("GPU-nine", "#8"), ("none", "#0")]
)
def test_the_gpu_that_cuda_would_take(library, monkeypatch, choice, name):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", choice)
    assert open_sensors(["nvml"], str(library)).facts()[0]["detail"].endswith(name)


@pytest.mark.parametrize(
    ("variable", "value", "why"),
    [
        ("FAKE_NO_DRIVER", "1", "status 9"),
        ("FAKE_COUNT", "0", "no GPU"),
        ("CUDA_VISIBLE_DEVICES", "GPU-gone", "status 6"),
    ],
)
def test_why_there_is_none(library, monkeypatch, variable, value, why):
    monkeypatch.setenv(variable, value)
    assert why in open_sensors(["nvml"], str(library)).missing["nvml"]


def test_no_library(tmp_path):
    assert nvml.LIBRARY in open_sensors(["nvml"], str(tmp_path)).missing["nvml"]
