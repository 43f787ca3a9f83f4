"""A plan that is stopped, in whatever way, leaves no command of it running, and lets the command end well."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from argus_edge.pipeline.children import call_and_wait

# Takes longer to stop than the quarter of a second after which subprocess.run would kill it.
CHILD = """
import os, sys, time
out = int(sys.argv[1])
try:
    os.write(out, b"begun ")
    time.sleep(600)
except KeyboardInterrupt:
    time.sleep(1)
    os.write(out, b"stopped")
"""
PARENT = """
import os, signal, subprocess, sys
from argus_edge.pipeline import children
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
popen = subprocess.Popen
children.subprocess.Popen = lambda *a, **k: popen(*a, pass_fds=[int(sys.argv[1])], **k)
os.set_inheritable(int(sys.argv[1]), True)
command = [sys.executable, "-c", sys.argv[2], sys.argv[1]]
try:
    children.call_and_wait(command)
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.fixture
def plan() -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A process that waits for a command in a group of its own, and the end of a pipe that the command writes to."""
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(writing), CHILD], pass_fds=[writing], start_new_session=True
    )
    os.close(writing)
    yield process, reading
    os.close(reading)
    process.kill()
    process.wait()


def everything(reading: int) -> bytes:
    """Read until nobody is left who could write."""
    parts = []
    while part := os.read(reading, 100):
        parts.append(part)
    return b"".join(parts)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("number", "whole_group", "code"),
    [(signal.SIGINT, True, 130), (signal.SIGTERM, False, 143), (signal.SIGKILL, False, -signal.SIGKILL)],
)
def test_the_command_is_told_to_stop_and_has_the_time_to(
    plan: tuple[subprocess.Popen[bytes], int], number: signal.Signals, whole_group: bool, code: int
) -> None:
    process, reading = plan
    assert os.read(reading, 6) == b"begun "
    (os.killpg if whole_group else os.kill)(process.pid, number)
    assert everything(reading) == b"stopped"
    assert process.wait() == code


def test_the_exit_code_is_the_command_s() -> None:
    assert call_and_wait([sys.executable, "-c", "raise SystemExit(8)"]) == 8
