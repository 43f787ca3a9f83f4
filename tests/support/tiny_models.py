"""Models small enough for an emulated board: a few hundred bytes, made on the spot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


def tiny_onnx(path: Path, *, opset: int = 13, width: int = 8) -> Path:
    """Write an ONNX model: Relu(x W), x of shape (1, width), of an opset and IR that ONNX Runtime 1.10 reads."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weights = numpy_helper.from_array(np.eye(width, dtype=np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])],
        "tiny",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, width])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, width])],
        [weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = min(8, model.ir_version)
    onnx.save(model, str(path))
    return path


def tiny_tflite(path: Path, *, width: int = 8) -> Path:
    """Write a TFLite model: one RELU over float32 of shape (1, width)."""
    import flatbuffers
    import tflite

    builder = flatbuffers.Builder(1024)

    def vector(start: Callable[[Any, int], Any], values: Sequence[int], *, offsets: bool = False) -> int:
        start(builder, len(values))
        for value in reversed(values):
            (builder.PrependUOffsetTRelative if offsets else builder.PrependInt32)(value)
        return int(builder.EndVector())

    def table(name: str, **fields: int) -> int:
        getattr(tflite, name + "Start")(builder)
        for field, value in fields.items():
            getattr(tflite, name + "Add" + field)(builder, value)
        return int(getattr(tflite, name + "End")(builder))

    tensors = []
    for name in ("x", "y"):
        text, shape = builder.CreateString(name), vector(tflite.TensorStartShapeVector, [1, width])
        tensors.append(table("Tensor", Shape=shape, Type=tflite.TensorType.FLOAT32, Buffer=0, Name=text))
    inputs, outputs = vector(tflite.OperatorStartInputsVector, [0]), vector(tflite.OperatorStartOutputsVector, [1])
    relu = table("Operator", OpcodeIndex=0, Inputs=inputs, Outputs=outputs)
    graph = table(
        "SubGraph",
        Tensors=vector(tflite.SubGraphStartTensorsVector, tensors, offsets=True),
        Inputs=vector(tflite.SubGraphStartInputsVector, [0]),
        Outputs=vector(tflite.SubGraphStartOutputsVector, [1]),
        Operators=vector(tflite.SubGraphStartOperatorsVector, [relu], offsets=True),
    )
    kind = tflite.BuiltinOperator.RELU
    code = table("OperatorCode", DeprecatedBuiltinCode=kind, BuiltinCode=kind, Version=1)
    model = table(
        "Model",
        Version=3,
        OperatorCodes=vector(tflite.ModelStartOperatorCodesVector, [code], offsets=True),
        Subgraphs=vector(tflite.ModelStartSubgraphsVector, [graph], offsets=True),
        Buffers=vector(tflite.ModelStartBuffersVector, [table("Buffer")], offsets=True),
    )
    builder.Finish(model, file_identifier=b"TFL3")
    path.write_bytes(bytes(builder.Output()))
    return path
