"""The agent's timed loop against a bare one on the same session, in turn: for a machine that is never quiet.

    python benchmarks/harness/same_process.py [ROUNDS]

Leaves out what `p50.py` holds (a process of its own, the supervisor beside it), and is not blurred by what changes
between two processes' runs. Bar: p50 within 2 %. Writes same_process.json beside this file.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from device import light_model, make_inputs, median, percentile, record

from argus_edge.agents import samples, scenarios
from argus_edge.agents.scenarios import closed_loop

CASES = (("resnet50", 2), ("squeezenet", 8))
THREADS = (1, 2)


def bare(session, feed, calls: int) -> list[float]:
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        session.run(None, feed)
        times.append(time.perf_counter() - start)
    return times


def agent(call, calls: int, folder: str) -> list[float]:
    spec = scenarios.complete({"duration_s": 1e6, "max_calls": calls})
    writer = samples.SampleWriter(folder, 0, calls, closed_loop.COLUMNS, 1)
    closed_loop.run(call, spec, writer)
    times = [end - start for start, end in zip(writer.starts, writer.ends, strict=True)]
    samples.discard(folder, 0)
    return times


def main(rounds: int = 30) -> None:
    import numpy as np
    import onnxruntime

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, calls in CASES:
            model = light_model(name)
            feed = dict(np.load(make_inputs(model, Path(folder) / "inputs.npz")))
            for threads in THREADS:
                options = onnxruntime.SessionOptions()
                options.intra_op_num_threads = threads
                options.log_severity_level = 3
                session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
                bare(session, feed, 5)
                ours, theirs, ratios = [], [], []
                for number in range(rounds):
                    pair = {}
                    for side in ("agent", "bare") if number % 2 else ("bare", "agent"):
                        if side == "bare":
                            pair[side] = bare(session, feed, calls)
                        else:
                            pair[side] = agent(lambda run=session.run, f=feed: run(None, f), calls, folder)
                    ours += pair["agent"]
                    theirs += pair["bare"]
                    ratios.append(median(pair["agent"]) / median(pair["bare"]))
                rows.append(
                    {
                        "model": name,
                        "threads": threads,
                        "agent_p50_ms": round(1e3 * percentile(ours, 0.5), 3),
                        "loop_p50_ms": round(1e3 * percentile(theirs, 0.5), 3),
                        "ratio_of_p50": round(percentile(ours, 0.5) / percentile(theirs, 0.5), 4),
                        "median_ratio_of_pairs": round(median(ratios), 4),
                    }
                )
    record("same_process", {"bar": "within 2 %", "rounds": rounds, "rows": rows})


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
