"""Multiply-accumulates and memory traffic of an ONNX graph, by a walk over its nodes."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, shape_inference

Shape = tuple[int, ...]
Shapes = Mapping[str, Shape]


@dataclass
class GraphCost:
    """What one call of a graph costs.

    Attributes
    ----------
    macs
        Multiply-accumulates (one MAC = two FLOPs) of matrix products, convolutions, attention and recurrent cells.
        Element-wise operators are not counted, as is the field's custom.
    weight_bytes
        Bytes of the constants that one call reads: whole tensors, and of an embedding table only the rows looked up.
    io_bytes
        Bytes of the graph's inputs and outputs.
    by_op
        Operator type -> MACs.
    uncounted
        Operator type -> nodes whose MACs could not be counted, because a shape is unknown or the operator is.
    """

    macs: int = 0
    weight_bytes: int = 0
    io_bytes: int = 0
    by_op: dict[str, int] = field(default_factory=dict)
    uncounted: dict[str, int] = field(default_factory=dict)

    def add(self, op: str, macs: int) -> None:
        """Count the MACs of one node."""
        self.macs += macs
        self.by_op[op] = self.by_op.get(op, 0) + macs


def attribute(node: NodeProto, name: str, default: int = 0) -> int:
    """Return an integer attribute of a node."""
    for item in node.attribute:
        if item.name == name:
            return int(item.i)
    return default


def _matmul(node: NodeProto, shapes: Shapes, first: int = 0) -> int:
    inner = shapes[node.input[first]]
    return math.prod(shapes[node.output[0]]) * inner[-2 if attribute(node, "transA") and len(inner) > 1 else -1]


def _matmul_of_bits(node: NodeProto, shapes: Shapes) -> int:
    return math.prod(shapes[node.output[0]]) * attribute(node, "K")


def _conv(weight: int) -> Callable[[NodeProto, Shapes], int]:
    # Weights are (out, in / groups, kernel…): each output element takes in / groups * kernel products.
    return lambda node, shapes: math.prod(shapes[node.output[0]]) * math.prod(shapes[node.input[weight]][1:])


def _conv_transpose(node: NodeProto, shapes: Shapes) -> int:
    # Weights are (in, out / groups, kernel…): each input element takes out / groups * kernel products.
    return math.prod(shapes[node.input[0]]) * math.prod(shapes[node.input[1]][1:])


def _einsum(node: NodeProto, shapes: Shapes) -> int:
    equation = next(item.s.decode() for item in node.attribute if item.name == "equation").replace(" ", "")
    operands = equation.split("->")[0].split(",")
    if "." in equation or len(operands) != 2:
        raise KeyError(equation)
    lengths: dict[str, int] = {}
    for labels, name in zip(operands, node.input, strict=True):
        lengths.update(zip(labels, shapes[name], strict=True))
    return math.prod(lengths.values())


def _attention_microsoft(node: NodeProto, shapes: Shapes) -> int:
    batch, length, width = shapes[node.input[0]]
    inner = shapes[node.input[1]][1] // 3
    return batch * length * width * 3 * inner + 2 * batch * length * length * inner


def _attention_of_three(node: NodeProto, shapes: Shapes) -> int:
    """ONNX's Attention and Microsoft's MultiHeadAttention: queries, keys and values, 3-D or with heads apart."""
    query, key, value = (shapes[node.input[i]] for i in range(3))
    if len(query) == 4:
        batch, heads, length, width = query
        return batch * heads * length * key[2] * (width + value[3])
    batch, length, width = query
    heads = attribute(node, "q_num_heads") or attribute(node, "num_heads")
    shared = attribute(node, "kv_num_heads", heads) or heads
    return batch * length * key[1] * (width + value[2] * heads // shared)


def _recurrent(gates: int) -> Callable[[NodeProto, Shapes], int]:
    def count(node: NodeProto, shapes: Shapes) -> int:
        length, batch, _ = shapes[node.input[0]]
        directions, rows, width = shapes[node.input[1]]
        hidden = rows // gates
        return length * batch * directions * gates * hidden * (width + hidden)

    return count


COUNTERS: dict[str, Callable[[NodeProto, Shapes], int]] = {
    "MatMul": _matmul,
    "MatMulInteger": _matmul,
    "FusedMatMul": _matmul,
    "DynamicQuantizeMatMul": _matmul,
    "MatMulIntegerToFloat": _matmul,
    "QLinearMatMul": _matmul,
    "QGemm": _matmul,
    "Gemm": _matmul,
    "MatMulNBits": _matmul_of_bits,
    "Conv": _conv(1),
    "ConvInteger": _conv(1),
    "FusedConv": _conv(1),
    "QLinearConv": _conv(3),
    "ConvTranspose": _conv_transpose,
    "Einsum": _einsum,
    "com.microsoft::Attention": _attention_microsoft,
    "Attention": _attention_of_three,
    "MultiHeadAttention": _attention_of_three,
    "RNN": _recurrent(1),
    "GRU": _recurrent(3),
    "LSTM": _recurrent(4),
}

# Operators that do arithmetic which this walk cannot count: named, so that a count is never silently too low.
KNOWN_UNCOUNTED = {"GroupQueryAttention", "Loop", "Scan", "DeformConv", "QAttention", "PackedAttention", "MoE", "QMoE"}


def with_shapes(model: ModelProto, shapes: Mapping[str, Sequence[int]]) -> ModelProto:
    """Return a copy of a model whose inputs have the given lengths and whose inner shapes are inferred.

    The model needs no external data in memory. What cannot be inferred stays unknown.
    """
    bound = ModelProto()
    bound.CopyFrom(model)
    for value in bound.graph.input:
        if value.name in shapes and value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
            for length in shapes[value.name]:
                value.type.tensor_type.shape.dim.add().dim_value = int(length)
    # Declared lengths of outputs and inner values may be symbolic: let the inference find them anew.
    del bound.graph.value_info[:]
    for value in bound.graph.output:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.ClearField("dim_param")
    try:
        return shape_inference.infer_shapes(bound, data_prop=True)
    except (shape_inference.InferenceError, ValueError):
        return bound


def _known(model: ModelProto) -> tuple[dict[str, Shape], dict[str, int]]:
    """Return the shapes and element types of every value of the main graph that is known."""
    shapes: dict[str, Shape] = {}
    types: dict[str, int] = {}
    for value in [*model.graph.input, *model.graph.value_info, *model.graph.output]:
        tensor = value.type.tensor_type
        types[value.name] = tensor.elem_type
        if tensor.HasField("shape") and all(dim.HasField("dim_value") for dim in tensor.shape.dim):
            shapes[value.name] = tuple(dim.dim_value for dim in tensor.shape.dim)
    for tensor in model.graph.initializer:
        shapes[tensor.name] = tuple(tensor.dims)
        types[tensor.name] = tensor.data_type
    for node in model.graph.node:
        for item in node.attribute:
            if node.op_type == "Constant" and item.name == "value":
                shapes[node.output[0]] = tuple(item.t.dims)
                types[node.output[0]] = item.t.data_type
    return shapes, types


def element_bytes(data_type: int) -> float:
    """Return the bytes of one element of an ONNX data type; half a byte for 4-bit types, 0 for strings."""
    if data_type in (TensorProto.STRING, TensorProto.UNDEFINED):
        return 0.0
    if data_type in {getattr(TensorProto, name, -1) for name in ("INT4", "UINT4", "FLOAT4E2M1")}:
        return 0.5
    return float(helper.tensor_dtype_to_np_dtype(data_type).itemsize)


def constant_values(graph: GraphProto) -> set[str]:
    """Return the names of values that do not depend on the graph's inputs: a runtime folds them into weights."""
    constants = {tensor.name for tensor in graph.initializer} | {s.values.name for s in graph.sparse_initializer}
    for node in graph.node:
        random = node.op_type.startswith(("Random", "Bernoulli", "Multinomial"))
        if not random and all(name in constants for name in node.input if name):
            constants.update(node.output)
    return constants


