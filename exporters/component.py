"""One component from module to checked file: golden outputs, counts, conversion, comparison."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from argus_edge.artifacts import atomic_open, sha256_file
from argus_edge.errors import ArgusError, InputError, ParityError
from argus_edge.exporters.calibration import Calibration, calibrated
from argus_edge.exporters.counting import Counts, combine, count_flop_counter_mode, count_fvcore, skeleton
from argus_edge.exporters.format import Converted, Format, Request, Runner, example_inputs
from argus_edge.exporters.golden import Case, made_up, run_exported, run_original, samples_per_case, stack
from argus_edge.exporters.onnx_profile import graph_macs
from argus_edge.exporters.parity import LIMITS, compare_output
from argus_edge.exporters.plan import Arrays, ComponentPlan, Piece
from argus_edge.exporters.weights import randomise
from argus_edge.onnx_macs import GraphCost
from argus_edge.schema.bundle import (
    BundleFile,
    Component,
    GoldenCase,
    MacCount,
    Parity,
    Precision,
    TensorSpec,
)
from argus_edge.text import first_line

Say = Callable[[str], None]
# The exported graph is run once to be walked, at the lengths at which the original is counted; above this, not.
GRAPH_MACS = 500_000_000_000
# Above this, fvcore does not get the values that it may need to trace a component.
TRACED_MACS = 50_000_000_000


@dataclass(frozen=True)
class ComponentJob:
    """Everything that exporting one component needs beside its module."""

    plan: ComponentPlan
    file_format: Format
    precision: Precision
    opset: int
    folder: Path
    seed: int
    random_weights: bool
    calibration: Calibration
    bindings: dict[str, str]
    fp16_embeddings: bool
    check: bool


@contextlib.contextmanager
def said(what: str, kind: type[ArgusError]) -> Iterator[None]:
    """Turn whatever third-party code raises into an error of ours; errors of ours and of the host pass."""
    try:
        yield
    except (ArgusError, OSError, MemoryError):
        raise
    except Exception as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0][:400]
        if "allocate memory" in first:
            raise MemoryError(first) from error
        raise kind(f"{what}: {first}", next_step="report it with the model's config.json") from error


def export_component(job: ComponentJob, piece: Piece, say: Say) -> Component:
    """Export one component and compare it with the original at its golden shapes.

    Golden inputs are run through the original first: conversion may change the module.

    Raises
    ------
    MisfitError
        The model has an operation that the opset cannot express.
    """
    plan = job.file_format.adapt(job.plan)
    piece.requires_grad_(False).eval()
    if job.random_weights:
        randomise(piece, job.seed)
    params = sum(parameter.numel() for parameter in piece.parameters())
    say(f"{plan.name}: {params / 1e6:.1f} M parameters")
    cases: list[Case] = []
    counts: list[Counts] = []
    notes: list[str] = []
    if job.check:
        with said(f"The original's component {plan.name} cannot be run", InputError):
            bare = skeleton(piece)
            counts = [count_original(plan, piece, bare, dims) for dims in plan.mac_dims]
            macs = [count_flop_counter_mode(piece, bare, example_inputs(plan, dims)) for dims in plan.cases]
            samples = samples_per_case(job.precision, macs, params)
            cases = golden_cases(job, plan, piece, samples)
        if 0 in samples:
            notes.append(f"compared at {len(samples) - samples.count(0)} of {len(samples)} shapes: too large for more")
        say(f"{plan.name}: original run at {len(cases)} shapes")
    target = job.folder / plan.name
    target.mkdir()
    seen = tuple(sample for case in cases for sample in case.inputs)
    request = Request(job.precision, job.opset, seen, job.fp16_embeddings)
    with said(f"The component {plan.name} cannot be converted to {job.file_format.name}", InputError):
        converted = job.file_format.convert(piece, plan, request, target)
    del piece
    gc.collect()
    facts = job.file_format.facts(converted)
    say(f"{plan.name}: converted by {converted.converter}")
    inputs = tuple(with_dtype(spec, facts.dtypes) for spec in plan.inputs)
    outputs = tuple(with_dtype(spec, facts.dtypes) for spec in plan.outputs)
    golden: list[GoldenCase] = []
    parity = None
    if job.check:
        with said(f"The exported component {plan.name} does not run in {job.file_format.runtime()}", ParityError):
            golden, parity = check(job, plan, inputs, cases, job.file_format.runner(converted.file, plan))
        verdict = "passed" if parity.passed else "FAILED"
        say(f"{plan.name}: parity {verdict}, lowest cosine {min(f.cosine for f in parity.figures):.6f}")
    return Component(
        name=plan.name,
        role=plan.role,
        format=job.file_format.name,  # type: ignore[arg-type]
        precision=job.precision,
        file=describe(job.folder, converted.file),
        external_data=[describe(job.folder, path) for path in converted.external],
        inputs=list(inputs),
        outputs=list(outputs),
        dims=list(plan.dims),
        golden=golden,
        parity=parity,
        params=params,
        weight_bytes=facts.weight_bytes,
        macs=[count_graph(plan, converted, count) for count in counts],
        ops=facts.ops,
        opset=facts.opset,
        opset_imports=facts.opset_imports,
        ir_version=facts.ir_version,
        converter=converted.converter,
        notes=[*plan.notes, *notes, *converted.notes],
    )


def golden_cases(job: ComponentJob, plan: ComponentPlan, piece: Piece, samples: Sequence[int]) -> list[Case]:
    """Make golden inputs at the plan's shapes and run the original on them."""
    cases = []
    for index, (dims, count) in enumerate(zip(plan.cases, samples, strict=True)):
        if not count:
            continue
        origin = "random"
        inputs = made_up(plan, dims, count, job.seed + 100 * index)
        if index == 0 and job.calibration:
            inputs, origin = calibrated(plan, dims, inputs, job.calibration, job.bindings)
        outputs = run_original(piece, plan, inputs)
        if not all(np.isfinite(array).all() for sample in outputs for array in sample.values()):
            raise InputError(
                f"The original's component {plan.name} gives values that are not finite.",
                next_step="its weights are damaged, or were stored in a type too narrow for them: copy the model again",
            )
        if index == 0:
            job.calibration.remember(plan.name, outputs)
        cases.append(Case(dims, origin, inputs, outputs))  # type: ignore[arg-type]
    return cases


