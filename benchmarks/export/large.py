"""Export the large decoders at full size with random weights in int4: time, peak memory, disk, parity; and bench them.

    python benchmarks/export/large.py gemma-3-4b /tmp/gemma-int4 --json large-gemma-3-4b.json
    python benchmarks/export/large.py gemma-3-4b /tmp/gemma-int4 --json bench-gemma-3-4b.json --bench

Runs the command in a process of its own, reads its peak resident set (VmHWM) while it lives, and sums up the bundle.
With ``--bench`` the bundle, which must be there, is benched on this machine instead, and the report is summed up.
"""

import argparse
import json
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from statistics import median

from argus_edge.bench.samples import decode
from argus_edge.schema.bench import EncodedArray


def high_water(pid):
    """Peak resident set of a process in bytes; 0 once it is gone."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


ARGUS_EDGE = [sys.executable, "-c", "from argus_edge.cli.main import main; main()"]


def spread(encoded):
    """Count, least, median and greatest of a report's raw samples, in seconds."""
    samples = sorted(decode(EncodedArray.model_validate(encoded)).tolist())
    shown = {"samples": len(samples)}
    for name, value in (("min_s", samples[0]), ("median_s", median(samples)), ("max_s", samples[-1])):
        shown[name] = round(value, 3)
    return shown


def summary(report):
    """What of a bench report is about a model that writes text."""
    whole = report["measurements"][-1]
    written = whole["generation"]
    facts = report["device"]["facts"]
    gaps = decode(EncodedArray.model_validate(written["inter_token_samples"]))
    return {
        "unit_of_work": whole["unit_of_work"],
        "runtime": f"{whole['runtime']} {whole['runtime_version']}",
        "machine": f"{facts['cpu_model']}, {facts['cores']} cores, load {facts['load_1m']} at the start",
        "components": {
            part["component"]: {"load_s": round(part["load_s"], 1), "first_s": round(part["first_s"], 2)}
            | spread(part["latency"])
            | {"peak_memory_gb": round(part["memory_headline"]["bytes"] / 1e9, 2)}
            for part in report["measurements"]
        },
        "steps": {step["name"]: spread(step["samples"]) for step in whole["steps"]},
        "ttft": spread(written["ttft_samples"]),
        "inter_token": spread(written["inter_token_samples"]),
        "tokens_per_s": round(len(gaps) / float(gaps.sum()), 2),
        "kv_cache_mb": round(written["kv_cache_bytes"] / 1e6, 1),
        "validity": [f"{cause['code']}: {cause['detail']}" for cause in report["validity"]["causes"]],
    }


def bench(chosen):
    """Bench a bundle on this machine with the fewest calls, and sum the report up."""
    command = [*ARGUS_EDGE, "bench", str(chosen.out), "--device", "local", "--duration", "1s", "--warmup", "0"]
    command += ["--output-tokens", str(chosen.output_tokens), "--json", "-"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return {"model": chosen.model, "precision": chosen.precision, **summary(json.loads(done.stdout))}


def export(chosen):
    """Export a model and sum the bundle up."""
    command = [*ARGUS_EDGE, "export", chosen.model]
    command += ["--random-weights", "--precision", chosen.precision, "--out", str(chosen.out), "--force"]
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        peak = max(peak, high_water(process.pid))
        time.sleep(0.5)
    seconds = time.monotonic() - start
    result = {
        "model": chosen.model,
        "precision": chosen.precision,
        "exit_code": process.returncode,
        "seconds": round(seconds),
        "peak_memory_gb": round(peak / 1e9, 2),
        "machine": f"{platform.machine()}, {platform.processor() or 'cpu'}",
        "versions": {name: version(name) for name in ("torch", "transformers", "onnxruntime", "onnx")},
    }
    if process.returncode == 0:
        manifest = json.loads((chosen.out / "manifest.json").read_text())
        result["disk_gb"] = round(sum(f.stat().st_size for f in chosen.out.rglob("*") if f.is_file()) / 1e9, 2)
        result["components"] = [
            {
                "name": part["name"],
                "params": part["params"],
                "weight_bytes": part["weight_bytes"],
                "lowest_cosine": min(figure["cosine"] for figure in part["parity"]["figures"]),
                "passed": part["parity"]["passed"],
                "shapes_compared": len(part["golden"]),
                "macs": [{"dims": count["dims"], **count["by_counter"]} for count in part["macs"]],
            }
            for part in manifest["components"]
        ]
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("out", type=Path)
    parser.add_argument("--precision", default="int4")
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--bench", action="store_true", help="bench the bundle that is there")
    parser.add_argument("--output-tokens", type=int, default=8, help="written in each call of --bench")
    chosen = parser.parse_args()
    result = bench(chosen) if chosen.bench else export(chosen)
    chosen.json.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
