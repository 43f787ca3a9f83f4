"""Bringing an ONNX file to fp16 or int8 by onnxruntime's own tools."""

from __future__ import annotations

import tempfile
from pathlib import Path

import onnx

from argus_edge.errors import UsageError
from argus_edge.exporters.format import Request
from argus_edge.exporters.plan import Arrays
from argus_edge.exporters.quiet import quiet
from argus_edge.onnx_facts import graph_facts

# A protobuf file holds at most 2 GiB; weights above this go into a file beside it.
EXTERNAL_DATA_ABOVE = 1_800_000_000
# Convolutions stay in fp32 under dynamic quantisation: ConvInteger is slower than Conv on every CPU that we know of,
# and a vision transformer has one. With the other default types static quantisation can wreck CLIP.
# Weights and activations are unsigned: signed weights saturate 16-bit sums on x86 without VNNI (cosine 0.98 where
# unsigned ones keep 0.9999), and Arm multiplies either at the same speed.
DYNAMIC_TYPES = ["MatMul", "Gather"]
STATIC_TYPES = ["MatMul", "Gemm", "Conv", "Gather"]
# What stands between the product that mixes values and the one that projects them.
_MOVES = ("Transpose", "Reshape", "Cast", "Identity", "Squeeze", "Unsqueeze")


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

    bare = onnx.load(str(path), load_external_data=False)
    entries = [*bare.graph.input, *bare.graph.output]
    kept = [entry.name for entry in entries if not entry.name.startswith(("past_key_values.", "present."))]
    # By its path the tool takes a model of any size, by its content one of up to 2 GB.
    model = convert_float_to_float16(str(path) if is_large(path) else onnx.load(str(path)), keep_io_types=kept)
    save(model, path)
    return ("weights and arithmetic in fp16; inputs and outputs in fp32 (keys and values in fp16)",)


def to_dynamic_int8(path: Path) -> tuple[str, ...]:
    """Store matrices and embeddings in int8, one scale per output channel; activations are scaled at run time."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        target = Path(folder) / path.name
        quantize_dynamic(
            path,
            target,
            op_types_to_quantize=DYNAMIC_TYPES,
            nodes_to_exclude=first_attention_output(onnx.load(str(path), load_external_data=False)),
            per_channel=True,
            weight_type=QuantType.QUInt8,
            use_external_data_format=is_large(path),
        )
        save(onnx.load(str(target)), path)
    return (
        "int8 weights per output channel, activations scaled at run time; convolutions, norms and what projects the "
        "first attention's output in fp32",
    )


def first_attention_output(model: onnx.ModelProto) -> list[str]:
    """Return the node that projects what the first attention gives, in a list; an empty one where there is none.

    Under a causal mask the first position's value is one token's, the last one's a mean over all: one scale for both
    leaves few steps for most positions. In the first layer that error is a large part of what there is: in fp32 this
    one product lifts CLIP's text tower from a cosine of 0.9988 to 0.9994 for 0.1 % of its size.
    """
    constants = {tensor.name for tensor in model.graph.initializer}
    maker = {name: node for node in model.graph.node for name in node.output}

    def mixes_values(name: str) -> bool:
        node = maker.get(name)
        while node is not None and node.op_type in _MOVES:
            node = maker.get(node.input[0])
        return node is not None and node.op_type == "MatMul" and constants.isdisjoint(node.input)

    found = (
        node.name
        for node in model.graph.node
        if node.op_type == "MatMul" and node.input[1] in constants and mixes_values(node.input[0])
    )
    return [name for name in found if name][:1]


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

    large = is_large(path)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        prepared, target = Path(folder) / f"prepared-{path.name}", Path(folder) / path.name
        quant_pre_process(str(path), str(prepared), skip_symbolic_shape=True, save_as_external_data=large)
        quantize_static(
            prepared,
            target,
            Reader(),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=STATIC_TYPES,
            nodes_to_exclude=first_attention_output(onnx.load(str(prepared), load_external_data=False)),
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QUInt8,
            use_external_data_format=large,
            # Products of two activations (attention) stay in fp32: their range differs too much from call to call.
            extra_options={"MatMulConstBOnly": True},
        )
        save(onnx.load(str(target)), path)
    return (f"int8 weights per output channel, activations scaled by {len(samples)} samples (QDQ)",)


def is_large(path: Path) -> bool:
    """Tell whether an ONNX file keeps its weights in files beside it."""
    return any(path.parent.glob(f"{path.name}.*"))


def save(model: onnx.ModelProto, path: Path) -> None:
    """Write an ONNX model in the place of what was there; weights above the limit go into one file beside it."""
    for old in path.parent.iterdir():
        if old.is_file():
            old.unlink()
    if graph_facts(model).weight_bytes > EXTERNAL_DATA_ABOVE:
        onnx.save_model(model, str(path), save_as_external_data=True, location=f"{path.name}.data", size_threshold=1024)
    else:
        onnx.save_model(model, str(path))
