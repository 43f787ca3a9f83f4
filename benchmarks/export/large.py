"""Export the large decoders at full size with random weights in int4: time, peak memory, disk, parity.

    python benchmarks/export/large.py gemma-3-4b /tmp/gemma-int4 --json large-gemma-3-4b.json

Runs the command in a process of its own, reads its peak resident set (VmHWM) while it lives, and sums up the bundle.
"""

import argparse
import json
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path


def high_water(pid):
    """Peak resident set of a process in bytes; 0 once it is gone."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("out", type=Path)
    parser.add_argument("--precision", default="int4")
    parser.add_argument("--json", type=Path, required=True)
    chosen = parser.parse_args()
    command = [sys.executable, "-c", "from argus_edge.cli.main import main; main()", "export", chosen.model]
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
    chosen.json.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
