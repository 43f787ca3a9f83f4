"""The agent's p50 against a bare `session.run` loop in the same environment: ResNet-50 and SqueezeNet, 1 and 2 threads.

    python benchmarks/harness/p50.py [PAIRS [SECONDS]]

Bar: within 2 %. Each pair is one start of the agent and one of the loop, both alive, that get the machine in turns of a
second (the other is stopped: SIGSTOP) until each has had SECONDS: what the machine does from one second to the next
meets both. The call that a turn's end cuts is one long call among many, on both sides alike. The figure is the median
of the pairs' ratios. Writes p50.json beside this file. `p50.py loop …` is the bare loop.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from pathlib import Path

import psutil
from device import Device, light_model, make_inputs, median, onnx_part, percentile, record, scratch

MODELS = ("resnet50", "squeezenet")
THREADS = (1, 2)
WARMUP_S = 1.0
TURN_S = 1.0


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


def in_turn(
    device: Device, model: Path, inputs: Path, threads: int, seconds: float, first: bool
) -> tuple[float, float]:
    """Return the agent's p50 and the loop's, in seconds, from one start of each."""
    # Each has the machine for half of the wall time.
    run, supervisor = device.start(onnx_part(model, inputs, threads, 2 * seconds))
    argv = [sys.executable, __file__, "loop", str(model), str(inputs), str(threads), str(2 * seconds)]
    loop_process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    while not (workers := psutil.Process(supervisor).children()):
        time.sleep(0.01)
    pair = [psutil.Process(loop_process.pid), workers[0]]
    if first:
        pair.reverse()
    # Whichever ends first leaves the rest of its time to the other.
    with contextlib.suppress(psutil.NoSuchProcess):
        while all(process.status() != psutil.STATUS_ZOMBIE for process in pair):
            pair[1].suspend()
            pair[0].resume()
            time.sleep(TURN_S)
            pair.reverse()
    for process in pair:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.resume()
    looped = float(loop_process.communicate()[0])
    return percentile(device.finish(run).latencies, 0.5), looped


def main(pairs: int = 6, seconds: float = 8.0) -> None:
    rows = []
    with scratch() as folder:
        device = Device(Path(folder))
        for name in MODELS:
            model = light_model(name)
            inputs = make_inputs(model, Path(folder) / f"{name}.npz")
            for threads in THREADS:
                agent, raw = [], []
                for number in range(pairs):
                    timed = in_turn(device, model, inputs, threads, seconds, number % 2 == 0)
                    agent.append(timed[0])
                    raw.append(timed[1])
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
    record("p50", {"bar": "within 2 %", "pairs": pairs, "seconds": seconds, "turn_s": TURN_S, "rows": rows})


if __name__ == "__main__":
    if sys.argv[1:2] == ["loop"]:
        sys.stdout.write(repr(loop(sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))))
    else:
        main(*(kind(text) for kind, text in zip((int, float), sys.argv[1:], strict=False)))
