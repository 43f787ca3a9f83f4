"""`compare` on this machine: a 10 % slow-down planted in the worker is found, and A against A is not called different.

    python benchmarks/gate/compare_here.py [TRIALS]        # 20 trials: about 40 minutes; nothing else may run

The model is a chain of cumulative sums; the slower one has a tenth more of them under the same name. Each addition
waits for the one before, so that a stranger on the core's other hardware thread, which slows matrix products by half,
moves it by a few per cent; a window of four seconds evens out most of what is left. A trial is 15 runs, interleaved:
five of A, five of A again, five of B; a run that is not valid is measured again, as its cause says, at most AGAIN
times. Bar: of 20 trials A against B is "worse" at least 19 times, and A against A is "better" or "worse" at most once.
Writes compare_here.json beside this file, with the run-to-run deviation that it was reached at.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SUMS, LENGTH = 40, 10_000
RUNS = 5
WINDOW_S = 4.0
WARMUP_CALLS = 30
AGAIN = 3
# A (baseline), A again, B: one of each in turn, the order turned round each time.
ORDER = ("baseline", "same", "slower")


def chain(sums: int, path: Path) -> Path:
    """Write a model of so many cumulative sums in a row."""
    axis = numpy_helper.from_array(np.array(0, np.int64), "axis")
    nodes = [helper.make_node("CumSum", [f"x{i}", "axis"], [f"x{i + 1}"]) for i in range(sums)]
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("x0", TensorProto.FLOAT, [LENGTH])],
        [helper.make_tensor_value_info(f"x{sums}", TensorProto.FLOAT, [LENGTH])],
        [axis],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(path))
    return path


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ARGUS_EDGE_STORE"] = f"sqlite:///{folder}/runs.db"
        from argus_edge.bench.drive import bench
        from argus_edge.bench.prepare import prepare
        from argus_edge.bench.request import make_request
        from argus_edge.devices.inventory import Inventory
        from argus_edge.errors import ArgusError
        from argus_edge.gate.compare import compare_reports
        from argus_edge.reports import Found
        from argus_edge.schema.bench import BenchReport
        from argus_edge.store.records import Store

        plain = chain(SUMS, Path(folder, "plain", "chain.onnx"))
        slow = chain(round(1.1 * SUMS), Path(folder, "slow", "chain.onnx"))
        how = {"duration": WINDOW_S, "warmup": WARMUP_CALLS, "threads": 1}
        prepared = {path: prepare(make_request(str(path), **how)) for path in (plain, slow)}
        models = {"baseline": plain, "same": plain, "slower": slow}
        here, store = Inventory().get("local"), Store()

        measured = Counter[str]()

        def measure(side: str) -> Found[BenchReport]:
            for _ in range(1 + AGAIN):
                outcome = bench(prepared[models[side]], here, store)
                if outcome.error is not None:
                    raise outcome.error
                measured["valid" if outcome.report.validity.valid else "not valid"] += 1
                if outcome.report.validity.valid:
                    break
            return Found(Path(f"{side}.json"), "", outcome.report)

        begun = time.monotonic()
        outcomes: dict[str, Counter[str]] = {"slower": Counter(), "same": Counter()}
        changes: dict[str, list[float]] = {"slower": [], "same": []}
        scatter: list[float] = []
        dropped = 0
        for trial in range(trials):
            sides: dict[str, list[Found[BenchReport]]] = {side: [] for side in ORDER}
            for number in range(RUNS):
                for side in ORDER if number % 2 == 0 else ORDER[::-1]:
                    sides[side].append(measure(side))
            scatter += [
                float(np.var([np.log(run.artifact.summary["p50"].value) for run in sides[side]], ddof=1))
                for side in ORDER
            ]
            for side in ("slower", "same"):
                try:
                    comparison = compare_reports(sides["baseline"], sides[side])
                except ArgusError as error:
                    outcomes[side][str(error.what)] += 1
                    continue
                dropped += len(comparison.dropped)
                found = [figure for figure in comparison.figures if figure.figure == "latency_p50"]
                outcomes[side][found[0].outcome if found else "no run was valid"] += 1
                changes[side] += [figure.change for figure in found if figure.change is not None]
            print(f"trial {trial + 1}: {dict(outcomes['slower'])} / A against A {dict(outcomes['same'])}", flush=True)
        document = {
            "trials": trials,
            "runs_a_side": RUNS,
            "planted": round(1.1 * SUMS) / SUMS - 1,
            "slower": dict(outcomes["slower"]),
            "same": dict(outcomes["same"]),
            "median_change": {side: float(np.median(values)) for side, values in changes.items() if values},
            "run_to_run_sd_of_log_p50": float(np.mean(scatter) ** 0.5),
            "runs": dict(measured),
            "runs_dropped_as_not_valid": dropped,
            "found": outcomes["slower"]["worse"],
            "false_alarms": outcomes["same"]["worse"] + outcomes["same"]["better"],
            "minutes": (time.monotonic() - begun) / 60,
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        }
    Path(__file__).with_suffix(".json").write_text(json.dumps(document, indent=1) + "\n")
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
