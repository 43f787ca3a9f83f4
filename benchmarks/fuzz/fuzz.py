"""Coverage-guided fuzzing (atheris, libFuzzer) of every parser of what a board or a stranger wrote.

    pip install atheris            (Python 3.11 to 3.13; not a dependency of the project)
    python benchmarks/fuzz/fuzz.py [--seconds 600] [--only NAME,…] [--json benchmarks/fuzz/results.json]

Each target runs in a process of its own, from its seeds; what is found is kept under ``--findings`` and named in the
results. ``--replay FILE --only NAME`` runs one input again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

MAX_INPUT_BYTES = 16384
MEMORY_MB = 2048
# libFuzzer gives an input up that takes so long.
TIMEOUT_S = 20


def one(name: str, seconds: int, findings: Path) -> None:
    """Fuzz one target in this process; libFuzzer ends it."""
    import atheris

    with atheris.instrument_imports(include=["argus_edge", "tflite", "zipfile", "numpy.lib", "yaml"]):
        from benchmarks.fuzz import targets

    target = targets.TARGETS[name]
    # Kept: another round goes on from what this one found.
    corpus = findings / f"corpus-{name}"
    corpus.mkdir(exist_ok=True)
    seeds = list(target.seeds())
    for number, seed in enumerate(seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
        target.parse(seed)  # a seed that is refused would leave the fuzzer at the door
    words = corpus.with_suffix(".dict")
    words.write_text("".join(f"w{i}={json.dumps(word)}\n" for i, word in enumerate(target.dictionary)) or "# none\n")
    argv = [
        "fuzz",
        f"-max_total_time={seconds}",
        f"-max_len={max(MAX_INPUT_BYTES, *(2 * len(seed) for seed in seeds))}",
        f"-rss_limit_mb={MEMORY_MB}",
        f"-timeout={TIMEOUT_S}",
        "-print_final_stats=1",
        f"-artifact_prefix={findings}/{name}-",
        *([f"-dict={words}"] if target.dictionary else []),
        str(corpus),
    ]
    atheris.Setup(argv, lambda data: targets.run(target, data))
    atheris.Fuzz()


def figures(said: str) -> dict:
    """Return what libFuzzer's output says."""

    def last(pattern: str) -> int | None:
        found = re.findall(pattern, said)
        return int(found[-1]) if found else None

    # atheris prints the traceback and leaves; libFuzzer then says that its target has exited.
    error = re.search(r"Uncaught Python exception[^\n]*\n(?:.*\n)*?(\w[\w.]*(?:Error|Exception)[^\n]*)", said)
    other = re.search(r"ERROR: libFuzzer: ([^\n]*)", said)
    return {
        # The final figure, or the last that was said before the process was killed from outside.
        "executions": last(r"stat::number_of_executed_units:\s+(\d+)") or last(r"(?m)^#(\d+)\t"),
        "edges": last(r"cov: (\d+)"),
        "inputs_kept": last(r"corp: (\d+)"),
        "finding": error[1].strip() if error else other[1] if other else None,
    }


def main() -> None:
    """Fuzz the targets in turn and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600, help="for each target")
    parser.add_argument("--only", help="targets, comma-separated")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--findings", type=Path, default=Path("findings"))
    parser.add_argument("--replay", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.findings.mkdir(parents=True, exist_ok=True)
    if given.one:
        return one(given.one, given.seconds, given.findings.resolve())
    from benchmarks.fuzz.targets import TARGETS, run

    names = given.only.split(",") if given.only else list(TARGETS)
    if given.replay:
        return run(TARGETS[names[0]], given.replay.read_bytes())
    results = json.loads(given.json.read_text())["targets"] if given.json and given.json.exists() else {}
    for name in names:
        spent, used, found = 0, 0.0, []
        total: dict = {"executions": 0}
        while spent < given.seconds:
            left = given.seconds - spent
            command = [
                sys.executable,
                __file__,
                "--one",
                name,
                "--seconds",
                str(left),
                "--findings",
                str(given.findings),
            ]
            environment = {
                **os.environ,
                "PYTHONPATH": os.pathsep.join([*sys.path[:1], os.environ.get("PYTHONPATH", "")]),
            }
            begin, before = time.monotonic(), os.times()
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", env=environment, check=False
            )
            seen = figures(done.stderr)
            after = os.times()
            used += after.children_user + after.children_system - before.children_user - before.children_system
            spent += math.ceil(time.monotonic() - begin)
            if seen["executions"] is None:
                raise SystemExit(f"{name} did not run: {done.stderr[-2000:]}")
            total = {**seen, "executions": total["executions"] + seen["executions"]}
            if seen["finding"]:
                found.append(seen["finding"])
                break
        total.pop("finding", None)
        seconds = {"seconds": spent, "processor_seconds": round(used)}
        results[name] = {**seconds, **total, "findings": found}
        print(name, json.dumps(results[name]), flush=True)
        if given.json:
            machine = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
            given.json.write_text(json.dumps({"machine": machine, "targets": results}, indent=1) + "\n")
    return None


if __name__ == "__main__":
    main()
