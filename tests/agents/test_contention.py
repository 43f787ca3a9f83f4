"""Who else used the processor."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from argus_edge.agents import contention, system

BURN = "import os, time; end = time.perf_counter() + 60\nwhile time.perf_counter() < end: pass"


class Fixed:
    """A snapshot made by hand."""

    def __init__(self, t, busy, steal, cores, processes) -> None:
        self.t, self.busy, self.steal, self.cores, self.processes = t, busy, steal, cores, processes


def test_what_is_ours_or_declared_is_not_other_load(monkeypatch) -> None:
    names = {20: ("cc1plus", ""), 30: ("python3", "camera.service"), 40: ("cron", "")}
    monkeypatch.setattr(contention, "describe", names.__getitem__)
    before = Fixed(100.0, 50.0, 0.0, 4, {(10, "1", 10): 5.0, (20, "1", 20): 7.0, (30, "1", 30): 0.0})
    after = Fixed(
        110.0,
        50.0 + 8.0 + 2.0 + 6.0 + 1.0 + 0.1,
        1.0,
        4,
        {
            (10, "1", 10): 13.0,  # the worker: 8 s
            (11, "9", 10): 1.0,  # started by it
            (20, "1", 20): 13.0,  # a compiler: 6 s
            (30, "1", 30): 2.0,  # the declared camera
            (40, "5", 40): 0.1,  # below 5 % of a core
        },
    )
    found = contention.compare(before, after, {10}, ["camera"])
    assert found["other_cpu_share"] == pytest.approx((6.0 + 0.1) / 40)
    assert found["other_load"] == ["cc1plus: 60 % of a core"]
    assert found["background_load"] == ["python3 (camera.service): 20 % of a core"]
    assert found["steal_share"] == pytest.approx(1 / 40)


def test_a_pid_that_was_given_anew_counts_from_zero() -> None:
    before = Fixed(0.0, 0.0, 0.0, 1, {(7, "1", 7): 100.0})
    after = Fixed(10.0, 5.0, 0.0, 1, {(7, "2", 7): 5.0})
    assert contention.compare(before, after, {7}, [])["other_cpu_share"] == 0.0


def test_a_process_that_burns_a_core_is_named() -> None:
    burner = subprocess.Popen([sys.executable, "-c", BURN])
    try:
        before = contention.Snapshot(time.perf_counter)
        while (system.cpu_seconds(burner.pid) or 0) < 0.5:
            pass
        after = contention.Snapshot(time.perf_counter)
        # While it lives: a process that has ended has no name, and on a busy machine another one would pass for it.
        found = contention.compare(before, after, {os.getpid()}, [])
    finally:
        burner.kill()
        burner.wait()
    assert found["other_cpu_share"] > 0
    name = contention.describe(os.getpid())[0]
    assert any(text.startswith(name) for text in found["other_load"])
