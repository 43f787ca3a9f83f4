"""`probe`: facts from recorded trees, emulation, runtimes that crash when imported, and this very machine."""

from __future__ import annotations

import os
import re
import struct
import sys

import pytest

from argus_edge.agents import facts, probe
from argus_edge.devices import profiles
from argus_edge.schema.agent import DeviceFacts
from tests.board import trees

ELF = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HH", 2, 62)


@pytest.fixture
def no_runtimes(monkeypatch):
    """Importing torch takes seconds; tests of the rest do without."""
    monkeypatch.setattr(probe, "PROGRAMS", {})


def probed(tree, home="/nonexistent/home"):
    return DeviceFacts.model_validate(probe.probe(str(tree.root), home))


def test_this_machine():
    found = DeviceFacts.model_validate(probe.probe("/", "~/.cache/argus-edge"))
    assert found.arch == os.uname().machine
    assert found.python.split(".")[:2] == [str(number) for number in sys.version_info[:2]]
    assert found.emulated is False
    assert found.cores == os.cpu_count()
    assert found.memory_total_bytes > found.memory_available_bytes > 0
    assert found.boot_id
    runtimes = {fact.name: fact for fact in found.runtimes}
    assert set(runtimes) == {"onnxruntime", "litert", "torch", "tensorrt"}
    assert "cpu" in runtimes["onnxruntime"].providers
    assert runtimes["onnxruntime"].version


def test_raspberry_pi(tmp_path, no_runtimes):
    found = probed(trees.pi5(tmp_path))
    assert found.model == "Raspberry Pi 5 Model B Rev 1.0"
    assert found.cpu_model == "Cortex-A76"
    assert {"asimddp", "fphp"} <= set(found.cpu_features)
    assert found.governor == "ondemand"
    slow, fast = 1_500_000, 2_400_000
    assert found.clock_khz == {"min": slow, "max": fast, "current": slow, "floor": slow, "limit": fast}
    assert found.throttle == "0x0"
    assert found.firmware == (
        "VideoCore 2024/09/10 14:40:32; EEPROM 2024/09/23 14:02:56; image Raspberry Pi reference 2024-11-19"
    )
    assert found.virtual_machine is False
    assert found.accelerators_unused == []
    available = {fact.name for fact in found.sensors if fact.available}
    assert available == {"thermal", "cpufreq", "raspberrypi", "pmic", "hwmon"}
    assert profiles.match(found).name == "pi5"


def test_ai_hat_is_seen_and_not_used(tmp_path, no_runtimes):
    pi = trees.pi5(tmp_path)
    pi["/sys/bus/pci/devices/0001:01:00.0/vendor"] = "0x1e60"
    assert probed(pi).accelerators_unused == ["Hailo AI accelerator"]


def test_jetson_nano(tmp_path, no_runtimes):
    found = probed(trees.jetson_nano(tmp_path))
    assert found.firmware == "R32.7.1"
    assert found.power_mode == "MAXN"
    assert found.cpu_model == "Cortex-A57"
    assert found.gpu == "integrated GPU of NVIDIA Jetson Nano Developer Kit"
    assert profiles.match(found).name == "jetson-nano"


@pytest.mark.parametrize(
    ("l4t", "name"),
    [("35.4.1", "jetson-orin-nano-jp5"), ("36.4.3", "jetson-orin-nano"), ("39.2.0", "jetson-orin-nano-jp7")],
)
def test_jetson_orin_nano(tmp_path, no_runtimes, l4t, name):
    orin = trees.orin_nano(tmp_path, l4t=l4t)
    orin["/proc/meminfo"] = "MemTotal: 7803000 kB\nMemAvailable: 6000000 kB"
    orin["/usr/local/cuda/version.json"] = '{"cuda": {"version": "12.6.68"}}'
    found = probed(orin)
    assert found.firmware == f"R{l4t}"
    assert found.cuda == "12.6.68"
    assert profiles.match(found).name == name


def test_server(tmp_path, no_runtimes):
    found = probed(trees.x86_server(tmp_path))
    assert found.model == "Dell Inc. PowerEdge R750"
    assert found.firmware == "Dell Inc. 1.9.2"
    assert found.virtual_machine is False


def test_a_device_that_tells_nothing(tmp_path, no_runtimes):
    found = probed(trees.Tree(tmp_path))
    unknown = (
        "model",
        "os",
        "firmware",
        "boot_id",
        "cpu_model",
        "governor",
        "memory_total_bytes",
        "throttle",
        "gpu",
        "load_1m",
    )
    assert [getattr(found, name) for name in unknown] == [None] * len(unknown)


@pytest.mark.parametrize(
    ("machine", "elf", "emulated"),
    [
        ("aarch64", 62, True),  # qemu-user on x86-64
        ("aarch64", 183, False),
        ("aarch64", 40, False),  # a 32-bit userland on a 64-bit kernel
        ("x86_64", 183, True),
        ("x86_64", 62, False),
        ("armv7l", 62, True),
    ],
)
def test_emulation_by_the_programs_machine(tmp_path, monkeypatch, machine, elf, emulated):
    target = tmp_path / "proc/thread-self/exe"
    target.parent.mkdir(parents=True)
    target.write_bytes(ELF[:18] + struct.pack("<H", elf))
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "board", "5.10", "#1", machine)))
    assert bool(facts.emulation(str(tmp_path))) is emulated