def graph_cost(model: ModelProto, shapes: Mapping[str, Sequence[int]] | None = None) -> GraphCost:
    """Count what one call of a model costs.

    Parameters
    ----------
    model
        May be loaded without its external data.
    shapes
        Input name -> lengths, for inputs with free dimensions.

    Returns
    -------
    GraphCost
        Nodes in the branches of an ``If`` count for the dearer branch; bodies of ``Loop`` and ``Scan`` are named as
        uncounted.
    """
    inferred = with_shapes(model, shapes or {})
    known, types = _known(inferred)
    cost = GraphCost()
    constants = constant_values(inferred.graph)
    _count_nodes(inferred.graph, known, cost, constants)

    weights: dict[str, float] = {}
    for node in inferred.graph.node:
        if all(name in constants for name in node.input if name):
            continue
        for position, name in enumerate(node.input):
            if name in constants and name in known:
                looked_up = node.op_type in ("Gather", "GatherElements", "GatherND") and position == 0
                read = known.get(node.output[0], known[name]) if looked_up else known[name]
                weights[name] = max(weights.get(name, 0.0), math.prod(read) * element_bytes(types[name]))
    cost.weight_bytes = round(sum(weights.values()))
    own = {tensor.name for tensor in inferred.graph.initializer}
    for value in [*inferred.graph.input, *inferred.graph.output]:
        if value.name in known and value.name not in own:
            cost.io_bytes += round(math.prod(known[value.name]) * element_bytes(types[value.name]))
    return cost


