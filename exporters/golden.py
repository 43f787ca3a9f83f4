"""Golden inputs of a component: made up, or the user's own, at three shapes; and the original's outputs for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from argus_edge.bundles import make_inputs
from argus_edge.exporters.format import Runner, as_arrays
from argus_edge.exporters.plan import Arrays, ComponentPlan, Piece
from argus_edge.schema.bundle import Precision

# Arm and x86 round and saturate int8 differently: a board needs enough samples to tell that from a broken file.
QUANTISED_SAMPLES, FLOAT_SAMPLES = 32, 4
# Beyond this many parameters one call takes seconds to minutes on a workstation's CPU.
LARGE, LARGE_SAMPLES = 1_000_000_000, 4


@dataclass(frozen=True)
class Case:
    """One golden shape with its samples and what the original computes for them."""

    dims: dict[str, int]
    origin: Literal["random", "calibration"]
    inputs: tuple[Arrays, ...]
    outputs: tuple[Arrays, ...]


def sample_count(precision: Precision, params: int) -> int:
    """Return how many samples the first golden shape gets."""
    wanted = FLOAT_SAMPLES if precision in ("fp32", "fp16") else QUANTISED_SAMPLES
    return min(wanted, LARGE_SAMPLES) if params > LARGE else wanted


def made_up(plan: ComponentPlan, dims: dict[str, int], samples: int, seed: int) -> tuple[Arrays, ...]:
    """Return made-up inputs that mean something to the component."""
    return tuple(plan.finish(make_inputs(plan.inputs, dims, seed=seed + i)) for i in range(samples))


@torch.no_grad()
def run_original(piece: Piece, plan: ComponentPlan, inputs: Sequence[Arrays]) -> tuple[Arrays, ...]:
    """Return what the original model computes for each sample."""
    return tuple(
        as_arrays(plan, piece.reference(*(torch.from_numpy(sample[spec.name]) for spec in plan.inputs)))
        for sample in inputs
    )


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
