"""How long `argus-edge validate` takes on a report of 1 MB, process start included.

    python benchmarks/gate/validate_speed.py [REPEATS]

Bar: 0.6 s in all. Beside it an empty Python process. Writes validate_speed.json beside this file.
"""

from __future__ import annotations

import base64
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from argus_edge.artifacts import write_artifact
from argus_edge.schema.bench import EncodedArray
from tests.support.reports import bench

BUDGET = (
    "budget: 1\nlimits:\n  latency_p50: 100 ms\n  latency_p95: 120 ms\n  latency_p99: 0.5 s\n  peak_memory: 900 MB\n"
)
CALLS = 187_000


def timed(command: list[str]) -> float:
    begun = time.perf_counter()
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begun


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    with tempfile.TemporaryDirectory() as folder:
        report = bench("clip", p50=0.05).artifact
        latency = np.random.default_rng(0).gamma(20, 0.05 / 20, CALLS) * 1e9
        report.measurements[0].latency = EncodedArray(
            dtype="<u4", unit="ns", count=CALLS, data=base64.b64encode(latency.astype("<u4").tobytes()).decode()
        )
        path, budget = Path(folder, "clip.bench.json"), Path(folder, "budget.yaml")
        write_artifact(report, path)
        budget.write_text(BUDGET)
        command = [sys.executable, "-m", "argus_edge", "validate", str(path), "--budget", str(budget)]
        times = {"validate": [], "empty": []}
        timed(command)
        for _ in range(repeats):
            times["validate"].append(timed(command))
            times["empty"].append(timed([sys.executable, "-c", "pass"]))
        document = {
            "report_bytes": path.stat().st_size,
            "repeats": repeats,
            "validate_s": statistics.median(times["validate"]),
            "fastest_s": min(times["validate"]),
            "empty_python_s": statistics.median(times["empty"]),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        }
    Path(__file__).with_suffix(".json").write_text(json.dumps(document, indent=1) + "\n")
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
