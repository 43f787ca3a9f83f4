"""Randomised faults: how many of them end in the right account?

    python benchmarks/faults/faults.py [--count 200] [--seed 1] [--first 0] [--jobs 2] [--only KIND,…] [--json FILE]

Each fault is drawn from its seed (kind, phase, moment), done to a real `argus-edge bench` of a real agent on a board
behind a real sshd (in name spaces of its own, on a small disk), and judged without a person: exit code, message,
samples kept, what ``--resume`` gives, what is left on the board, torn files. Needs root; see ``board.py``. A run of 200
can be made in parts (``--first 100 --count 100``) into one file.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import platform
import random
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from argus_edge._version import __version__
from benchmarks.faults.board import a_board, why_not
from benchmarks.faults.host import Host
from benchmarks.faults.kinds import KINDS
from benchmarks.faults.scene import WEIGHT_BYTES, Scene


def possible() -> dict:
    """Return the kinds that this machine can do."""
    return {name: kind for name, kind in KINDS.items() if kind.needs()}


def drawn(seed: int, number: int, only: list[str] | None = None) -> tuple[str, str, random.Random]:
    """Return the kind, the phase and the source of chance of one fault."""
    chance = random.Random(f"{seed}/{number}")
    known = possible()
    pairs = [(name, phase) for name, kind in known.items() for phase in kind.phases if not only or name in only]
    # Every pair comes once before any comes twice.
    order = random.Random(f"{seed}/order/{number // len(pairs)}").sample(pairs, len(pairs))
    name, phase = order[number % len(pairs)]
    return name, phase, chance


def make_model(folder: Path) -> Path:
    """Write a small ONNX graph whose weights take some seconds to send."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper

    weights = np.random.default_rng(0).standard_normal(WEIGHT_BYTES // 4).astype(np.float32)
    tensor = helper.make_tensor("w", TensorProto.FLOAT, [1, len(weights)], weights.tobytes(), raw=True)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, len(weights)])
    graph = helper.make_graph([helper.make_node("Mul", ["x", "w"], ["y"])], "g", [x], [y], [tensor])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path = folder / "model.onnx"
    onnx.save_model(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    return path


def one(seed: int, number: int, only: list[str] | None, model: Path) -> dict:
    """Do the fault of a number and judge its account."""
    name, phase, chance = drawn(seed, number, only)
    return {"number": number, **strike(name, phase, chance, model)}


def strike(name: str, phase: str, chance: random.Random, model: Path) -> dict:
    """Do one fault and judge its account."""
    begin = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="argus-fault-"))
    problems: list[str]
    facts: dict = {}
    messages = ""
    missed = False
    try:
        with a_board(folder / "board", **KINDS[name].board) as (board, link):
            host = Host(folder / "host")
            host.knows(board, link.port)
            scene = Scene(chance, folder, board, link, host, phase, model)
            try:
                KINDS[name].act(scene)
                scene.link.restore()
                scene.all_clear()
            finally:
                if scene.command and scene.command.running:
                    scene.command.process.kill()
                problems, facts, missed = scene.problems, scene.facts, scene.missed
                messages = scene.command.messages if scene.command else ""
                if scene.struck_at is not None and scene.command and scene.command.said:
                    facts["struck_s"] = round(scene.struck_at - scene.command.said[0].at, 2)
    except Exception:
        problems = [f"the harness: {traceback.format_exc()[-1500:]}"]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {
        "kind": name,
        "phase": phase,
        "right": not problems,
        "missed": missed,
        "took_s": round(time.monotonic() - begin, 1),
        **facts,
        **({"problems": problems, "messages": messages[-3000:]} if problems else {}),
    }


def summary(results: list[dict]) -> dict:
    """Return the figures of all faults."""
    noticed = sorted(result["noticed_s"] for result in results if "noticed_s" in result)
    by_kind: dict[str, list[int]] = {}
    for result in results:
        counts = by_kind.setdefault(f"{result['kind']} / {result['phase']}", [0, 0])
        counts[0] += result["right"]
        counts[1] += 1
    return {
        "faults": len(results),
        "right": sum(result["right"] for result in results),
        "after the end": sum(result["missed"] for result in results),
        "lost link noticed, s, median and most": [noticed[len(noticed) // 2], noticed[-1]] if noticed else None,
        "right of all, by kind and phase": {name: f"{right}/{all_}" for name, (right, all_) in sorted(by_kind.items())},
    }


def main() -> int:
    """Do the faults and write the figures; the exit code says whether each ended in the right account."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", help="kinds, comma-separated")
    parser.add_argument("--json", type=Path, help="results; those of other numbers in it are kept")
    given = parser.parse_args()
    reason = why_not()
    if reason:
        print(reason, file=sys.stderr)
        return 2
    only = given.only.split(",") if given.only else None
    results = {}
    if given.json and given.json.exists():
        results = {result["number"]: result for result in json.loads(given.json.read_text())["results"]}
    with tempfile.TemporaryDirectory(prefix="argus-fault-model-") as folder:
        model = make_model(Path(folder))
        with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
            numbers = range(given.first, given.first + given.count)
            waiting = [pool.submit(one, given.seed, number, only, model) for number in numbers]
            for done in concurrent.futures.as_completed(waiting):
                result = done.result()
                results[result["number"]] = result
                word = "right" if result["right"] else "WRONG " + "; ".join(result["problems"])
                print(
                    result["number"], result["kind"], "/", result["phase"], f"{result['took_s']} s:", word, flush=True
                )
                if given.json:
                    ordered = [results[number] for number in sorted(results)]
                    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "argus-edge": __version__}
                    document = {"seed": given.seed, "machine": machine, "summary": summary(ordered), "results": ordered}
                    given.json.write_text(json.dumps(document, indent=1) + "\n")
    ordered = [results[number] for number in sorted(results)]
    print(json.dumps(summary(ordered), indent=1))
    return 0 if all(result["right"] for result in ordered) else 1


if __name__ == "__main__":
    sys.exit(main())
