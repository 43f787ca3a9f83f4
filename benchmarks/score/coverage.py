"""Coverage of the score's 95 % intervals on made-up cohorts whose truth is known.

    python benchmarks/score/coverage.py [REPEATS] [judged]     # judged: those settings alone, the others are kept

Each repeat draws images for every dataset, computes the intervals as `argus-edge score` does, and asks whether they
hold the truth. In the judged settings the captioning cells are a judge's ratings of 1,000 answers, of which so many are
labelled, taken in by prediction-powered inference. Writes coverage.json beside this file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from argus_edge.judge.ppi import powered_mean
from argus_edge.schema.judge import JudgedMean
from argus_edge.score import formulas
from argus_edge.score.intervals import debiased_basic, hull, percentile
from argus_edge.score.judged import judged_replicates

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


# The same, with the captioning cells judged: rows labelled, and how well the judge's rating goes with the human one.
JUDGED = {
    "judged, 100 labels": ("different", 100, 0.6),
    "judged, 200 labels, equal datasets": ("equal datasets", 200, 0.8),
    "judged, 200 labels, useless judge": ("different", 200, 0.0),
}
ANSWERS = 1000


def measured_cell(rate: float, images: int, kept: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    hits = rng.random(images) < rate
    # A perturbed hit is a clean hit that survives: the two go together, as they do in a model.
    after = hits & (rng.random(images) < kept)
    # Resampling images that are of three kinds is a multinomial draw over the kinds.
    kinds = np.array([after.sum(), (hits & ~after).sum(), (~hits).sum()]) / images
    drawn = np.vstack([kinds, rng.multinomial(images, kinds, size=REPLICATES) / images])
    return drawn[:, 0] + drawn[:, 1], drawn[:, 0]


def judged_cell(place: tuple[str, str], rate: float, labels: int, skill: float, rng: np.random.Generator) -> np.ndarray:
    """Human scores are 1 + Binomial(4, rate); the judge sees a share of them and is too kind by half a point."""
    human = 1.0 + rng.binomial(4, rate, ANSWERS)
    noise = rng.standard_normal(ANSWERS) * 2 * np.sqrt(rate * (1 - rate))
    rating = skill * human + np.sqrt(1 - skill**2) * noise + 0.5
    found = powered_mean(human[:labels], rating[:labels], rating[labels:])
    mean = JudgedMean(
        task=place[0], mean=found.mean, lower=found.lower, upper=found.upper, standard_error=found.standard_error,
        degrees_of_freedom=found.degrees_of_freedom, unit_mean=(found.mean - 1) / 4, unit_lower=(found.lower - 1) / 4,
        unit_upper=(found.upper - 1) / 4, unit_standard_error=found.standard_error / 4, labelled=found.labelled,
        unlabelled=found.unlabelled, weight=found.weight, width_ratio=1.0, judge_mean=float(rating.mean()),
        advice="score",
    )  # fmt: skip
    return judged_replicates(mean, place, "model", REPLICATES, int(rng.integers(1 << 30)))


def simulate(
    truth: np.ndarray, images: int, kept: float, rng: np.random.Generator, judged: tuple[int, float] | None = None
) -> dict[str, bool]:
    clean, perturbed, counted = [], [], []
    for place, rate in zip(CELLS, truth, strict=True):
        if judged is not None and place[0] == "captioning":
            clean.append(judged_cell(place, rate, *judged, rng))
            continue
        own, under = measured_cell(rate, images, kept, rng)
        clean.append(own)
        perturbed.append(under)
        counted.append(len(clean) - 1)
    s, under = np.stack(clean, axis=-1), np.stack(perturbed, axis=-1)
    errors = s[1:].var(axis=0)
    p = formulas.capability(CELLS, s)
    touched = [CELLS[index] for index in counted]
    rr = formulas.robustness(formulas.capability(touched, under), formulas.capability(touched, s[:, counted]))
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


def shares(name: str, outcomes: list[dict[str, bool]]) -> dict[str, float]:
    """Return and print how often each interval held the truth."""
    found = {part: float(np.mean([each[part] for each in outcomes])) for part in outcomes[0]}
    print(f"{name:36s}", {part: f"{share:.3f}" for part, share in found.items()}, flush=True)
    return found


def main() -> None:
    repeats = next((int(word) for word in sys.argv[1:] if word.isdigit()), 1000)
    path = Path(__file__).with_suffix(".json")
    document = {"replicates": REPLICATES, "level": 0.95}
    if "judged" in sys.argv[1:]:
        document = json.loads(path.read_text())
    else:
        rng = np.random.default_rng(20)
        found = {}
        for name, (truth, images, kept) in SETTINGS.items():
            found[name] = shares(name, [simulate(np.array(truth), images, kept, rng) for _ in range(repeats)])
        document |= {"repeats": repeats, "coverage": found}
    rng = np.random.default_rng(21)
    found = {}
    for name, (setting, labels, skill) in JUDGED.items():
        truth, images, kept = SETTINGS[setting]
        outcomes = [simulate(np.array(truth), images, kept, rng, (labels, skill)) for _ in range(repeats)]
        found[name] = shares(name, outcomes)
    document |= {"judged_repeats": repeats, "judged": found}
    path.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
