"""A whole bench on stand-in boards, over SSH on aarch64: probe, deploy, ONNX, LiteRT, planted sensors, trouble.

Times, power and temperatures mean nothing here; that they are read, kept and judged does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from argus_edge.schema.agent import DeviceFacts
from argus_edge.schema.bench import BenchReport
from tests.board.stand_in import USER, Board
from tests.support.tiny_models import tiny_onnx, tiny_tflite

pytestmark = [pytest.mark.board, pytest.mark.slow, pytest.mark.timeout(900)]

WAIT_S = 400.0


@dataclass
class Host:
    """A user with an inventory and an SSH configuration of its own."""

    folder: Path
    board: Board

    @property
    def environment(self) -> dict[str, str]:
        own = {f"XDG_{name}_HOME": str(self.folder / name.lower()) for name in ("CONFIG", "DATA", "CACHE", "STATE")}
        return {**os.environ, **own, "HOME": str(self.folder), "NO_COLOR": "1"}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "argus_edge", *arguments]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, cwd=self.folder, env=self.environment, **pipes)

    def run(self, *arguments: str, status: int = 0) -> tuple[str, str]:
        """Run a command; return what it wrote to stdout and stderr."""
        out, err = (process := self.start(*arguments)).communicate(timeout=WAIT_S)
        assert process.returncode == status, f"{arguments}\n{out}\n{err}"
        return out, err

    def bench(self, model: Path, *arguments: str) -> BenchReport:
        """Bench a model on the board for a moment; return the report."""
        short = ("--duration", "4", "--warmup", "2", "--threads", "1", "--json", "-")
        return BenchReport.model_validate_json(
            self.run("bench", str(model), "--device", "board", *short, *arguments)[0]
        )

    def runs(self) -> Path:
        """The agent's runs, on the board's own disk."""
        return self.board.root / "home" / USER / ".cache/argus-edge/runs"


@pytest.fixture(scope="module")
def make_host(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Board], Host]:
    def make(board: Board) -> Host:
        folder = tmp_path_factory.mktemp(board.name)
        ssh = folder / ".ssh"
        ssh.mkdir(mode=0o700)
        (ssh / "known_hosts").write_text(board.known_host)
        (ssh / "config").write_text(
            f"Host stand-in\n  HostName 127.0.0.1\n  Port {board.port}\n  User {USER}\n"
            f"  IdentityFile {board.key}\n  IdentitiesOnly yes\n"
        )
        host = Host(folder, board)
        host.run("device", "add", "board", "--host", "stand-in")
        return host

    return make


@pytest.fixture(scope="module")
def pi(pi5: Board, make_host: Callable[[Board], Host]) -> Host:
    return make_host(pi5)


@pytest.fixture(scope="module")
def nano(jetson_nano: Board, make_host: Callable[[Board], Host]) -> Host:
    return make_host(jetson_nano)


@pytest.fixture(autouse=True)
def a_board_in_order(request: pytest.FixtureRequest) -> None:
    """Each test of the Pi begins with a cool one: values that a test planted do not reach the next."""
    if "pi" in request.fixturenames:
        cool(request.getfixturevalue("pi").board)


def cool(board: Board) -> None:
    board.value("throttled", "0x0")
    board.tree["/sys/class/thermal/thermal_zone0/temp"] = 52350
    board.tree["/sys/class/hwmon/hwmon1/in0_lcrit_alarm"] = 0
    clock = "/sys/devices/system/cpu/cpufreq/policy0/scaling_"
    board.tree[clock + "cur_freq"] = board.tree[clock + "max_freq"] = 2_400_000


def causes(report: BenchReport) -> set[str]:
    return {cause.code for cause in report.validity.causes}


def probed(host: Host) -> DeviceFacts:
    document = json.loads(host.run("device", "probe", "board", "--json", "-")[0])
    return DeviceFacts.model_validate(document.get("facts", document))


# ---------------------------------------------------------------- Raspberry Pi 5


def test_probe(pi: Host) -> None:
    facts = probed(pi)
    assert (facts.arch, facts.model) == ("aarch64", "Raspberry Pi 5 Model B Rev 1.0")
    assert facts.emulated
    assert facts.externally_managed, "Debian blocks a plain pip install"
    assert facts.python.startswith("3.11.")
    assert facts.cpu_model == "Cortex-A76"
    runtimes = {fact.name: fact for fact in facts.runtimes}
    assert runtimes["onnxruntime"].version
    assert runtimes["litert"].package == "ai_edge_litert"
    assert runtimes["torch"].error == "not installed"
    assert {fact.name for fact in facts.sensors if fact.available} >= {"thermal", "cpufreq", "raspberrypi", "hwmon"}


def test_doctor_sees_a_weak_supply(pi: Host) -> None:
    pi.board.value("throttled", "0x50000")
    document = json.loads(pi.run("device", "doctor", "board", "--json", "-")[0])
    found = {item["check"]: item for item in findings(document) if not item["ok"]}
    assert found["under-voltage"]["severity"] == "warning"
    assert "27 W" in found["under-voltage"]["detail"]
    assert "emulated" in found


def findings(document: Any) -> list[dict[str, Any]]:
    """The findings, wherever the command's document keeps them."""
    if isinstance(document, dict):
        return document["findings"] if "findings" in document else [f for v in document.values() for f in findings(v)]
    return [found for item in document for found in findings(item)] if isinstance(document, list) else []


