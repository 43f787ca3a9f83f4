"""`check`: each finding appears when its cause is there, with the command that mends it, and not otherwise."""

from __future__ import annotations

import os
import sys

import pytest

from argus_edge.agents import check, facts, probe
from argus_edge.schema.agent import Finding
from tests.board import trees


@pytest.fixture
def runtimes(monkeypatch):
    """What the probe says of runtimes; ONNX Runtime is installed unless a test says otherwise."""
    known = [{"name": "onnxruntime", "version": "1.32.0", "providers": ["cpu"], "package": None, "error": None}]
    monkeypatch.setattr(probe, "PROGRAMS", {fact["name"]: "" for fact in known})
    monkeypatch.setattr(probe, "runtime", lambda name: known[0])
    return known


@pytest.fixture
def pi(tmp_path, runtimes):
    tree = trees.pi5(tmp_path / "root")
    tree["/proc/meminfo"] = "MemTotal: 8000000 kB\nMemAvailable: 7000000 kB"
    tree["/proc/loadavg"] = "0.10 0.10 0.10 1/100 1"
    tree["/sys/devices/system/cpu/cpufreq/policy0/scaling_governor"] = "performance"
    return tree


@pytest.fixture
def found(pi, tmp_path):
    """Runs the check on the tree and returns name -> finding of what is not well."""

    def run(tree=pi, home=str(tmp_path / "home")):
        findings = [Finding.model_validate(finding) for finding in check.check(home, str(tree.root))["findings"]]
        return {finding.check: finding for finding in findings if not finding.ok}

    return run


def test_a_board_in_order(found):
    assert found() == {}


@pytest.mark.parametrize(
    ("word", "check_name", "severity"),
    [
        ("0x1", "under-voltage", "error"),
        ("0x50000", "under-voltage", "warning"),
        ("0x50000", "throttled", "warning"),
        ("0x8", "soft-temperature-limit", "error"),
        ("0x20000", "frequency-capped", "warning"),
    ],
)
def test_what_the_firmware_remembers(pi, found, word, check_name, severity):
    pi[trees.VALUES + "/throttled"] = word
    assert found()[check_name].severity == severity


def test_under_voltage_alarm_now(pi, found):
    pi["/sys/class/hwmon/hwmon1/in0_lcrit_alarm"] = 1
    assert found()["under-voltage-alarm"].severity == "error"


def test_governor(pi, found):
    pi["/sys/devices/system/cpu/cpufreq/policy0/scaling_governor"] = "ondemand"
    finding = found()["governor"]
    assert finding.command == "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
    assert finding.privileged


def test_governor_of_a_jetson(tmp_path, runtimes, found):
    assert found(trees.jetson_nano(tmp_path / "nano"))["governor"].command == "sudo jetson_clocks"


def test_a_governor_with_nothing_to_choose_from(tmp_path, runtimes, found):
    nano = trees.jetson_nano(tmp_path / "nano")
    policy = "/sys/devices/system/cpu/cpufreq/policy0/scaling_"
    nano[policy + "min_freq"] = nano[policy + "max_freq"]  # what jetson_clocks does: schedutil stays
    assert "governor" not in found(nano)


def test_clock_limit(pi, found):
    pi["/sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq"] = 1_500_000
    assert "1.50 of 2.40 GHz" in found()["clock-limit"].detail


def test_heat_now(tmp_path, runtimes, found):
    nano = trees.jetson_nano(tmp_path / "nano")
    nano["/sys/class/thermal/cooling_device1/cur_state"] = 3
    assert "cpu-balanced" in found(nano)["throttled-now"].detail


def test_load(pi, found):
    pi["/proc/loadavg"] = "3.90 2.00 1.00 4/100 1"
    assert "--background" in found()["load"].detail


def test_logind_that_ends_runs(pi, found, monkeypatch):
    pi["/etc/systemd/logind.conf"] = "KillUserProcesses=yes"
    (pi.root / "run/systemd/system").mkdir(parents=True)
    finding = found()["logout"]
    assert finding.severity == "error"
    assert finding.command == f"sudo loginctl enable-linger {facts.user()}"
    pi["/var/lib/systemd/linger/" + facts.user()] = ""
    assert "logout" not in found()


