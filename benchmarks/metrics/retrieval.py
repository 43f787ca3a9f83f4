"""Recall on 5,000 images and 25,000 texts against one numpy matrix product and a sort: values, time, memory.

usage: python retrieval.py [--out retrieval.md]

Each side runs in a process of its own, whose peak memory above its inputs is read; runs are interleaved.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

IMAGES, TEXTS_EACH, DIMENSION = 5000, 5, 512


def embeddings() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return unit vectors of images and texts, and each text's image; a task of middling difficulty, without ties."""
    rng = np.random.default_rng(0)
    images = rng.standard_normal((IMAGES, DIMENSION), np.float32)
    owners = np.repeat(np.arange(IMAGES), TEXTS_EACH)
    texts = images[owners] + 5 * rng.standard_normal((len(owners), DIMENSION), np.float32)
    return *(rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (images, texts)), owners


def plain(images: np.ndarray, texts: np.ndarray, owners: np.ndarray) -> tuple[dict[str, float], float]:
    start = time.perf_counter()
    scores = images @ texts.T
    product = time.perf_counter() - start
    figures = {}
    order = np.argsort(-scores, axis=1)
    ranks = (owners[order] == np.arange(IMAGES)[:, None]).argmax(axis=1)
    figures |= {f"r{k}_i2t": float((ranks < k).mean()) for k in (1, 5, 10)}
    order = np.argsort(-scores, axis=0)
    ranks = (order == owners).argmax(axis=0)
    figures |= {f"r{k}_t2i": float((ranks < k).mean()) for k in (1, 5, 10)}
    return figures, product


def ours(images: np.ndarray, texts: np.ndarray, owners: np.ndarray) -> tuple[dict[str, float], float]:
    from argus_edge.evaluate.metrics import retrieval_from_embeddings

    start = time.perf_counter()
    figures = retrieval_from_embeddings(images, texts, owners).metrics()
    return figures, time.perf_counter() - start


def product(images: np.ndarray, texts: np.ndarray, owners: np.ndarray) -> tuple[dict[str, float], float]:
    start = time.perf_counter()
    scores = images @ texts.T
    return {"checksum": float(scores[0, 0])}, time.perf_counter() - start


def measure(side: str) -> dict:
    data = embeddings()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    figures, seconds = {"plain": plain, "ours": ours, "product": product}[side](*data)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"figures": figures, "seconds": seconds, "peak_mb": peak / 1024, "above_mb": (peak - before) / 1024}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--side")
    options = parser.parse_args()
    if options.side:
        print(json.dumps(measure(options.side)))
        return

    def run(side: str) -> dict:
        done = subprocess.run([sys.executable, __file__, "--side", side], check=True, capture_output=True)
        return json.loads(done.stdout)

    reference = run("plain")
    pairs = [(run("product"), run("ours")) for _ in range(options.repeats)]
    ratio = statistics.median(own["seconds"] / other["seconds"] for other, own in pairs)
    own = pairs[0][1]
    same = all(own["figures"][name] == value for name, value in reference["figures"].items())
    report = [
        "# Retrieval on 5,000 images and 25,000 texts, dimension 512",
        "",
        f"Same values as one product and argsort: **{'yes' if same else 'no'}**. Time against the bare product: "
        f"**{ratio:.2f}x** (median of {options.repeats} interleaved pairs). Peak memory of the process: "
        f"**{own['peak_mb']:.0f} MB**, inputs included, {own['above_mb']:.0f} MB above them and the libraries.",
        f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}.",
        "",
        "| figure | product and argsort | ours |",
        "|---|---|---|",
        *(f"| {name} | {value:.6f} | {own['figures'][name]:.6f} |" for name, value in reference["figures"].items()),
        "",
        "| | seconds, median |",
        "|---|---|",
        f"| the product alone | {statistics.median(other['seconds'] for other, _ in pairs):.2f} |",
        f"| ours, both directions | {statistics.median(mine['seconds'] for _, mine in pairs):.2f} |",
        "",
    ]
    options.out.write_text("\n".join(report), encoding="utf-8")
    print("\n".join(report))


if __name__ == "__main__":
    main()