def test_onnx_bench_reads_the_planted_sensors(pi: Host, tmp_path: Path) -> None:
    pi.board.tree["/sys/class/thermal/thermal_zone0/temp"] = 61300
    report = pi.bench(tiny_onnx(tmp_path / "tiny.onnx"))
    assert report.device.profile == "pi5"
    (measurement,) = report.measurements
    assert measurement.state == "done"
    assert measurement.runtime == "onnxruntime"
    assert measurement.latency.count >= 11
    assert measurement.figures.p50.value > 0
    assert measurement.memory.peak_rss_steady > 1 << 20
    readings = [point.values for point in measurement.series if point.t >= 0]
    assert readings
    assert all(values["temperature_c"] == 61.3 for values in readings)
    assert all(values["under_voltage"] == 0 for values in readings)
    for vendor in (measurement.vendor_before, measurement.vendor_after):
        assert vendor["raspberrypi"]["throttled"] == 0
        assert vendor["raspberrypi"]["power_w"] == pytest.approx(2.3315, abs=1e-3)
    assert report.validity.valid is False, "an emulated board never passes a gate"
    assert "emulated" in causes(report)
    assert {"throttled", "under-voltage", "overheated", "clock-limited"}.isdisjoint(causes(report))


def test_litert_bench(pi: Host, tmp_path: Path) -> None:
    report = pi.bench(tiny_tflite(tmp_path / "tiny.tflite"), "--runtime", "litert")
    (measurement,) = report.measurements
    assert (measurement.state, measurement.runtime) == ("done", "litert")
    assert measurement.latency.count >= 11


def test_trouble_that_begins_in_the_middle(pi: Host, tmp_path: Path) -> None:
    known = set(os.listdir(pi.runs())) if pi.runs().is_dir() else set()
    options = ("--duration", "25", "--warmup", "2", "--threads", "1", "--json", "-")
    process = pi.start("bench", str(tiny_onnx(tmp_path / "tiny.onnx")), "--device", "board", *options)
    wait_for_steady(pi, process, known)
    pi.board.value("throttled", "0x50005")
    pi.board.tree["/sys/class/hwmon/hwmon1/in0_lcrit_alarm"] = 1
    pi.board.tree["/sys/class/thermal/thermal_zone0/temp"] = 84_900
    out, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, err
    report = BenchReport.model_validate_json(out)
    assert {"throttled", "under-voltage", "overheated"} <= causes(report)
    (measurement,) = report.measurements
    assert measurement.vendor_before["raspberrypi"]["throttled"] == 0
    assert measurement.vendor_after["raspberrypi"]["throttled"] == 0x50005
    begun = next(cause.from_s for cause in report.validity.causes if cause.code == "overheated")
    assert begun > 0, "the series shows where it began"


def wait_for_steady(host: Host, process: subprocess.Popen[str], known: set[str]) -> None:
    """Wait until a new run on the board is timing, by its journal."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline and process.poll() is None:
        for journal in host.runs().glob("*/journal.jsonl"):
            if journal.parent.name not in known and '"steady"' in journal.read_text():
                return
        time.sleep(0.2)
    process.kill()
    raise AssertionError(f"no run was timing: {process.communicate()}")


# ---------------------------------------------------------------- others


def test_trixie(pi5_trixie: Board, make_host: Callable[[Board], Host], tmp_path: Path) -> None:
    host = make_host(pi5_trixie)
    facts = probed(host)
    assert facts.python.startswith("3.13.")
    assert facts.emulated
    report = host.bench(tiny_onnx(tmp_path / "tiny.onnx"))
    assert report.measurements[0].state == "done"


def test_jetson_nano(nano: Host, tmp_path: Path) -> None:
    facts = probed(nano)
    assert (facts.firmware, facts.power_mode, facts.cpu_model) == ("R32.7.1", "MAXN", "Cortex-A57")
    report = nano.bench(tiny_onnx(tmp_path / "tiny.onnx"))
    assert report.device.profile == "jetson-nano"
    (measurement,) = report.measurements
    readings = [point.values for point in measurement.series if point.t >= 0]
    assert all(values["power_w"] == 2.451 for values in readings)
    assert all(values["temperature_c"] == 41.5 for values in readings)
    assert measurement.vendor_after["jetson"]["tegrastats"]["temperature_c"]["CPU"] == 38.5
    assert measurement.energy.source == "INA3221 POM_5V_IN"
    assert "5 V input" in measurement.energy.coverage
    assert measurement.memory_headline.memory_kind == "system-delta"
