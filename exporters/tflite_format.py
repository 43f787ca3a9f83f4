"""TFLite files: conversion by litert-torch, quantisation by ai-edge-quantizer, running in LiteRT; shapes are fixed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from argus_edge.errors import InputError, MissingDependencyError
from argus_edge.exporters.format import Converted, FileFacts, Format, Request, Runner, example_inputs
from argus_edge.exporters.plan import Arrays, ComponentPlan, Piece
from argus_edge.exporters.quiet import quiet
from argus_edge.schema.bundle import Precision, TensorSpec

SHAPE_DRAWS = 3


class NamedPiece(torch.nn.Module):
    """A piece that takes its inputs by name and gives its outputs by name: the names of the file's signature."""

    def __init__(self, piece: Piece, plan: ComponentPlan) -> None:
        super().__init__()
        self.piece = piece
        self.input_names = [spec.name for spec in plan.inputs]
        self.output_names = [spec.name for spec in plan.outputs]

    def forward(self, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the outputs by name."""
        outputs = self.piece(*(inputs[name] for name in self.input_names))
        return dict(zip(self.output_names, outputs, strict=True))


class TfliteFormat(Format):
    """TFLite for LiteRT."""

    name: ClassVar[str] = "tflite"
    suffix: ClassVar[str] = ".tflite"
    precisions: ClassVar[tuple[Precision, ...]] = ("fp32", "fp16", "int8", "int8-static", "int4")
    needs: ClassVar[tuple[str, str, str] | None] = ("litert_torch", "litert-torch", "tflite")

    def tensor_name(self, name: str) -> str:
        """Return an identifier: litert-torch writes names into code."""
        return name.replace(".", "_")

    def adapt(self, plan: ComponentPlan) -> ComponentPlan:
        """Fix every axis: one file has one shape. A decoder takes one token, with a past that padding may fill."""
        lengths = {dim.name: dim.typical for dim in plan.dims}
        note = "shapes are fixed"
        if plan.role == "decoder":
            past = min(DECODER_PAST, next(dim.maximum for dim in plan.dims if dim.name == "past"))
            lengths |= {"sequence": 1, "past": past, "total": past + 1}
            if "image_tokens" in lengths:
                lengths["image_tokens"] = 1
            note = (
                f"shapes are fixed: one token a call, a past of {past} positions; a shorter past is padded on the "
                "left and hidden by attention_mask, and a prompt is read token by token"
            )

        def fixed(spec: TensorSpec) -> TensorSpec:
            shape = [lengths[axis] if isinstance(axis, str) else axis for axis in spec.shape]
            # litert-torch narrows 64-bit integers, which LiteRT's delegates do not take.
            dtype = "int32" if spec.dtype == "int64" else spec.dtype
            return spec.model_copy(update={"name": self.tensor_name(spec.name), "shape": shape, "dtype": dtype})

        return replace(
            plan,
            inputs=tuple(map(fixed, plan.inputs)),
            outputs=tuple(map(fixed, plan.outputs)),
            dims=(),
            cases=({},) * SHAPE_DRAWS,
            mac_dims=({},),
            trace_dims={},
            finish=lambda arrays: self._finished(plan, arrays),
            notes=(*plan.notes, note),
        )

    def _finished(self, plan: ComponentPlan, arrays: Arrays) -> Arrays:
        """Let the plan correct the arrays under the names that it knows."""
        ours = {self.tensor_name(spec.name): spec.name for spec in plan.inputs}
        finished = plan.finish({ours[name]: array for name, array in arrays.items()})
        return {name: finished[known] for name, known in ours.items()}

    def convert(self, piece: Piece, plan: ComponentPlan, request: Request, folder: Path) -> Converted:
        """Convert at the plan's fixed shapes, then quantise the file."""
        import litert_torch

        path = folder / f"{plan.name}.tflite"
        named = NamedPiece(piece, plan).eval()
        tensors = dict(zip((spec.name for spec in plan.inputs), example_inputs(plan, {}), strict=True))
        with quiet(), torch.no_grad():
            try:
                litert_torch.convert(named, sample_kwargs=tensors).export(str(path))
            except (RuntimeError, NotImplementedError, ValueError) as error:
                first = str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
                raise InputError(
                    f"litert-torch cannot convert the component {plan.name}: {first}",
                    next_step="choose --format onnx",
                ) from error
            notes = () if request.precision == "fp32" else quantise(path, request)
        return Converted(path, (), f"litert-torch {version('litert-torch')}", notes)

    def runner(self, path: Path, plan: ComponentPlan) -> Runner:
        """Return a function that runs the file's one signature."""
        interpreter = _interpreter(path)
        signature = interpreter.get_signature_runner()
        wanted = signature.get_input_details()

        def run(arrays: Arrays) -> Arrays:
            fed = {name: arrays[name].astype(detail["dtype"]) for name, detail in wanted.items()}
            return {name: np.array(value) for name, value in signature(**fed).items()}

        return run

    def runtime(self) -> str:
        """Return LiteRT's version."""
        return f"ai-edge-litert {version('ai-edge-litert')}"

    def facts(self, converted: Converted) -> FileFacts:
        """Read operators, dtypes and the size of the constants by LiteRT itself."""
        interpreter = _interpreter(converted.file)
        ops = Counter(op["op_name"] for op in interpreter._get_ops_details() if op["op_name"] != "DELEGATE")
        signature = interpreter.get_signature_runner()
        details = {**signature.get_input_details(), **signature.get_output_details()}
        dtypes = {name: np.dtype(detail["dtype"]).name for name, detail in details.items()}
        return FileFacts(converted.file.stat().st_size, dict(ops.most_common()), dtypes)


# Positions that a fixed decoder's past holds: an image of 256 tokens and a prompt, and room for an answer.
DECODER_PAST = 320


def quantise(path: Path, request: Request) -> tuple[str, ...]:
    """Quantise a TFLite file in place.

    Returns
    -------
    tuple of str
        Notes for the manifest.
    """
    try:
        from ai_edge_quantizer import quantizer, recipe
    except ImportError as error:
        raise MissingDependencyError("ai-edge-quantizer", "tflite", needed_for="Quantising TFLite files") from error
    recipes: dict[str, Any] = {
        "fp16": _float16_recipe,
        "int8": recipe.dynamic_wi8_afp32,
        "int8-static": recipe.static_wi8_ai8,
        "int4": recipe.weight_only_wi4_afp32,
    }
    notes = {
        "fp16": "weights in fp16, widened when the file is loaded",
        "int8": "int8 weights per channel, activations scaled at run time",
        "int8-static": "int8 weights and activations, activations scaled by samples",
        "int4": "weights in 4 bits per channel, widened before use",
    }
    job = quantizer.Quantizer(str(path), recipes[request.precision]())
    calibration = None
    if job.need_calibration:
        signature = next(iter(_interpreter(path).get_signature_list()))
        samples = [dict(sample) for sample in request.samples]
        calibration = job.calibrate({signature: samples})
    result = job.quantize(calibration)
    target = path.with_suffix(".quantised")
    result.export_model(str(target), overwrite=True)
    target.replace(path)
    return (f"{notes[request.precision]} (ai-edge-quantizer {version('ai-edge-quantizer')})",)


def _float16_recipe() -> Any:
    from ai_edge_quantizer import qtyping, recipe_manager
    from ai_edge_quantizer.recipe import AlgorithmName, TFLOperationName

    manager = recipe_manager.RecipeManager()
    manager.add_quantization_config(
        regex=".*",
        operation_name=TFLOperationName.ALL_SUPPORTED,
        op_config=qtyping.OpQuantizationConfig(
            weight_tensor_config=qtyping.TensorQuantizationConfig(num_bits=16, dtype=qtyping.TensorDataType.FLOAT),
            compute_precision=qtyping.ComputePrecision.FLOAT,
        ),
        algorithm_key=AlgorithmName.FLOAT_CASTING,
    )
    return manager.get_quantization_recipe()


def _interpreter(path: Path) -> Any:
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError as error:
        raise MissingDependencyError("ai-edge-litert", "tflite", needed_for="Running TFLite files") from error
    return Interpreter(model_path=str(path))
