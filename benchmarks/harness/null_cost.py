"""What the harness costs per timed iteration: the null runtime against an empty Python loop.

    python benchmarks/harness/null_cost.py [PYTHON ...]

Bar: 0.5 us. The cost holds two clock readings, two stores into the shared mapping, the test for the end and the call of
an empty function; beside it is what two bare clock readings cost on this machine. An iteration's time is the median gap
from one start to the next: a process that takes the core away is not the harness's. Medians of interleaved pairs.
Writes null_cost.json beside this file.
"""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

from device import Device, median, record, scratch

PAIRS = 7
PART = {"name": "null", "runtime": "null", "scenario": {"duration_s": 0.8}}
EMPTY = """
import gc, time
gc.disable()
n = 3000000
def loop():
    for _ in range(n):
        pass
loop()
start = time.perf_counter()
loop()
empty = (time.perf_counter() - start) / n
def clocks(clock=time.perf_counter):
    for _ in range(n):
        clock()
        clock()
start = time.perf_counter()
clocks()
print(empty, (time.perf_counter() - start) / n - empty)
"""


def main() -> None:
    rows = []
    for python in sys.argv[1:] or [sys.executable]:
        with scratch() as folder:
            device = Device(Path(folder), python)
            harness, empty, clocks = [], [], []
            for _ in range(PAIRS):
                starts = device.run(PART).starts
                harness.append(median([after - before for before, after in pairwise(starts)]))
                out = subprocess.run([python, "-c", EMPTY], capture_output=True, check=True).stdout.split()
                empty.append(float(out[0]))
                clocks.append(float(out[1]))
        version = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout.split()[1]
        rows.append(
            {
                "python": version,
                "pairs": PAIRS,
                "iteration_us": round(1e6 * median(harness), 4),
                "empty_loop_us": round(1e6 * median(empty), 4),
                "two_clock_readings_us": round(1e6 * median(clocks), 4),
                "cost_us": round(1e6 * median([a - b for a, b in zip(harness, empty, strict=True)]), 4),
            }
        )
    record("null_cost", {"bar_us": 0.5, "interpreters": rows})


if __name__ == "__main__":
    main()
