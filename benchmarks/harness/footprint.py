"""Memory of supervisor and worker before a runtime is imported, and the size of the shipped zipapp.

    python benchmarks/harness/footprint.py [PYTHON ...]

Bars: 16 MB each on Python 3.11 and 3.13 (peak RSS, VmHWM), 120 kB. Writes footprint.json beside this file.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from device import Device, median, record, scratch

REPEATS = 3
PART = {
    "name": "null",
    "runtime": "null",
    "options": {"work_s": 0.01},
    "scenario": {"duration_s": 1.0},
    "warmup": {"fixed_calls": 3},
}


def peak(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


def measure(python: str, folder: Path) -> dict[str, object]:
    device = Device(folder, python)
    supervisors, workers = [], []
    for _ in range(REPEATS):
        run, pid = device.start(PART)
        highest = 0
        while now := peak(pid):
            highest = max(highest, now)
            time.sleep(0.02)
        supervisors.append(highest)
        workers.append(device.finish(run).part["memory"]["peak_rss_load"])
    version = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout.split()[1]
    return {
        "python": version,
        "supervisor_peak_rss_mb": round(median(supervisors) / 1e6, 2),
        "worker_peak_rss_mb": round(median(workers) / 1e6, 2),
    }


def main() -> None:
    rows = []
    for python in sys.argv[1:] or [sys.executable]:
        with scratch() as folder:
            rows.append(measure(python, Path(folder)))
            size = Device(Path(folder)).archive.size
    record("footprint", {"zipapp_bytes": size, "bar_mb": 16, "bar_zipapp_bytes": 120_000, "interpreters": rows})


if __name__ == "__main__":
    main()
