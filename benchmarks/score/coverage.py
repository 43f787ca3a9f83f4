"""Coverage of the score's 95 % intervals on made-up cohorts whose truth is known.

    python benchmarks/score/coverage.py [REPEATS]

Each repeat draws images for every dataset, computes the intervals as `argus-edge score` does, and asks whether they
hold the truth. Writes coverage.json beside this file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from argus_edge.score import formulas
from argus_edge.score.intervals import debiased_basic, hull, percentile

CELLS = [
    ("retrieval", "coco"),
    ("retrieval", "flickr30k"),
    ("retrieval", "vg"),
    ("captioning", "coco"),
    ("captioning", "flickr30k"),
    ("captioning", "vg"),
    ("reasoning", "clevr"),
    ("reasoning", "vcr"),
]
REPLICATES = 1000
QUARTER = [0.25] * 4
EFFICIENCY = 0.6

# True accuracies per cell, number of images a dataset, share that survives perturbation.
SETTINGS = {
    "equal datasets": ([0.5] * 3 + [0.3] * 3 + [0.6] * 2, 1000, 0.8),
    "equal datasets, few images": ([0.5] * 3 + [0.3] * 3 + [0.6] * 2, 200, 0.8),
    "nearly equal": ([0.50, 0.52, 0.49, 0.30, 0.33, 0.31, 0.60, 0.62], 500, 0.85),
    "different": ([0.5, 0.7, 0.4, 0.3, 0.5, 0.31, 0.6, 0.82], 500, 0.9),
    "sparse": ([0.05, 0.08, 0.03, 0.04, 0.06, 0.05, 0.1, 0.07], 500, 0.7),
}


def simulate(truth: np.ndarray, images: int, kept: float, rng: np.random.Generator) -> dict[str, bool]:
    clean, perturbed = [], []
    for rate in truth:
        hits = rng.random(images) < rate
        # A perturbed hit is a clean hit that survives: the two go together, as they do in a model.
        after = hits & (rng.random(images) < kept)
        # Resampling images that are of three kinds is a multinomial draw over the kinds.
        kinds = np.array([after.sum(), (hits & ~after).sum(), (~hits).sum()]) / images
        drawn = np.vstack([kinds, rng.multinomial(images, kinds, size=REPLICATES) / images])
        clean.append(drawn[:, 0] + drawn[:, 1])
        perturbed.append(drawn[:, 0])
    s, under = np.stack(clean, axis=-1), np.stack(perturbed, axis=-1)
    errors = s[1:].var(axis=0)
    p = formulas.capability(CELLS, s)
    rr = formulas.robustness(formulas.capability(CELLS, under), p)
    cdc, debiased = formulas.consistency_by_task(CELLS, s), formulas.consistency_by_task(CELLS, s, errors)
    e = np.full_like(p, EFFICIENCY)
    argus = formulas.argus([p, cdc, rr, e], QUARTER)
    argus_debiased = formulas.argus([p, debiased, rr, e], QUARTER)

    def held(interval: tuple[float, float], value: float) -> bool:
        return interval[0] - 1e-12 <= value <= interval[1] + 1e-12

    true_p = float(formulas.capability(CELLS, truth))
    true_cdc = float(formulas.consistency_by_task(CELLS, truth))
    return {
        "P": held(percentile(p[1:], 0.95), true_p),
        "RR": held(percentile(rr[1:], 0.95), kept),
        "CDC": held(
            hull(percentile(cdc[1:], 0.95), debiased_basic(float(debiased[0]), debiased[1:], 0.95), cap=1.0), true_cdc
        ),
        "ARGUS": held(
            hull(
                percentile(argus[1:], 0.95),
                debiased_basic(float(argus_debiased[0]), argus_debiased[1:], 0.95),
                cap=1.0,
            ),
            (true_p + true_cdc + kept + EFFICIENCY) / 4,
        ),
    }


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    rng = np.random.default_rng(20)
    results = {}
    for name, (truth, images, kept) in SETTINGS.items():
        outcomes = [simulate(np.array(truth), images, kept, rng) for _ in range(repeats)]
        results[name] = {part: float(np.mean([each[part] for each in outcomes])) for part in outcomes[0]}
        print(f"{name:28s}", {part: f"{share:.3f}" for part, share in results[name].items()}, flush=True)
    document = {"repeats": repeats, "replicates": REPLICATES, "level": 0.95, "coverage": results}
    Path(__file__).with_suffix(".json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
