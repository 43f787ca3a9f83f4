"""What the sensors may cost: imports that the supervisor's memory pays for, and values that the documentation lists."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from argus_edge.agents.sensors import MODULES, memory, open_sensors
from tests.board import trees

COSTLY = {"subprocess", "typing", "dataclasses", "hashlib", "ctypes", "tempfile", "argparse", "multiprocessing", "json"}


def test_importing_every_sensor_but_nvml_is_lean():
    modules = [name for name in set(MODULES.values()) if name != "nvml"]
    program = "import sys; sys.path.insert(0, %r); import agents.sensors\n" + "".join(
        f"import agents.sensors.{name}\n" for name in modules
    )
    program += "print(' '.join(sys.modules))"
    from pathlib import Path

    import argus_edge.agents

    folder = Path(argus_edge.agents.__file__).resolve().parent.parent
    done = subprocess.run(
        [sys.executable, "-S", "-c", program % str(folder)], capture_output=True, text=True, check=True
    )
    assert COSTLY.isdisjoint(done.stdout.split())


@pytest.mark.parametrize("plant", [trees.pi5, trees.jetson_nano, trees.orin_nano, trees.x86_server])
def test_every_value_is_documented(repo_root, tmp_path, plant):
    plain = set(re.findall(r"`([a-z_]+)(?:/[A-Z]+)?`", (repo_root / "docs/sensors.md").read_text()))
    (tmp_path / "proc/pressure").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemTotal: 8 kB\nMemAvailable: 4 kB\nSwapTotal: 2 kB\nSwapFree: 1 kB\n")
    (tmp_path / "proc/pressure/cpu").write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n")
    sensors = open_sensors(list(MODULES), str(plant(tmp_path).root))
    values = {**sensors.read(), **sensors.read()}
    assert values["cpu_pressure_s"] == 1.5
    assert values["swap_used_bytes"] == 1024
    assert {name.partition("/")[0] for name in values} <= plain
    assert all(isinstance(value, float) for value in values.values())


def test_meminfo_and_pressure_parsers_pass_over_what_they_do_not_know():
    assert memory.meminfo("MemTotal:  12 kB\nHugePages_Total: 0\nrubbish\nX: y kB\n") == {"MemTotal": 12 * 1024}
    assert memory.stalled("full avg10=0 total=3\n") is None
    assert memory.stalled("some total=x\n") is None
