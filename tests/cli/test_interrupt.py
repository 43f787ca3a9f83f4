"""Signals to a real `argus-edge bench`: one Ctrl-C stops the run on the device, two leave it, a hang-up detaches."""

import os
import re
import signal
import subprocess
import sys

import psutil
import pytest

ARGUS_EDGE = [sys.executable, "-c", "from argus_edge.__main__ import main; main()"]
COMMAND = [*ARGUS_EDGE, "bench", "--device", "local", "--runtime", "null"]
PATIENCE_S = 120


@pytest.fixture
def start(tmp_path):
    """A function that starts a bench of the harness in a session of its own and waits for a word of its messages."""
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    started = []

    def begin(word, duration=600):
        process = subprocess.Popen(
            [*COMMAND, "--duration", str(duration)],
            cwd=tmp_path,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        started.append(process)
        said = ""
        for line in process.stderr:
            said += line
            if re.search(word, line):
                return process, said
        raise AssertionError(f"it ended without saying {word!r}: {said}")

    yield begin
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def argus(tmp_path):
    """A function that runs argus-edge to its end."""
    environment = {**os.environ, "HOME": str(tmp_path)}

    def run(*argv):
        return subprocess.run(
            [*ARGUS_EDGE, *argv],
            cwd=tmp_path,
            env=environment,
            text=True,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )

    return run


def on_device(tmp_path):
    """Processes of a run whose device home is below this test's folder."""
    mark = str(tmp_path / ".cache" / "argus-edge")
    return [p for p in psutil.process_iter(["cmdline"]) if any(mark in word for word in p.info["cmdline"] or [])]


def left(tmp_path):
    runs = tmp_path / ".cache" / "argus-edge" / "runs"
    return sorted(path.name for path in runs.iterdir()) if runs.is_dir() else []


@pytest.mark.parametrize("module", ["argus_edge.cli.main", "argus_edge.store.records"])
def test_ctrl_c_while_modules_are_imported_leaves_no_traceback(tmp_path, module):
    program = f"""
import os, signal, sys

class Press:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Press())
from argus_edge.__main__ import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", program, "runs", "list"],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 130
    assert done.stderr.strip() == "interrupted"


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["looking at", "about .* in all", "--resume"])
def test_ctrl_c_at_any_point(start, tmp_path, moment):
    process, _ = start(moment)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err
    assert on_device(tmp_path) == []
    assert left(tmp_path) == []
    assert list(tmp_path.glob("*.json")) == []


@pytest.mark.slow
def test_two_ctrl_c_leave_at_once_and_the_run_can_be_come_back_to(start, argus, tmp_path):
    process, said = start("--resume", duration=20)
    run = re.search(r"--resume (\S+?)\)", said)[1]
    process.send_signal(signal.SIGINT)
    for line in process.stderr:
        if "Ctrl-C again" in line:
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "Traceback" not in err
    # Whether the first Ctrl-C had reached the device by then is a race; either way the user is told.
    if "was stopped" not in err:
        assert run in err
        assert argus("runs", "stop", run).returncode in (0, 3, 5)
    assert on_device(tmp_path) == []


@pytest.mark.slow
def test_a_hang_up_detaches(start, argus, tmp_path):
    process, said = start("--resume", duration=8)
    run = re.search(r"--resume (\S+?)\)", said)[1]
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=PATIENCE_S)
    assert left(tmp_path) == [run]
    assert run in argus("runs", "list").stdout
    done = argus("bench", "--resume", run)
    assert done.returncode == 0, done.stderr
    assert "null on local" in done.stdout
    assert left(tmp_path) == []
    assert (tmp_path / f"{run}.json").is_file()


@pytest.mark.slow
def test_a_killed_host_leaves_a_run_that_can_be_stopped(start, argus, tmp_path):
    process, said = start("--resume")
    run = re.search(r"--resume (\S+?)\)", said)[1]
    process.kill()
    process.communicate()
    assert "running" in argus("runs", "list").stdout
    stopped = argus("runs", "stop", run)
    assert stopped.returncode == 0, stopped.stderr
    assert on_device(tmp_path) == []
