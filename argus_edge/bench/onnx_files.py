"""Reading an ONNX file of unknown origin: is it one, is it whole, is its external data there and inside its folder."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import onnx
from google.protobuf.message import DecodeError
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from argus_edge.artifacts import sha256_file
from argus_edge.bench.model_types import BenchComponent, InputSpec, ModelFile
from argus_edge.errors import InputError
from argus_edge.onnx_macs import element_bytes

AGAIN = "copy or export the model again"
# protobuf reads no message beyond this; larger weights travel as external data.
MAX_PROTO_BYTES = (1 << 31) - 1

# Operators that pass token ids on unchanged, on the way from an input to the table that they index.
PASSING = {"Cast", "Identity", "Unsqueeze", "Squeeze", "Reshape", "Slice", "Concat", "Expand", "Flatten", "Transpose"}


def read_onnx(path: Path) -> ModelProto:
    """Read an ONNX file without its external data.

    Raises
    ------
    InputError
        Not ONNX, or cut short.
    """
    if path.stat().st_size > MAX_PROTO_BYTES:
        raise InputError(
            "An ONNX file above 2 GiB cannot be read.",
            where=str(path),
            next_step="save the weights as external data (onnx.save_model(…, save_as_external_data=True))",
        )
    try:
        model = onnx.load_model(str(path), format="protobuf", load_external_data=False)
    except (DecodeError, ValueError) as error:
        raise InputError("Not an ONNX model, or a truncated one.", where=str(path), next_step=AGAIN) from error
    # protobuf takes many byte strings for a message; a model has these.
    if not model.ir_version or not model.graph.node or not model.graph.output or not model.opset_import:
        raise InputError("Not an ONNX model, or a truncated one.", where=str(path), next_step=AGAIN)
    if not _is_sound(model.graph):
        raise InputError("The ONNX model is damaged: a name or a type in it is none.", where=str(path), next_step=AGAIN)
    for tensor in tensors(model.graph):
        _check_inline(tensor, path)
    return model


def _is_sound(graph: GraphProto) -> bool:
    """Tell whether names are text (protobuf gives bytes where they are not UTF-8) and element types are known ones."""
    values = [*graph.input, *graph.output, *graph.value_info]
    words = [value.name for value in values]
    words += [dim.dim_param for value in values for dim in value.type.tensor_type.shape.dim]
    kinds = [value.type.tensor_type.elem_type for value in values]
    for node in graph.node:
        words += [node.op_type, node.domain, *node.input, *node.output, *(item.name for item in node.attribute)]
    for tensor in tensors(graph):
        words += [tensor.name, *(text for entry in tensor.external_data for text in (entry.key, entry.value))]
        kinds.append(tensor.data_type)
    known = set(TensorProto.DataType.values())
    inner = (found for node in graph.node for found in subgraphs(node))
    return (
        all(isinstance(word, str) for word in words)
        and all(kind in known for kind in kinds)
        and all(_is_sound(found) for found in inner)
    )


def subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    """Yield the graphs among a node's attributes."""
    for item in node.attribute:
        if item.HasField("g"):
            yield item.g
        yield from item.graphs


def tensors(graph: GraphProto) -> Iterator[TensorProto]:
    """Yield every tensor stored in a graph and in the graphs within it."""
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield sparse.values
        yield sparse.indices
    for node in graph.node:
        for item in node.attribute:
            if item.HasField("t"):
                yield item.t
            yield from item.tensors
        for inner in subgraphs(node):
            yield from tensors(inner)


def operators(graph: GraphProto) -> dict[str, int]:
    """Return operator type (``domain::Name`` outside the default domain) -> uses, inner graphs included."""
    counts: dict[str, int] = {}
    for node in graph.node:
        name = node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}::{node.op_type}"
        counts[name] = counts.get(name, 0) + 1
        for inner in subgraphs(node):
            for op, uses in operators(inner).items():
                counts[op] = counts.get(op, 0) + uses
    return counts


def _is_external(tensor: TensorProto) -> bool:
    return tensor.data_location == TensorProto.EXTERNAL


def _check_inline(tensor: TensorProto, path: Path) -> None:
    """Raise where a tensor's raw bytes are fewer than its shape says."""
    if _is_external(tensor) or not tensor.raw_data:
        return
    needed = math.ceil(math.prod(tensor.dims) * element_bytes(tensor.data_type))
    if len(tensor.raw_data) != needed:
        raise InputError(
            f"The tensor {tensor.name[:100]!r} holds {len(tensor.raw_data)} bytes where its shape needs {needed}.",
            where=str(path),
            next_step=AGAIN,
        )


