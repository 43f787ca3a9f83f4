"""ONNX files: conversion by torch.onnx, running in onnxruntime, facts from the graph."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import onnx
import torch

from argus_edge.errors import MisfitError
from argus_edge.exporters import onnx_precision
from argus_edge.exporters.format import Converted, FileFacts, Format, Request, Runner, example_inputs
from argus_edge.exporters.plan import Arrays, ComponentPlan, Piece
from argus_edge.exporters.quiet import quiet
from argus_edge.onnx_facts import graph_facts
from argus_edge.schema.bundle import Precision
from argus_edge.text import first_line

# torch's newer exporter translates to opset 18; below that, only its older one writes files that load.
FIRST_DYNAMO_OPSET = 18


class OnnxFormat(Format):
    """ONNX for onnxruntime."""

    name: ClassVar[str] = "onnx"
    suffix: ClassVar[str] = ".onnx"
    precisions: ClassVar[tuple[Precision, ...]] = ("fp32", "fp16", "int8", "int8-static", "int4")

    def convert(self, piece: Piece, plan: ComponentPlan, request: Request, folder: Path) -> Converted:
        """Trace the piece with the exporter that the opset needs, then bring the graph to its precision."""
        path = folder / f"{plan.name}.onnx"
        notes: tuple[str, ...] = ()
        if request.precision == "int4":
            from argus_edge.exporters.int4 import quantise_module

            notes = quantise_module(piece, fp16_embeddings=request.fp16_embeddings)
        dynamo = request.opset >= FIRST_DYNAMO_OPSET
        with quiet(), torch.no_grad(), opset_errors(request.opset):
            (_export_dynamo if dynamo else _export_legacy)(piece, plan, request.opset, path)
        if request.precision in ("fp16", "int8", "int8-static"):
            notes += onnx_precision.change(path, request)
        external = tuple(sorted(p for p in folder.iterdir() if p.name.startswith(f"{plan.name}.onnx.")))
        version = f"torch.onnx ({'dynamo' if dynamo else 'TorchScript'}) {torch.__version__}"
        return Converted(path, external, version, notes)

    def runner(self, path: Path, plan: ComponentPlan) -> Runner:
        """Return a function that runs the file on the CPU."""
        return onnx_runner(path)

    def runtime(self) -> str:
        """Return onnxruntime's version."""
        import onnxruntime

        return f"onnxruntime {onnxruntime.__version__}"

    def facts(self, converted: Converted) -> FileFacts:
        """Read operators, opsets, IR version and the size of the constants from the graph."""
        found = graph_facts(onnx.load(str(converted.file), load_external_data=False))
        dtypes = {name: dtype for name, (dtype, _) in [*found.inputs.items(), *found.outputs.items()]}
        return FileFacts(found.weight_bytes, found.ops, dtypes, found.opset, found.opset_imports, found.ir_version)


def onnx_runner(path: Path) -> Runner:
    """Return a function that runs an ONNX file on the CPU on named arrays."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # Waiting threads sleep: an export is no benchmark, and a host is seldom idle.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    wanted = {entry.name for entry in session.get_inputs()}

    def run(arrays: Arrays) -> Arrays:
        fed = {name: array for name, array in arrays.items() if name in wanted}
        return dict(zip(names, session.run(names, fed), strict=True))

    return run


def _weight_bytes(piece: Piece) -> int:
    return sum(
        t.numel() * t.element_size() for t in {id(t): t for t in [*piece.parameters(), *piece.buffers()]}.values()
    )


def _export_dynamo(piece: Piece, plan: ComponentPlan, opset: int, path: Path) -> None:
    args = example_inputs(plan, plan.trace_dims)
    torch.onnx.export(
        piece,
        args,
        str(path),
        dynamo=True,
        opset_version=opset,
        input_names=[spec.name for spec in plan.inputs],
        output_names=[spec.name for spec in plan.outputs],
        dynamic_shapes=dynamic_shapes(piece, plan),
        external_data=_weight_bytes(piece) > onnx_precision.EXTERNAL_DATA_ABOVE,
        verbose=False,
    )


def dynamic_shapes(piece: Piece, plan: ComponentPlan) -> dict[str, Any]:
    """Return the dynamic axes by forward's argument; inputs beyond the named ones belong to its ``*args``."""
    axes = [{axis: dim for axis, dim in enumerate(spec.shape) if isinstance(dim, str)} or None for spec in plan.inputs]
    parameters = list(inspect.signature(piece.forward).parameters.values())
    named = [p.name for p in parameters if p.kind is not inspect.Parameter.VAR_POSITIONAL]
    shapes: dict[str, Any] = dict(zip(named, axes, strict=False))
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            shapes[parameter.name] = tuple(axes[len(named) :])
    return shapes


def _export_legacy(piece: Piece, plan: ComponentPlan, opset: int, path: Path) -> None:
    axes = {
        spec.name: {axis: dim for axis, dim in enumerate(spec.shape) if isinstance(dim, str)}
        for spec in [*plan.inputs, *plan.outputs]
    }
    torch.onnx.export(
        piece,
        example_inputs(plan, plan.trace_dims),
        str(path),
        dynamo=False,
        opset_version=opset,
        input_names=[spec.name for spec in plan.inputs],
        output_names=[spec.name for spec in plan.outputs],
        dynamic_axes={name: named for name, named in axes.items() if named},
    )
    piece.eval()  # the exporter leaves some submodules in training mode
    if len(list(path.parent.iterdir())) > 1:
        # Above 2 GB it writes one file for each tensor.
        onnx_precision.save(onnx.load(str(path)), path)


@contextlib.contextmanager
def opset_errors(opset: int) -> Iterator[None]:
    """Say which operator an opset lacks, in place of the exporter's traceback.

    Raises
    ------
    MisfitError
        The model has an operation that the opset cannot express.
    """
    try:
        yield
    except (torch.onnx.errors.OnnxExporterError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "nable to cast" not in str(error) and "opset" not in str(error).lower():
            raise
        first = first_line(error, 400)
        raise MisfitError(
            f"The model cannot be written in opset {opset}: {first}",
            next_step="leave out --opset (the device's profile chooses one), or give a higher one",
        ) from error
