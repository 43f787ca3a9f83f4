"""What an ONNX file says about itself: operators, opsets, IR version, inputs, outputs, bytes of constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import onnx

from argus_edge.onnx_macs import element_bytes


@dataclass(frozen=True)
class OnnxFacts:
    """Facts of one graph; ``inputs`` and ``outputs`` map a name to dtype and shape (a free axis is a string)."""

    weight_bytes: int
    ops: dict[str, int]
    opset_imports: dict[str, int]
    ir_version: int
    inputs: dict[str, tuple[str, list[int | str]]] = field(default_factory=dict)
    outputs: dict[str, tuple[str, list[int | str]]] = field(default_factory=dict)

    @property
    def opset(self) -> int | None:
        """Version of the default domain."""
        return self.opset_imports.get("")


def graph_facts(model: onnx.ModelProto) -> OnnxFacts:
    """Return an ONNX model's facts; its external data need not be loaded."""
    ops: Counter[str] = Counter()
    size = 0
    for graph in subgraphs(model.graph):
        ops.update(f"{node.domain}::{node.op_type}" if node.domain else node.op_type for node in graph.node)
        size += sum(tensor_bytes(tensor) for tensor in graph.initializer)
        size += sum(
            tensor_bytes(attribute.t)
            for node in graph.node
            if node.op_type == "Constant"
            for attribute in node.attribute
            if attribute.name == "value"
        )
    constants = {tensor.name for tensor in model.graph.initializer}
    return OnnxFacts(
        weight_bytes=size,
        ops=dict(ops.most_common()),
        # ONNX allows "ai.onnx" as another spelling of the default domain.
        opset_imports={("" if e.domain == "ai.onnx" else e.domain): e.version for e in model.opset_import},
        ir_version=model.ir_version,
        inputs={entry.name: _value(entry) for entry in model.graph.input if entry.name not in constants},
        outputs={entry.name: _value(entry) for entry in model.graph.output},
    )


def _value(entry: onnx.ValueInfoProto) -> tuple[str, list[int | str]]:
    tensor = entry.type.tensor_type
    if tensor.elem_type == onnx.TensorProto.UNDEFINED:
        return "unknown", []
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
    shape: list[int | str] = [
        dim.dim_value if dim.HasField("dim_value") else (dim.dim_param or "?") for dim in tensor.shape.dim
    ]
    return dtype, shape


def subgraphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield a graph and every graph nested in its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from subgraphs(attribute.g)


def tensor_bytes(tensor: onnx.TensorProto) -> int:
    """Return the size of a tensor's values in bytes."""
    if tensor.data_type == onnx.TensorProto.STRING:
        return sum(len(value) for value in tensor.string_data)
    count = 1
    for axis in tensor.dims:
        count *= axis
    # Two 4-bit values share a byte.
    return -(-round(count * element_bytes(tensor.data_type) * 2) // 2)