def external_files(model: ModelProto, path: Path) -> list[ModelFile]:
    """Return the external-data files of a model, each checked to lie whole within the model's folder.

    Raises
    ------
    InputError
        A location that is absolute, leads out of the folder (also by a link), is missing, no plain file or too short.
    """
    needed: dict[str, int] = {}
    for tensor in tensors(model.graph):
        if not _is_external(tensor):
            continue
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        try:
            offset = int(entries.get("offset", 0))
            size = int(entries.get("length", math.ceil(math.prod(tensor.dims) * element_bytes(tensor.data_type))))
        except ValueError as error:
            raise InputError(
                f"External data of {tensor.name[:100]!r} has no usable offset.", where=str(path)
            ) from error
        needed[location] = max(needed.get(location, 0), offset + size)
    return [_external_file(path, location, size) for location, size in sorted(needed.items())]


def _external_file(path: Path, location: str, size: int) -> ModelFile:
    folder = path.parent.resolve()
    shown = location[:200]
    name = PurePosixPath(location)
    outside = InputError(
        f"The external data {shown!r} lies outside the model's folder.",
        where=str(path),
        next_step="put the data file beside the model, as a file and not a link, and save the model again",
    )
    if not location or "\\" in location or "\0" in location or name.is_absolute() or ".." in name.parts:
        raise outside
    target = folder / location
    if not os.path.lexists(target):
        raise InputError(
            f"The external data {shown!r} is missing.", where=str(path), next_step=f"copy {shown} to {path.parent}"
        )
    try:
        resolved = target.resolve(strict=True)
    except OSError as error:
        raise InputError(f"The external data {shown!r} is a dead link.", where=str(path)) from error
    if not resolved.is_relative_to(folder):
        raise outside
    if not resolved.is_file():
        raise InputError(f"The external data {shown!r} is not a file.", where=str(path))
    found = resolved.stat().st_size
    if found < size:
        raise InputError(
            f"The external data {shown!r} has {found} bytes where the model needs {size}.",
            where=str(path),
            next_step=f"copy {shown} again",
        )
    return ModelFile(path=resolved, name=location, sha256=sha256_file(resolved), bytes=found)


def _table_rows(graph: GraphProto, name: str) -> int | None:
    """Return the fewest rows of the tables that an input indexes, or None where it indexes none."""
    rows = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    carried = {name}
    found: list[int] = []
    for node in graph.node:
        if node.op_type in PASSING and node.input and node.input[0] in carried:
            carried.update(node.output)
        elif node.op_type == "Gather" and len(node.input) == 2 and node.input[1] in carried and node.input[0] in rows:
            axis = next((item.i for item in node.attribute if item.name == "axis"), 0)
            found.append(rows[node.input[0]][axis])
    return min(found, default=None)


def input_specs(model: ModelProto, path: Path) -> tuple[InputSpec, ...]:
    """Return the inputs that a caller must give, in the graph's order.

    Raises
    ------
    InputError
        An input that is no dense tensor of numbers.
    """
    own = {tensor.name for tensor in model.graph.initializer}
    specs = []
    for value in model.graph.input:
        if value.name in own:
            continue
        tensor = value.type.tensor_type
        if not value.type.HasField("tensor_type") or tensor.elem_type in (TensorProto.STRING, TensorProto.UNDEFINED):
            raise InputError(
                f"The input {value.name[:100]!r} is not a tensor of numbers.",
                where=str(path),
                next_step="export the model without its text or sequence preprocessing",
            )
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
        shape = tuple(
            dim.dim_value if dim.HasField("dim_value") and dim.dim_value > 0 else dim.dim_param or "?"
            for dim in tensor.shape.dim
        )
        integer = dtype.startswith(("int", "uint"))
        specs.append(InputSpec(value.name, dtype, shape, _table_rows(model.graph, value.name) if integer else None))
    return tuple(specs)


def onnx_component(path: Path, name: str | None = None) -> BenchComponent:
    """Read an ONNX file as a component to bench."""
    model = read_onnx(path)
    external = external_files(model, path)
    ops = operators(model.graph)
    return BenchComponent(
        name=name or path.stem,
        format="onnx",
        model=ModelFile(path=path, name=path.name, sha256=sha256_file(path), bytes=path.stat().st_size),
        external=tuple(external),
        inputs=input_specs(model, path),
        opset=next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), None),
        ir_version=model.ir_version,
        ops=ops,
        precision=onnx_precision(model, ops),
    )


def onnx_precision(model: ModelProto, ops: dict[str, int]) -> str:
    """Return the precision of a graph's products: ``int4``, ``int8``, ``fp16``, ``bf16`` or ``fp32``."""
    names = {op.rpartition("::")[2] for op in ops}
    if "MatMulNBits" in names:
        return "int4"
    quantised = {"QLinearConv", "QLinearMatMul", "QGemm", "MatMulInteger", "ConvInteger", "DynamicQuantizeMatMul"}
    if names & quantised or "DequantizeLinear" in names:
        return "int8"
    sizes: dict[int, int] = {}
    for tensor in model.graph.initializer:
        sizes[tensor.data_type] = sizes.get(tensor.data_type, 0) + math.prod(tensor.dims)
    largest = max(sizes, key=lambda kind: sizes[kind], default=TensorProto.FLOAT)
    return {TensorProto.FLOAT16: "fp16", TensorProto.BFLOAT16: "bf16"}.get(largest, "fp32")
