"""Which product of an ONNX graph int8 leaves alone: the one that projects what the first attention gives."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

pytest.importorskip("torch", reason="needs the export extra")
pytest.importorskip("onnxruntime", reason="needs the export extra")

from argus_edge.exporters.onnx_precision import first_attention_output, to_dynamic_int8

WIDTH = 16


def graph(path=None, attention=True):
    """x W1, then twice: values mixed by a product of activations (or not), moved, projected."""
    rng = np.random.default_rng(0)
    names = ["w1", "w2", "w3"]
    weights = [numpy_helper.from_array(rng.standard_normal((WIDTH, WIDTH)).astype(np.float32), name) for name in names]
    nodes = [helper.make_node("MatMul", ["x", "w1"], ["v0"], name="values")]
    for layer in range(2):
        mixed = helper.make_node("MatMul", ["weights", f"v{layer}"], [f"mixed{layer}"], name=f"mix{layer}")
        plain = helper.make_node("Relu", [f"v{layer}"], [f"mixed{layer}"], name=f"relu{layer}")
        nodes += [
            mixed if attention else plain,
            helper.make_node("Transpose", [f"mixed{layer}"], [f"turned{layer}"], name=f"turn{layer}", perm=[0, 1]),
            helper.make_node("MatMul", [f"turned{layer}", names[layer + 1]], [f"v{layer + 1}"], name=f"project{layer}"),
        ]
    model = helper.make_model(
        helper.make_graph(
            nodes,
            "g",
            [
                helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", WIDTH]),
                helper.make_tensor_value_info("weights", TensorProto.FLOAT, ["n", "n"]),
            ],
            [helper.make_tensor_value_info("v2", TensorProto.FLOAT, ["n", WIDTH])],
            weights,
        ),
        opset_imports=[helper.make_opsetid("", 15)],
        ir_version=8,
    )
    if path is not None:
        onnx.save(model, str(path))
    return model


def test_the_first_projection_after_an_attention_is_found():
    assert first_attention_output(graph()) == ["project0"]
    assert first_attention_output(graph(attention=False)) == []


def test_it_stays_in_fp32_and_every_other_product_with_a_constant_does_not(tmp_path):
    path = tmp_path / "m.onnx"
    graph(path)
    to_dynamic_int8(path)
    model = onnx.load(str(path))
    kept = {tensor.name for tensor in model.graph.initializer if tensor.data_type == TensorProto.FLOAT and tensor.dims}
    assert "w2" in kept
    assert not {"w1", "w3"} & kept
    assert sum(node.op_type == "MatMulInteger" for node in model.graph.node) == 2
