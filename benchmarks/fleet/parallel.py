"""Eight boards at once against one: the wall time of `bench --runtime null` at a fixed duration.

    python benchmarks/fleet/parallel.py [--boards 8] [--duration 20] [--rounds 3] [--json FILE]

The boards are SSH servers on this machine, each with a home folder of its own: they share its processor, which real
boards do not. The scenario is paced, 100 calls a second: in a closed loop the harness has its 4 million samples within
a second, whatever the duration. One and eight are taken in turn; the ratio of the medians is the figure.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support.boards import Boards, boards


def bench(lab: Boards, names: list[str], duration: float) -> float:
    """Bench on boards and return the wall time in seconds."""
    argv = ["bench", "--device", ",".join(names), "--runtime", "null", "--scenario", "paced", "--fps", "100"]
    argv += ["--duration", f"{duration:g}", "--warmup", "1"]
    begun = time.perf_counter()
    lab.run(*argv, "--json", "reports.json")
    took = time.perf_counter() - begun
    reports = json.loads((lab.home / "reports.json").read_text())
    assert len(reports if isinstance(reports, list) else [reports]) == len(names)
    return took


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--boards", type=int, default=8)
    parser.add_argument("--duration", type=float, default=20.0, help="seconds of the timed window")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    names = [f"board-{number}" for number in range(arguments.boards)]
    with tempfile.TemporaryDirectory() as folder, boards(Path(folder), names) as lab:
        bench(lab, names, 0.1)  # the agent is sent
        rounds = [
            {"one_s": bench(lab, names[:1], arguments.duration), "all_s": bench(lab, names, arguments.duration)}
            for _ in range(arguments.rounds)
        ]
    one = statistics.median(each["one_s"] for each in rounds)
    many = statistics.median(each["all_s"] for each in rounds)
    result = {
        "boards": arguments.boards,
        "duration_s": arguments.duration,
        "rounds": rounds,
        "one_s": one,
        "all_s": many,
        "ratio": many / one,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "load_1m": os.getloadavg()[0],
    }
    said = f"one board {one:.1f} s, {arguments.boards} boards {many:.1f} s: {many / one:.2f}x"
    print(f"{said} (load {result['load_1m']:.1f})")
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
