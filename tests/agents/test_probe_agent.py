"""The shipped agent on a recorded tree, under every Python of this machine: probe, check, a run that reads sensors."""

from __future__ import annotations

from pathlib import Path

import pytest

from argus_edge.devices import profiles
from argus_edge.schema.agent import DeviceFacts, Finding
from tests.board import trees
from tests.support.agent_device import Agent, interpreters, null_part

each_python = pytest.mark.parametrize("python", interpreters(), ids=lambda path: Path(path).parent.parent.name)


@pytest.fixture
def nano(tmp_path):
    tree = trees.jetson_nano(tmp_path / "nano")
    tree["/proc/meminfo"] = "MemTotal: 4059256 kB\nMemAvailable: 3000000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB"
    return tree


@each_python
def test_probe_and_check(archive, tmp_path, nano, python):
    agent = Agent(archive, tmp_path / "home", python)
    found = DeviceFacts.model_validate(agent.call("probe", "--system-root", str(nano.root)))
    assert found.python_executable
    assert found.agent_sha256
    assert (found.firmware, found.power_mode) == ("R32.7.1", "MAXN")
    assert profiles.match(found).name == "jetson-nano"
    findings = agent.call("check", "--system-root", str(nano.root))["findings"]
    assert {Finding.model_validate(finding).check for finding in findings} >= {
        "python",
        "disk",
        "governor",
        "power-mode",
    }


@each_python
def test_a_run_reads_the_sensors_and_the_vendors_tools(archive, tmp_path, nano, python):
    agent = Agent(archive, tmp_path / "home", python)
    sensors = [*profiles.load("jetson-nano").sensors, "barometer"]
    result = agent.run(null_part(duration_s=1.0), sensors=sensors, system_root=str(nano.root), sample_period_s=0.1)
    (part,) = result.parts
    readings = [point.values for point in part.series]
    assert readings
    assert all(values["power_w"] == 2.451 and values["temperature_c"] == 41.5 for values in readings)
    assert part.idle_power_w == pytest.approx(2.451)
    for vendor in (part.vendor_before, part.vendor_after):
        assert vendor["jetson"]["mode"] == "MAXN"
        assert vendor["energy"]["source"] == "INA3221 POM_5V_IN"
    agent.call("remove", "run-1")
