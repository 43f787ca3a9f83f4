"""``keep``, the first process of a container: it stays while another process lives beside it, and then goes."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from argus_edge.agents import keep


def in_a_name_space(script: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script with a mount name space of its own, as a container has."""
    unshare = ["unshare", "--mount"]
    if not shutil.which("unshare") or subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount name space of one's own here (root, util-linux)")
    command = [*unshare, "sh", "-c", script, "sh", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_it_ends_when_nothing_else_has_lived_there_for_a_while(archive, tmp_path):
    done = in_a_name_space('exec "$@"', sys.executable, str(archive), "--home", str(tmp_path), "keep", "0.3")
    assert (done.returncode, '{"kept": true}' in done.stdout) == (0, True)


def test_it_stays_as_long_as_another_process_lives_beside_it(archive, tmp_path):
    mark = tmp_path / "done"
    script = f'(sleep 1.5; touch {mark}) & exec "$@"'
    done = in_a_name_space(script, sys.executable, str(archive), "--home", str(tmp_path), "keep", "0.5")
    assert done.returncode == 0
    assert mark.exists()


def test_it_counts_those_that_see_the_same_files():
    before = keep.neighbours()
    with subprocess.Popen(["sleep", "60"]) as other:
        assert keep.neighbours() >= before
        assert keep.neighbours() > 0
        other.kill()