def test_disk_and_memory(pi, found, monkeypatch):
    pi["/proc/meminfo"] = "MemTotal: 1000000 kB\nMemAvailable: 100000 kB"
    monkeypatch.setattr(check, "LEAST_DISK", 1 << 60)
    assert found()["memory"].severity == "warning"
    assert found()["disk"].severity == "error"


def test_noexec(pi, found, monkeypatch):
    real = facts.disk
    monkeypatch.setattr(facts, "disk", lambda home: dict(real(home), noexec_home=True))
    assert "--home DIR" in found()["noexec"].detail


def test_vcgencmd_without_rights(pi, found):
    pi.tool("/usr/bin/vcgencmd", "#!/bin/sh\necho 'VCHI initialization failed' >&2\nexit 1\n")
    assert found()["vcgencmd"].command == f"sudo usermod -aG video {facts.user()}"


def test_no_vcgencmd(pi, found):
    del pi["/usr/bin/vcgencmd"]
    assert found()["vcgencmd"].command == "sudo apt-get install -y raspi-utils"


def test_energy_counters_for_root_only(tmp_path, runtimes, found, monkeypatch):
    server = trees.x86_server(tmp_path / "server")
    real = os.access
    monkeypatch.setattr(check.os, "access", lambda path, mode: "energy_uj" not in path and real(path, mode))
    finding = found(server)["rapl"]
    assert finding.severity == "info"
    assert finding.command == "sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj"


def test_no_runtime_proposes_an_environment(found, runtimes, monkeypatch, tmp_path):
    runtimes[0]["error"] = "not installed"
    monkeypatch.setattr(facts, "in_venv", lambda: False)
    monkeypatch.setattr(facts, "externally_managed", lambda: True)
    finding = found()["runtimes"]
    home = tmp_path / "home"
    assert "PEP 668" in finding.detail
    assert finding.command == (
        f"{sys.executable} -m venv {home}/venv && {home}/venv/bin/python -m pip install numpy onnxruntime"
    )
    assert not finding.privileged


def test_no_runtime_within_an_environment(found, runtimes, monkeypatch):
    runtimes[0]["error"] = "not installed"
    monkeypatch.setattr(facts, "in_venv", lambda: True)
    assert found()["runtimes"].command == f"{sys.executable} -m pip install numpy onnxruntime"


def test_an_environment_that_the_inventory_does_not_name(found, runtimes, tmp_path, monkeypatch):
    runtimes[0]["error"] = "not installed"
    monkeypatch.setattr(facts, "in_venv", lambda: False)
    python = tmp_path / "home/venv/bin/python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    finding = found()["python-environment"]
    assert f"--python {python}" in finding.detail
    assert finding.command is None


def test_python_that_cannot_make_environments(found, runtimes, monkeypatch):
    runtimes[0]["error"] = "not installed"
    monkeypatch.setattr(facts, "in_venv", lambda: False)
    monkeypatch.setattr(check, "has_module", lambda name: name != "ensurepip")
    finding = found()["python-venv"]
    assert finding.command == f"sudo apt-get install -y python3.{sys.version_info[1]}-venv python3-pip"
    assert finding.privileged


def test_old_python_gets_the_last_versions_that_it_can_have():
    command = check.install_command("/home/lab/.cache/argus-edge", (3, 6), False)
    assert command == (
        f"{sys.executable} -m venv /home/lab/.cache/argus-edge/venv"
        " && /home/lab/.cache/argus-edge/venv/bin/python -m pip install pip==21.3.1"
        " && /home/lab/.cache/argus-edge/venv/bin/python -m pip install numpy==1.19.4 onnxruntime==1.10.0"
    )


def test_a_home_with_blanks_is_quoted():
    assert "'/srv/my home/venv'" in check.install_command("/srv/my home", (3, 11), False)


def test_a_runtime_that_crashes(found, runtimes):
    runtimes[0]["error"] = "died with signal 4 when imported"
    assert "died with signal 4" in found()["runtime-onnxruntime"].detail
    assert found()["runtime-onnxruntime"].severity == "error"


def test_tflite_runtime_beside_numpy_2(found, runtimes):
    runtimes[0].update(name="litert", error="tflite_runtime 2.14.0 fails beside numpy 2.4.6: _ARRAY_API not found")
    assert found()["tflite-numpy"].command == f"{sys.executable} -m pip install 'numpy<2'"


def test_emulated(pi, found, monkeypatch):
    monkeypatch.setattr(facts, "emulation", lambda root: "qemu")
    assert found()["emulated"].detail == "qemu"
