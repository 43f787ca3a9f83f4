"""The agent against MLPerf LoadGen's SingleStream on the same model: p50 and p90.

    pip install "argus-edge[benchmarks]"
    python benchmarks/harness/loadgen.py [PAIRS [SECONDS]]

Bar: within 3 %, for ResNet-50 and a second model above 1 ms (below that LoadGen's own 11 to 40 us a query are more than
the bar). Interleaved pairs, medians of their ratios. Writes loadgen.json beside this file.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from device import Device, light_model, make_inputs, median, onnx_part, percentile, record, scratch

MODELS = ("resnet50", "squeezenet")
THREADS = 1
WARMUP_CALLS = 30


def drive(model: str, inputs: str, seconds: float, folder: str) -> dict[str, float]:
    """Have LoadGen drive the model in this process; return its percentiles in seconds."""
    import mlperf_loadgen as lg
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feed = dict(np.load(inputs))
    for _ in range(WARMUP_CALLS):
        session.run(None, feed)

    def issue(samples):
        for sample in samples:
            session.run(None, feed)
            lg.QuerySamplesComplete([lg.QuerySampleResponse(sample.id, 0, 0)])

    settings = lg.TestSettings()
    settings.scenario = lg.TestScenario.SingleStream
    settings.mode = lg.TestMode.PerformanceOnly
    settings.min_duration_ms = int(1000 * seconds)
    settings.min_query_count = 64
    log = lg.LogSettings()
    log.log_output.outdir = folder
    log.log_output.copy_summary_to_stdout = False
    sut = lg.ConstructSUT(issue, lambda: None)
    library = lg.ConstructQSL(1, 1, lambda _: None, lambda _: None)
    lg.StartTestWithLogSettings(sut, library, settings, log)
    lg.DestroyQSL(library)
    lg.DestroySUT(sut)
    found = {}
    for line in (Path(folder) / "mlperf_log_detail.txt").read_text().splitlines():
        entry = json.loads(line.partition(":::MLLOG")[2] or "{}")
        for percent in ("50.00", "90.00"):
            if entry.get("key") == f"result_{percent}_percentile_latency_ns":
                found[percent[:2]] = entry["value"] / 1e9
    return found


def main(pairs: int = 5, seconds: float = 5.0) -> None:
    rows = []
    with scratch() as folder:
        device = Device(Path(folder))
        for name in MODELS:
            model = light_model(name)
            inputs = make_inputs(model, Path(folder) / f"{name}.npz")
            ours, theirs = [], []
            for pair in range(pairs):

                def agent(model=model, inputs=inputs, ours=ours):
                    latencies = device.run(onnx_part(model, inputs, THREADS, seconds)).latencies
                    ours.append({"50": percentile(latencies, 0.5), "90": percentile(latencies, 0.9)})

                def loadgen(model=model, inputs=inputs, theirs=theirs):
                    argv = [sys.executable, __file__, "drive", str(model), str(inputs), str(seconds), folder]
                    done = subprocess.run(argv, capture_output=True, text=True, check=True)
                    theirs.append(json.loads(done.stdout.splitlines()[-1]))

                for step in (loadgen, agent) if pair % 2 else (agent, loadgen):
                    step()
            for percent in ("50", "90"):
                ratios = [a[percent] / b[percent] for a, b in zip(ours, theirs, strict=True)]
                rows.append(
                    {
                        "model": name,
                        "percentile": int(percent),
                        "agent_ms": round(1e3 * median([a[percent] for a in ours]), 3),
                        "loadgen_ms": round(1e3 * median([b[percent] for b in theirs]), 3),
                        "ratio": round(median(ratios), 4),
                        "ratios": [round(ratio, 4) for ratio in ratios],
                    }
                )
    content = {
        "bar": "within 3 %",
        "loadgen": version("mlcommons-loadgen"),
        "pairs": pairs,
        "seconds": seconds,
        "threads": THREADS,
    }
    record("loadgen", {**content, "rows": rows})


if __name__ == "__main__":
    if sys.argv[1:2] == ["drive"]:
        sys.stdout.write(json.dumps(drive(sys.argv[2], sys.argv[3], float(sys.argv[4]), sys.argv[5])) + "\n")
    else:
        main(*(kind(text) for kind, text in zip((int, float), sys.argv[1:], strict=False)))
