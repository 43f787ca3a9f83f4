"""The shipped agent: one small file, the same bytes every time, for every Python from 3.6 on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from argus_edge.devices.zipapp import agent_bytes, build_agent
from tests.support.agent_device import Agent, interpreters, null_part


def test_the_bytes_are_the_same_every_time(tmp_path) -> None:
    first = build_agent(tmp_path / "a")
    os.utime(first.path, (1, 1))
    second = build_agent(tmp_path / "b")
    assert first.path.read_bytes() == second.path.read_bytes() == agent_bytes()
    assert first.sha256 == second.sha256
    assert first.size == first.path.stat().st_size


def test_a_damaged_copy_in_the_cache_is_replaced(tmp_path) -> None:
    built = build_agent(tmp_path)
    built.path.write_bytes(b"cut off")
    assert build_agent(tmp_path).path.read_bytes() == agent_bytes()


def test_it_is_at_most_120_kilobytes() -> None:
    assert len(agent_bytes()) <= 120_000


def test_it_holds_the_package_and_its_entry_and_nothing_else(archive) -> None:
    with zipfile.ZipFile(archive) as content:
        names = content.namelist()
    assert "__main__.py" in names
    assert "agents/wire.py" in names
    assert all(name.endswith(".py") for name in names)
    assert all(name.startswith("agents/") for name in names if name != "__main__.py")


@pytest.mark.parametrize("python", interpreters(), ids=lambda path: Path(path).parent.parent.name)
def test_a_run_works_under_every_python_of_this_machine(archive, tmp_path, python) -> None:
    agent = Agent(archive, tmp_path / "home", python)
    result = agent.run(null_part(), sample_period_s=0.1)
    assert result.state == "done", result.error
    assert result.parts[0].samples_count >= 10
    assert agent.call("remove", "run-1")["removed"]


def test_every_module_compiles_for_3_6(repo_root) -> None:
    """Vermin finds what a newer Python alone has."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from vermin import main; main()",
            "--no-tips",
            "--violations",
            "-t=3.6-",
            str(repo_root / "agents"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_only_the_command_asked_for_is_imported(archive) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import agents.supervisor, json; "
        "print(json.dumps(sorted(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-S", "-c", code, str(archive)], capture_output=True, check=True).stdout
    loaded = set(json.loads(out))
    heavy = {"hashlib", "subprocess", "tempfile", "typing", "argparse", "multiprocessing", "ctypes", "numpy", "random"}
    assert not loaded & heavy
    assert not {"agents.probe", "agents.check", "agents.worker"} & loaded


def test_what_a_killed_command_left_of_it_is_gone_with_the_next_one(tmp_path):
    left = tmp_path / ".agent-0123456789abcdef.pyz.k1ll3d.part"
    left.write_bytes(b"half")
    archive = build_agent(tmp_path)
    assert not left.exists()
    assert archive.path.is_file()
