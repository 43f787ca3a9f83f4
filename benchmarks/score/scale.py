"""How long the score takes: 10 models x 5 datasets x 5,000 images x 25 perturbation cells, 1,000 replicates.

    python benchmarks/score/scale.py

Writes scale.json beside this file: seconds and peak resident set of the scoring alone (the reports are made before).
"""

from __future__ import annotations

import json
import platform
import resource
import time
from pathlib import Path

import numpy as np

from argus_edge.reports import Found
from argus_edge.schema.evaluation import Cell, Column, DatasetInfo, EvalReport, Measurement, ModelInfo, Perturbation
from argus_edge.score.assemble import score_reports

MODELS, IMAGES, REPLICATES = 10, 5000, 1000
CELLS = [
    ("retrieval", "coco"),
    ("captioning", "coco"),
    ("retrieval", "flickr30k"),
    ("captioning", "flickr30k"),
    ("retrieval", "vg"),
    ("captioning", "vg"),
    ("reasoning", "clevr"),
    ("reasoning", "vcr"),
]
CONDITIONS = [("none", "clean", 0)] + [("image", f"corruption{i}", s) for i in range(5) for s in range(1, 6)]


def column(values: np.ndarray, dtype: str) -> Column:
    raw = np.ascontiguousarray(values.astype(np.dtype(dtype).newbyteorder("<"))).tobytes()
    return Column.from_bytes(raw, dtype, list(values.shape))


def statistics(task: str, rate: float, rng: np.random.Generator) -> dict[str, Column]:
    if task == "retrieval":
        return {
            "i2t_hits": column(rng.random(IMAGES) < rate, "uint8"),
            "i2t_queries": column(np.ones(IMAGES), "uint8"),
            "t2i_hits": column(rng.binomial(5, rate, IMAGES), "uint8"),
            "t2i_queries": column(np.full(IMAGES, 5), "uint8"),
        }
    if task == "reasoning":
        return {
            "hits": column(rng.binomial(4, rate, IMAGES), "uint8"),
            "questions": column(np.full(IMAGES, 4), "uint8"),
        }
    totals = np.tile([10, 9, 8, 7], (IMAGES, 1))
    matches = rng.binomial(totals, rate)
    lengths = np.tile([10, 10], (IMAGES, 1))
    return {
        "captioned": column(np.ones(IMAGES), "uint8"),
        "cider": column(rng.gamma(2.0, rate, IMAGES), "float64"),
        "bleu": column(np.hstack([matches, totals, lengths]), "uint16"),
    }


def report(model: int) -> Found[EvalReport]:
    rng = np.random.default_rng(model)
    cells = []
    for task, dataset in CELLS:
        measurements = []
        for modality, name, severity in CONDITIONS:
            rate = 0.3 + 0.03 * model - 0.03 * severity
            measurements.append(
                Measurement(
                    modality=modality,
                    perturbation=name,
                    severity=severity,
                    headline=rate,
                    s=rate,
                    metrics={},
                    statistics=statistics(task, rate, rng),
                )
            )
        cells.append(
            Cell(
                task=task,
                dataset=dataset,
                method="made up",
                headline="rate",
                chance=0.0,
                chance_is="none",
                measurements=measurements,
            )
        )
    names = list(dict.fromkeys(dataset for _, dataset in CELLS))
    return Found(
        Path(f"model{model}.json"),
        f"{model:064d}",
        EvalReport(
            model=ModelInfo(
                name=f"model{model}",
                kind="torch",
                family="x",
                precision="fp32",
                sha256=f"{model:064d}",
                capabilities=[],
            ),
            datasets=[
                DatasetInfo(
                    name=name,
                    kind=name,
                    split="test",
                    sha256="0" * 64,
                    images=IMAGES,
                    captions=5 * IMAGES,
                    questions=4 * IMAGES,
                    image_ids=[str(i) for i in range(IMAGES)],
                )
                for name in names
            ],
            cells=cells,
            perturbation_set="custom",
            perturbations=[
                Perturbation(name=f"corruption{i}", modality="image", severities=[1, 2, 3, 4, 5]) for i in range(5)
            ],
            compute="cpu",
            dtype="float32",
            batch_size=1,
            threads=1,
        ),
    )


def main() -> None:
    reports = [report(model) for model in range(MODELS)]
    started = time.perf_counter()
    score_reports(reports, [], replicates=REPLICATES)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    result = {
        "models": MODELS,
        "cells": len(CELLS),
        "conditions": len(CONDITIONS),
        "images": IMAGES,
        "replicates": REPLICATES,
        "seconds": round(seconds, 1),
        "peak_rss_bytes": peak,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.machine(),
    }
    Path(__file__).with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