def test_emulation_is_not_guessed_where_nothing_can_be_read(tmp_path):
    assert facts.emulation(str(tmp_path)) is None
    trees.Tree(tmp_path)["/proc/thread-self/exe"] = "short"
    assert facts.emulation(str(tmp_path)) is None


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import os; os.kill(os.getpid(), 11)", "died with signal 11 when imported"),
        ("raise ImportError('numpy.core.multiarray failed to import')", "numpy.core.multiarray failed to import"),
        ("import sys; sys.exit(3)", "status 3"),
        ("import time; time.sleep(600)", "did not import within 1 s"),
    ],
)
def test_a_runtime_that_cannot_be_imported(tmp_path, monkeypatch, program, said):
    (tmp_path / "onnxruntime.py").write_text(program)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    fact = probe.runtime("onnxruntime", timeout=1 if "sleep" in program else 60)
    assert said in fact["error"]
    assert fact["version"] is None


def test_a_runtime_that_chatters_and_crashes_at_its_exit_still_counts(tmp_path, monkeypatch):
    (tmp_path / "onnxruntime.py").write_text(
        "import atexit, os\nprint('hello ' * 1000)\n__version__ = '1.99'\n"
        "names = 'CUDA', 'CPU', 'OpenVINO'\n"
        "get_available_providers = lambda: [name + 'ExecutionProvider' for name in names]\n"
        "atexit.register(os.abort)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    fact = probe.runtime("onnxruntime")
    assert (fact["version"], fact["error"]) == ("1.99", None)
    assert fact["providers"] == ["cuda", "cpu", "OpenVINO"]


def test_litert_beside_a_numpy_that_it_was_not_built_for(tmp_path, monkeypatch):
    for package in ("ai_edge_litert", "tflite_runtime"):
        (tmp_path / package).mkdir()
    (tmp_path / "ai_edge_litert/__init__.py").write_text("raise ImportError('not this one')")
    (tmp_path / "tflite_runtime/__init__.py").write_text("__version__ = '2.14.0'")
    (tmp_path / "tflite_runtime/interpreter.py").write_text(
        "def Interpreter(model_content):\n    raise AttributeError('_ARRAY_API not found: compiled using NumPy 1.x')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert re.match(r"tflite_runtime 2.14.0 fails beside numpy \d.*NumPy 1.x", probe.runtime("litert")["error"])


def test_litert_that_works():
    pytest.importorskip("ai_edge_litert")
    fact = probe.runtime("litert")
    assert (fact["package"], fact["error"]) == ("ai_edge_litert", None)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"etc/systemd/logind.conf": "#KillUserProcesses=no"}, False),
        ({"etc/systemd/logind.conf": "#KillUserProcesses=yes"}, True),
        ({"etc/systemd/logind.conf": "#KillUserProcesses=no\nKillUserProcesses=yes"}, True),
        (
            {
                "etc/systemd/logind.conf": "KillUserProcesses=yes",
                "etc/systemd/logind.conf.d/10-lab.conf": "[Login]\nKillUserProcesses = false",
            },
            False,
        ),
    ],
)
def test_kill_user_processes(tmp_path, files, expected):
    for name, text in files.items():
        trees.Tree(tmp_path)[name] = text
    assert facts.kill_user_processes(str(tmp_path)) is expected


@pytest.mark.parametrize(
    ("cgroup", "files", "cores"),
    [
        ("0::/user.slice", {"sys/fs/cgroup/user.slice/cpu.max": "50000 100000"}, 1),
        ("0::/user.slice", {"sys/fs/cgroup/user.slice/cpu.max": "max 100000"}, None),
        (
            "4:cpu,cpuacct:/docker\n0::/",
            {"sys/fs/cgroup/cpu/docker/cpu.cfs_quota_us": 90000, "sys/fs/cgroup/cpu/docker/cpu.cfs_period_us": 100000},
            1,
        ),
        ("rubbish", {}, None),
    ],
)
def test_cores_usable_under_a_quota(tmp_path, cgroup, files, cores):
    tree = trees.Tree(tmp_path)
    tree["/proc/self/cgroup"] = cgroup
    for name, text in files.items():
        tree[name] = text
    assert facts.cores_usable(str(tmp_path)) == (cores or len(os.sched_getaffinity(0)))


def test_home_that_does_not_exist_yet_is_measured_at_its_parent(tmp_path):
    assert facts.disk(str(tmp_path / "a/b/c"))["disk_free_bytes"] > 0


def test_tensorrt_version_from_its_headers(tmp_path):
    header = "#define NV_TENSORRT_MAJOR 8 //!< major\n#define NV_TENSORRT_MINOR 2\n#define NV_TENSORRT_PATCH 1\n"
    trees.Tree(tmp_path)["/usr/include/aarch64-linux-gnu/NvInferVersion.h"] = header
    assert probe.tensorrt_version(str(tmp_path)) == "8.2.1"


def test_only_the_runtimes_that_are_asked_for_are_imported():
    found = probe.probe("/", "~/.cache/argus-edge", ["onnxruntime"])
    assert [fact["name"] for fact in found["runtimes"]] == ["onnxruntime"]
    assert probe.probe("/", "~/.cache/argus-edge", ["null"])["runtimes"] == []
