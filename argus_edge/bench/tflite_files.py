"""Reading a TFLite file of unknown origin: its inputs and operators, and whether it is whole."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from argus_edge.artifacts import sha256_file
from argus_edge.bench.model_types import BenchComponent, InputSpec, ModelFile
from argus_edge.errors import InputError

# TensorType of the TFLite schema (tensorflow/lite/schema/schema.fbs, version 3).
DTYPES = {
    0: "float32",
    1: "float16",
    2: "int32",
    3: "uint8",
    4: "int64",
    6: "bool",
    7: "int16",
    8: "complex64",
    9: "int8",
    10: "float64",
    12: "uint64",
    15: "uint32",
    16: "uint16",
}


def _builtin_names() -> dict[int, str]:
    from tflite.BuiltinOperator import BuiltinOperator

    return {value: name for name, value in vars(BuiltinOperator).items() if isinstance(value, int)}


def _tensor_spec(tensor: Any, path: Path) -> InputSpec:
    name = (tensor.Name() or b"").decode("utf-8", "replace")
    dtype = DTYPES.get(tensor.Type())
    if dtype is None:
        raise InputError(f"The input {name[:100]!r} is not a tensor of numbers.", where=str(path))
    signature = [tensor.ShapeSignature(i) for i in range(tensor.ShapeSignatureLength())]
    lengths = signature or [tensor.Shape(i) for i in range(tensor.ShapeLength())]
    return InputSpec(name, dtype, tuple("?" if length < 0 else length for length in lengths))


def tflite_component(path: Path, name: str | None = None) -> BenchComponent:
    """Read a TFLite file as a component to bench.

    Raises
    ------
    InputError
        Not TFLite, or cut short.
    """
    from tflite.Model import Model

    raw = path.read_bytes()
    broken = InputError(
        "Not a TFLite model, or a truncated one.", where=str(path), next_step="copy or convert the model again"
    )
    if raw[4:8] != b"TFL3":
        raise broken
    names = _builtin_names()
    try:
        model = Model.GetRootAs(raw, 0)
        if model.SubgraphsLength() == 0:
            raise broken
        graph = model.Subgraphs(0)
        for index in range(model.BuffersLength()):
            # Weights beyond 2 GB lie behind the flatbuffer, by offset and size; others inside it.
            buffer = model.Buffers(index)
            inside = buffer.DataLength() and buffer.Data(buffer.DataLength() - 1) is not None
            if not inside and buffer.Offset() > 1 and buffer.Offset() + buffer.Size() > len(raw):
                raise broken
        inputs = tuple(_tensor_spec(graph.Tensors(graph.Inputs(i)), path) for i in range(graph.InputsLength()))
        names = _builtin_names()
        ops: dict[str, int] = {}
        for index in range(graph.OperatorsLength()):
            code = model.OperatorCodes(graph.Operators(index).OpcodeIndex())
            # Codes above 127 are in the newer field; the older one holds 127 then.
            builtin = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
            custom = (code.CustomCode() or b"").decode("utf-8", "replace")
            op = custom if custom else names.get(builtin, str(builtin))
            ops[op] = ops.get(op, 0) + 1
        precision = _precision(model, graph)
    except (struct.error, IndexError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise broken from error
    return BenchComponent(
        name=name or path.stem,
        format="tflite",
        model=ModelFile(path=path, name=path.name, sha256=sha256_file(path), bytes=len(raw)),
        inputs=inputs,
        ops=ops,
        precision=precision,
    )


def _precision(model: Any, graph: Any) -> str:
    """Return the precision of the weights that take most bytes."""
    sizes: dict[int, int] = {}
    for index in range(graph.TensorsLength()):
        tensor = graph.Tensors(index)
        buffer = model.Buffers(tensor.Buffer())
        size = buffer.DataLength() or (buffer.Size() if buffer.Offset() > 1 else 0)
        sizes[tensor.Type()] = sizes.get(tensor.Type(), 0) + size
    largest = max(sizes, key=lambda kind: sizes[kind], default=0)
    return {1: "fp16", 9: "int8", 3: "int8", 17: "int4"}.get(largest, "fp32")
