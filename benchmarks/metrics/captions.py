"""BLEU, ROUGE-L and CIDEr against pycocoevalcap: the same figures, and the time.

usage: python captions.py --reference-python /path/to/python [--images 5000] [--out captions.md]

The captions are made (sentences.py): five references and one candidate an image. The reference runs in a Python that
has pycocoevalcap and finds `java`, with its own tokeniser. The two run one after the other, several times.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from sentences import caption_set

from argus_edge.evaluate.metrics import CaptionReferences, tokenize
from argus_edge.evaluate.metrics.cider import CiderReferences
from argus_edge.evaluate.metrics.idf import DocumentFrequencies
from argus_edge.evaluate.metrics.ngrams import NgramIndex
from argus_edge.evaluate.metrics.tokenizer import words_of

REFERENCE = Path(__file__).with_name("reference_captions.py")


def cider_alone(references: list[list[list[str]]], candidates: list[list[str]]) -> float:
    """Return the seconds that CIDEr takes from tokenised captions, document frequencies included."""
    start = time.perf_counter()
    frequencies = DocumentFrequencies.from_words(references)
    flat = [words for captions in references for words in captions]
    image = np.repeat(np.arange(len(references)), [len(captions) for captions in references])
    index = NgramIndex(flat)
    prepared = CiderReferences(index, index.count(flat), image, frequencies)
    prepared.score(index.count(candidates), len(candidates))
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--reference-python", required=True)
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    references, candidates = caption_set(options.images)
    runs: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "captions.json"), Path(folder, "scores.json")
        source.write_text(json.dumps({"references": references, "candidates": candidates}), encoding="utf-8")
        for _ in range(options.repeats):
            subprocess.run([options.reference_python, REFERENCE, source, target], check=True, capture_output=True)
            theirs = json.loads(target.read_text(encoding="utf-8"))
            start = time.perf_counter()
            prepared = CaptionReferences(references)
            middle = time.perf_counter()
            scores = prepared.score(candidates)
            end = time.perf_counter()
            words = [[words_of(tokenize(text)) for text in texts] for texts in references]
            spoken = [words_of(tokenize(text)) for text in candidates]
            runs.append(
                {
                    "pycocoevalcap, CIDEr": theirs["seconds"]["cider"],
                    "ours, CIDEr": cider_alone(words, spoken),
                    "pycocoevalcap, all with Java's tokeniser": sum(theirs["seconds"].values()),
                    "ours, all": end - start,
                    "ours, other candidates for the same references": end - middle,
                }
            )
    figures = scores.metrics()
    expected = dict(zip(figures, [*theirs["bleu"], theirs["rouge_l"], theirs["cider"]], strict=True))
    gaps = {name: abs(value - expected[name]) for name, value in figures.items()}
    gaps["CIDEr of an image"] = float(np.abs(scores.cider - theirs["ciders"]).max())
    gaps["ROUGE-L of an image"] = float(np.abs(scores.rouge - theirs["rouges"]).max())
    ratio = statistics.median(run["pycocoevalcap, CIDEr"] / run["ours, CIDEr"] for run in runs)
    whole = statistics.median(run["pycocoevalcap, all with Java's tokeniser"] / run["ours, all"] for run in runs)
    report = [
        "# Caption metrics against pycocoevalcap 1.2",
        "",
        f"{options.images} images, five references and one candidate each, made by sentences.py. Equal to 1e-9: "
        f"**{'yes' if max(gaps.values()) <= 1e-9 else 'no'}**. CIDEr **{ratio:.1f}x** faster, everything {whole:.1f}x "
        f"(medians of {options.repeats} interleaved runs).",
        f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}.",
        "",
        "| figure | pycocoevalcap | ours | difference |",
        "|---|---|---|---|",
        *(f"| {name} | {expected[name]:.12f} | {figures[name]:.12f} | {gaps[name]:.1e} |" for name in figures),
        *(f"| largest difference, {name} | | | {gaps[name]:.1e} |" for name in list(gaps)[len(figures) :]),
        "",
        "| what | seconds, median |",
        "|---|---|",
        *(f"| {name} | {statistics.median(run[name] for run in runs):.2f} |" for name in runs[0]),
        "",
    ]
    options.out.write_text("\n".join(report), encoding="utf-8")
    print("\n".join(report))


if __name__ == "__main__":
    main()