def macs_with_shapes(model: ModelProto, shapes: Shapes) -> GraphCost:
    """Count a model's MACs from the shapes of its values, e.g. as a runtime reported them; only MACs are filled in."""
    cost = GraphCost()
    _count_nodes(model.graph, {**_known(model)[0], **shapes}, cost, constant_values(model.graph))
    return cost


def _count_nodes(graph: GraphProto, known: Shapes, cost: GraphCost, constants: set[str]) -> None:
    for node in graph.node:
        if node.output and all(name in constants for name in node.output if name):
            continue  # folded when the model is loaded
        name = node.op_type
        if node.op_type == "If":
            branches = [GraphCost() for item in node.attribute if item.HasField("g")]
            for branch, item in zip(branches, (item for item in node.attribute if item.HasField("g")), strict=True):
                inner = ModelProto(graph=item.g)
                _count_nodes(item.g, {**known, **_known(inner)[0]}, branch, constants)
            if branches:
                dearest = max(branches, key=lambda branch: branch.macs)
                for op, macs in dearest.by_op.items():
                    cost.add(op, macs)
                for op, nodes in dearest.uncounted.items():
                    cost.uncounted[op] = cost.uncounted.get(op, 0) + nodes
            continue
        counter = COUNTERS.get(f"{node.domain}::{name}") or COUNTERS.get(name)
        if counter is None and name not in KNOWN_UNCOUNTED:
            continue
        try:
            counted = counter(node, known) if counter else None
        except (KeyError, ValueError, IndexError):
            counted = None
        if counted is None:
            cost.uncounted[name] = cost.uncounted.get(name, 0) + 1
        else:
            cost.add(name, counted)


# Folding loads the whole model: beyond this a count is not worth the memory.
MAX_FOLDED_BYTES = 1 << 30


def file_cost(path: str, shapes: Mapping[str, Sequence[int]] | None = None, *, fold: bool = True) -> GraphCost:
    """Count what one call of a model file costs; its external data is not read.

    Where lengths are computed in the graph (padding that an exporter left as arithmetic) and inference cannot follow,
    ONNX Runtime folds the constants first, and the folded graph is counted; not where ``fold`` is False, nor for
    files above a GiB, external data included: there it would load and rewrite all of it.
    """
    model = onnx.load_model(path, load_external_data=False)
    cost = graph_cost(model, shapes)
    if not fold or not cost.uncounted or os.path.getsize(path) + _external_bytes(model) > MAX_FOLDED_BYTES:
        return cost
    folded = _folded(path)
    recount = graph_cost(folded, shapes) if folded is not None else cost
    return recount if len(recount.uncounted) < len(cost.uncounted) else cost


def _external_bytes(model: ModelProto) -> int:
    """Return the bytes that a model's constants take in files beside it."""
    lengths = (
        entry.value
        for tensor in model.graph.initializer
        if tensor.data_location == TensorProto.EXTERNAL
        for entry in tensor.external_data
        if entry.key == "length"
    )
    return sum(int(length) for length in lengths if length.isdecimal())


def _folded(path: str) -> ModelProto | None:
    """Return a model with its constants folded by ONNX Runtime's basic optimisations; None where it cannot load it."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.log_severity_level = 4
    with tempfile.TemporaryDirectory() as folder:
        options.optimized_model_filepath = os.path.join(folder, "folded.onnx")
        try:
            onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            return onnx.load_model(options.optimized_model_filepath, load_external_data=False)
        except Exception:
            return None