def count_original(plan: ComponentPlan, piece: Piece, bare: Piece, dims: dict[str, int]) -> Counts:
    """Count the original's MACs at some lengths by the two counters that need the module."""
    tensors = example_inputs(plan, dims)
    flop_counter = count_flop_counter_mode(piece, bare, tensors)
    # fvcore's tracer cannot follow every operation without values; those it follows with them, if that is cheap.
    reason = 'not installed (pip install "argus-edge[export]")'
    for module in [bare, piece] if flop_counter <= TRACED_MACS else [bare]:
        try:
            return Counts(dims, flop_counter, count_fvcore(module, tensors))
        except ImportError:
            break
        except Exception as error:
            reason = f"cannot trace this component: {first_line(error, 200)}"
    return Counts(dims, flop_counter, reason)


def count_graph(plan: ComponentPlan, converted: Converted, counts: Counts) -> MacCount:
    """Add the exported graph's own count to the original's."""
    graph: GraphCost | str
    if converted.file.suffix != ".onnx":
        graph = "this format has no ONNX graph to walk"
    elif counts.flop_counter > GRAPH_MACS:
        graph = f"not walked: one call takes {counts.flop_counter / 1e9:.0f} GMAC"
    else:
        graph = graph_macs(converted.file, plan, counts.dims)
    return combine(counts.dims, counts.flop_counter, graph, counts.fvcore)


def check(
    job: ComponentJob, plan: ComponentPlan, inputs: Sequence[TensorSpec], cases: Sequence[Case], run: Runner
) -> tuple[list[GoldenCase], Parity]:
    """Run the exported file on the golden inputs, compare, and write the golden files."""
    limits = LIMITS[job.precision]
    golden, figures = [], []
    for index, case in enumerate(cases):
        fed = tuple({spec.name: sample[spec.name].astype(spec.dtype) for spec in inputs} for sample in case.inputs)
        host = stack(run_exported(run, plan, fed))
        original = stack(case.outputs)
        for name in original:
            figures.append(compare_output(name, index, original[name], host[name], limits))
        golden.append(
            GoldenCase(
                dims=case.dims,
                samples=len(fed),
                origin=case.origin,
                inputs=save(job.folder, f"golden/{plan.name}-{index}-inputs.npz", stack(fed)),
                outputs=save(job.folder, f"golden/{plan.name}-{index}-outputs.npz", original),
                host_outputs=save(job.folder, f"golden/{plan.name}-{index}-host.npz", host),
            )
        )
    passed = all(figure.passed for figure in figures)
    return golden, Parity(runtime=job.file_format.runtime(), limits=limits, figures=figures, passed=passed)


def with_dtype(spec: TensorSpec, dtypes: dict[str, str]) -> TensorSpec:
    """Return a spec with the dtype that the exported file really has."""
    return spec.model_copy(update={"dtype": dtypes.get(spec.name, spec.dtype)})


def save(root: Path, name: str, arrays: Arrays) -> BundleFile:
    """Write arrays as ``.npz`` and return their place in the bundle."""
    with atomic_open(root / name) as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return describe(root, root / name)


def describe(root: Path, path: Path) -> BundleFile:
    """Return a file's place in the bundle, its hash and its size."""
    return BundleFile(path=path.relative_to(root).as_posix(), sha256=sha256_file(path), bytes=path.stat().st_size)
