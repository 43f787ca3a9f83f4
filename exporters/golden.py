"""Golden inputs of a component: made up, or the user's own, at three shapes; and the original's outputs for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from argus_edge.bundles import make_inputs
from argus_edge.exporters.format import Runner, as_arrays, as_tensors
from argus_edge.exporters.plan import Arrays, ComponentPlan, Piece
from argus_edge.schema.bundle import Precision

# Arm and x86 round and saturate int8 differently: a board needs enough samples to tell that from a broken file.
QUANTISED_SAMPLES, FLOAT_SAMPLES = 32, 4
# Multiply-accumulates that the original is run for at most (and the exported file as often): minutes on two cores.
MAC_BUDGET = 1_000_000_000_000
# Fetching a weight takes as long as this many multiply-accumulates, more where it is widened from 16 bits.
MACS_PER_WEIGHT = 50


@dataclass(frozen=True)
class Case:
    """One golden shape with its samples and what the original computes for them."""

    dims: dict[str, int]
    origin: Literal["random", "calibration"]
    inputs: tuple[Arrays, ...]
    outputs: tuple[Arrays, ...]


def samples_per_case(precision: Precision, macs: Sequence[int], params: int) -> list[int]:
    """Return how many samples each golden shape gets: many for the first, one for the others.

    Parameters
    ----------
    macs
        Multiply-accumulates of one call at each shape. Large models get fewer samples, and shapes that do not fit
        into the budget get none; the first always gets one.
    params
        Of the component.
    """
    wanted = FLOAT_SAMPLES if precision in ("fp32", "fp16") else QUANTISED_SAMPLES
    costs = [count + MACS_PER_WEIGHT * params for count in macs]
    left = MAC_BUDGET - sum(costs[1:])
    first = max(1, min(wanted, left // max(1, costs[0])))
    counts, spent = [first], first * costs[0]
    for cost in costs[1:]:
        spent += cost
        counts.append(1 if spent <= MAC_BUDGET else 0)
    return counts


def made_up(plan: ComponentPlan, dims: dict[str, int], samples: int, seed: int) -> tuple[Arrays, ...]:
    """Return made-up inputs that mean something to the component."""
    return tuple(plan.finish(make_inputs(plan.inputs, dims, seed=seed + i)) for i in range(samples))


@torch.no_grad()
def run_original(piece: Piece, plan: ComponentPlan, inputs: Sequence[Arrays]) -> tuple[Arrays, ...]:
    """Return what the original model computes for each sample."""
    return tuple(as_arrays(plan, piece.reference(*as_tensors(plan, sample))) for sample in inputs)


def run_exported(run: Runner, plan: ComponentPlan, inputs: Sequence[Arrays]) -> tuple[Arrays, ...]:
    """Return what the exported file computes for each sample, without outputs that the plan does not name."""
    wanted = [spec.name for spec in plan.outputs]
    found = []
    for sample in inputs:
        outputs = run(sample)
        found.append({name: outputs[name] for name in wanted})
    return tuple(found)


def stack(samples: Sequence[Arrays]) -> Arrays:
    """Return the samples as one array a name, with the sample as first axis."""
    return {name: np.stack([sample[name] for sample in samples]) for name in samples[0]}
