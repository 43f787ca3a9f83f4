"""MACs of an exported ONNX graph, walked with the shapes that onnxruntime reports while it runs.

Static shape inference stops at shapes that exporters compute inside the graph, and at onnxruntime's own operators.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import onnx

from argus_edge.bundles import make_inputs
from argus_edge.exporters.plan import Arrays, ComponentPlan
from argus_edge.onnx_macs import GraphCost, macs_with_shapes


def graph_macs(path: Path, plan: ComponentPlan, lengths: dict[str, int]) -> GraphCost:
    """Run a file once at given lengths and count the MACs of the nodes that ran."""
    model = onnx.load(str(path), load_external_data=False)
    types = {entry.name: entry.type.tensor_type.elem_type for entry in model.graph.input}
    made = plan.finish(make_inputs(plan.inputs, lengths))
    inputs = {
        name: array.astype(onnx.helper.tensor_dtype_to_np_dtype(types[name]))
        for name, array in made.items()
        if name in types
    }
    return macs_with_shapes(model, run_shapes(path, model, inputs))


def run_shapes(path: Path, model: onnx.ModelProto, inputs: Arrays) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the values that the graph's nodes take and make, by name."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # Unoptimised, the nodes that run are the nodes of the file.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_profiling = True
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    with tempfile.TemporaryDirectory() as folder:
        options.profile_file_prefix = str(Path(folder) / "run")
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        session.run(None, inputs)
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    nodes = {node.name: node for node in model.graph.node if node.name}
    shapes: dict[str, tuple[int, ...]] = {name: array.shape for name, array in inputs.items()}
    for event in events:
        name = event.get("name", "")
        node = nodes.get(name.removesuffix("_kernel_time"))
        if node is None or not name.endswith("_kernel_time"):
            continue
        # Inputs too: some that come from nodes which onnxruntime drops (a Cast to the same type) appear nowhere else.
        for names, key in ((node.input, "input_type_shape"), (node.output, "output_type_shape")):
            listed, present = _shapes(event, key), [value for value in names if value]
            if len(listed) == len(present):
                shapes.update(zip(present, listed, strict=True))
    return shapes


def _shapes(event: dict[str, Any], key: str) -> list[tuple[int, ...]]:
    """Return the shapes of a profile entry: a list of one-entry mappings from type to shape."""
    return [tuple(shape) for entry in event["args"].get(key, []) for shape in entry.values()]
