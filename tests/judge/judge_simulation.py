"""Simulated judges for the tests."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np


def simulate(rows: int, seed: int, levels: int = 5, tasks: int = 2, noise: float = 1.0):
    """Log-probabilities, judge scores, human scores and tasks of an exchangeable sample.

    The human score is a noisy copy of a latent quality, the judge's logits are peaked around another one.
    """
    rng = np.random.default_rng(seed)
    quality = rng.uniform(1, levels, rows)
    human = np.clip(np.round(quality + noise * 0.7 * rng.standard_normal(rows)), 1, levels).astype(int)
    centre = quality + noise * rng.standard_normal(rows)
    logits = -((np.arange(1, levels + 1) - centre[:, None]) ** 2) + 0.3 * rng.standard_normal((rows, levels))
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    task = np.array([f"task-{number}" for number in rng.integers(0, tasks, rows)])
    return logs, logs.argmax(axis=1) + 1, human, task


def write_scores(path: Path, rows: int = 300, seed: int = 0, *, levels: int = 5, tasks: int = 2, edit=None, **columns):
    """Write a simulated table; ``edit(rows)`` may change the list of dictionaries first."""
    logs, judge, human, task = simulate(rows, seed, levels, tasks)
    table = [
        {
            "sample_id": str(index),
            "task": task[index],
            **{f"logprob_{k + 1}": f"{logs[index, k]:.6f}" for k in range(levels)},
            "judge_score": str(judge[index]),
            "human_score": str(human[index]),
            **columns,
        }
        for index in range(rows)
    ]
    if edit:
        edit(table)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    return path
