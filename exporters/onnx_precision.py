"""Bringing an ONNX file to fp16 or int8 by onnxruntime's own tools."""

from __future__ import annotations

from pathlib import Path

import onnx

from argus_edge.errors import UsageError
from argus_edge.exporters.format import Request
from argus_edge.exporters.plan import Arrays
from argus_edge.exporters.quiet import quiet

# Convolutions stay in fp32 under dynamic quantisation: ConvInteger is slower than Conv on every CPU that we know of,
# and a vision transformer has one. With the other default types static quantisation can wreck CLIP.
# Weights and activations are unsigned: signed weights saturate 16-bit sums on x86 without VNNI (cosine 0.98 where
# unsigned ones keep 0.9999), and Arm multiplies either at the same speed.
DYNAMIC_TYPES = ["MatMul", "Gather"]
STATIC_TYPES = ["MatMul", "Gemm", "Conv", "Gather"]


def change(path: Path, request: Request) -> tuple[str, ...]:
    """Rewrite an fp32 ONNX file in fp16, int8 or int8-static, in place.

    Returns
    -------
    tuple of str
        Notes for the manifest.
    """
    with quiet():
        if request.precision == "fp16":
            return to_fp16(path)
        if request.precision == "int8":
            return to_dynamic_int8(path)
        return to_static_int8(path, request.samples)


def to_fp16(path: Path) -> tuple[str, ...]:
    """Store weights and compute in fp16; inputs and outputs stay fp32, except for a decoder's keys and values."""
    from onnxruntime.transformers.float16 import convert_float_to_float16

    model = onnx.load(str(path))
    entries = [*model.graph.input, *model.graph.output]
    kept = [entry.name for entry in entries if not entry.name.startswith(("past_key_values.", "present."))]
    model = convert_float_to_float16(model, keep_io_types=kept)
    _replace(path, model)
    return ("weights and arithmetic in fp16; inputs and outputs in fp32 (keys and values in fp16)",)


def to_dynamic_int8(path: Path) -> tuple[str, ...]:
    """Store matrices and embeddings in int8, one scale per output channel; activations are scaled at run time."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    target = path.with_suffix(".quantised")
    quantize_dynamic(
        path,
        target,
        op_types_to_quantize=DYNAMIC_TYPES,
        per_channel=True,
        weight_type=QuantType.QUInt8,
    )
    target.replace(path)
    return ("int8 weights per output channel, activations scaled at run time; convolutions and norms in fp32",)


def to_static_int8(path: Path, samples: tuple[Arrays, ...]) -> tuple[str, ...]:
    """Store matrices in int8 and scale activations by what the samples show (QDQ).

    Raises
    ------
    UsageError
        There are no samples to calibrate on.
    """
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    if not samples:
        raise UsageError("int8-static needs samples to calibrate on.", next_step="add --calibration FOLDER")

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self._left = iter(samples)

        def get_next(self) -> Arrays | None:
            return next(self._left, None)

    prepared, target = path.with_suffix(".prepared"), path.with_suffix(".quantised")
    quant_pre_process(str(path), str(prepared), skip_symbolic_shape=True)
    quantize_static(
        prepared,
        target,
        Reader(),
        quant_format=QuantFormat.QDQ,
        op_types_to_quantize=STATIC_TYPES,
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QUInt8,
        # Products of two activations (attention) stay in fp32: their range differs too much from call to call.
        extra_options={"MatMulConstBOnly": True},
    )
    prepared.unlink()
    target.replace(path)
    return (f"int8 weights per output channel, activations scaled by {len(samples)} samples (QDQ)",)


def _replace(path: Path, model: onnx.ModelProto) -> None:
    for old in path.parent.glob(f"{path.name}.*"):
        old.unlink()
    onnx.save_model(model, str(path))
