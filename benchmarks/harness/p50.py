"""The agent's p50 against a bare `session.run` loop in the same environment: ResNet-50 and SqueezeNet, 1 and 2 threads.

    python benchmarks/harness/p50.py [PAIRS [SECONDS]]

Bar: within 2 %. Each pair times the agent and the loop for the same time, in an order that alternates; the figure is
the median of the pairs' ratios. Writes p50.json beside this file. `p50.py loop …` is the bare loop.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from device import Device, light_model, make_inputs, median, onnx_part, percentile, record, scratch

MODELS = ("resnet50", "squeezenet")
THREADS = (1, 2)
WARMUP_S = 1.0


def loop(model: str, inputs: str, threads: int, seconds: float) -> float:
    """The loop that anybody would write."""
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feed = dict(np.load(inputs))
    end = time.perf_counter() + WARMUP_S
    while time.perf_counter() < end:
        session.run(None, feed)
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        session.run(None, feed)
        times.append(time.perf_counter() - start)
    return percentile(times, 0.5)


def bare(model: Path, inputs: Path, threads: int, seconds: float) -> float:
    argv = [sys.executable, __file__, "loop", str(model), str(inputs), str(threads), str(seconds)]
    return float(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)


def main(pairs: int = 5, seconds: float = 4.0) -> None:
    rows = []
    with scratch() as folder:
        device = Device(Path(folder))
        for name in MODELS:
            model = light_model(name)
            inputs = make_inputs(model, Path(folder) / f"{name}.npz")
            for threads in THREADS:
                agent, raw = [], []
                for pair in range(pairs):
                    for side in ("raw", "agent") if pair % 2 else ("agent", "raw"):
                        if side == "raw":
                            raw.append(bare(model, inputs, threads, seconds))
                        else:
                            timed = device.run(onnx_part(model, inputs, threads, seconds))
                            agent.append(percentile(timed.latencies, 0.5))
                ratios = [a / b for a, b in zip(agent, raw, strict=True)]
                rows.append(
                    {
                        "model": name,
                        "threads": threads,
                        "agent_p50_ms": round(1e3 * median(agent), 3),
                        "loop_p50_ms": round(1e3 * median(raw), 3),
                        "ratio": round(median(ratios), 4),
                        "ratios": [round(ratio, 4) for ratio in ratios],
                    }
                )
    record("p50", {"bar": "within 2 %", "pairs": pairs, "seconds": seconds, "rows": rows})


if __name__ == "__main__":
    if sys.argv[1:2] == ["loop"]:
        sys.stdout.write(repr(loop(sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))))
    else:
        main(*(kind(text) for kind, text in zip((int, float), sys.argv[1:], strict=False)))
