"""MACs and traffic of ONNX graphs: published figures of known networks, hand counts of single operators."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from argus_edge import onnx_macs
from argus_edge.onnx_macs import file_cost, graph_cost

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def one_node(op, inputs, outputs, constants=None, domain="", **attributes):
    """A model of one node; inputs and outputs are name -> shape, constants name -> array."""
    graph = helper.make_graph(
        [helper.make_node(op, [*inputs, *(constants or {})], list(outputs), domain=domain, **attributes)],
        "one",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
        [onnx.numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    return helper.make_model(graph)


@pytest.mark.parametrize(
    ("name", "gmacs", "params_m"),
    [
        # Keras and torchvision model cards: ResNet-50 (v1) 4.09 GMAC, 25.6 M parameters; VGG-19 19.6, 143.7;
        # DenseNet-121 2.83, 8.0 (8.1 with the batch norms' statistics); SqueezeNet 1.1 0.35, 1.24.
        ("resnet50", 4.09, 25.6),
        ("vgg19", 19.6, 143.7),
        ("densenet121", 2.83, 8.1),
        ("squeezenet", 0.35, 1.24),
    ],
)
def test_known_networks(name, gmacs, params_m):
    cost = file_cost(str(LIGHT / f"light_{name}.onnx"))
    assert cost.macs / 1e9 == pytest.approx(gmacs, rel=0.01)
    assert cost.weight_bytes / 4e6 == pytest.approx(params_m, rel=0.01)
    assert cost.uncounted == {}


def zeros(*shape):
    return np.zeros(shape, np.float32)


@pytest.mark.parametrize(
    ("model", "macs"),
    [
        (one_node("MatMul", {"a": [2, 3, 4]}, {"y": [2, 3, 5]}, {"b": zeros(4, 5)}), 2 * 3 * 4 * 5),
        (one_node("Gemm", {"a": [4, 3]}, {"y": [3, 5]}, {"b": zeros(4, 5)}, transA=1), 3 * 4 * 5),
        (
            one_node("Conv", {"x": [1, 8, 10, 10]}, {"y": [1, 16, 8, 8]}, {"w": zeros(16, 4, 3, 3)}, group=2),
            16 * 64 * 36,
        ),
        (one_node("ConvTranspose", {"x": [1, 8, 4, 4]}, {"y": [1, 6, 5, 5]}, {"w": zeros(8, 6, 2, 2)}), 8 * 16 * 24),
        (
            one_node("Einsum", {"a": [2, 3, 4]}, {"y": [2, 3, 5]}, {"b": zeros(4, 5)}, equation="bik,kj->bij"),
            2 * 3 * 4 * 5,
        ),
        (
            one_node(
                "LSTM",
                {"x": [7, 2, 3]},
                {"y": [7, 1, 2, 5]},
                {"w": zeros(1, 20, 3), "r": zeros(1, 20, 5)},
                hidden_size=5,
            ),
            7 * 2 * 20 * 8,
        ),
        (
            one_node(
                "MultiHeadAttention",
                {"q": [2, 6, 8], "k": [2, 9, 8], "v": [2, 9, 8]},
                {"y": [2, 6, 8]},
                domain="com.microsoft",
                num_heads=2,
            ),
            2 * 6 * 9 * 16,
        ),
        (one_node("Relu", {"x": [2, 3]}, {"y": [2, 3]}), 0),
    ],
    ids=lambda value: value.graph.node[0].op_type if hasattr(value, "graph") else "",
)
def test_operators_by_hand(model, macs):
    cost = graph_cost(model)
    assert cost.macs == macs
    assert cost.uncounted == {}


def test_free_dimensions_are_bound():
    model = one_node("MatMul", {"a": ["batch", 4]}, {"y": ["batch", 5]}, {"b": zeros(4, 5)})
    assert graph_cost(model, {"a": [3, 4]}).macs == 60
    assert graph_cost(model).uncounted == {"MatMul": 1}


def test_what_cannot_be_counted_is_named():
    model = one_node("GroupQueryAttention", {"q": [1, 2, 8]}, {"y": [1, 2, 8]}, domain="com.microsoft", num_heads=2)
    assert graph_cost(model).uncounted == {"GroupQueryAttention": 1}


def test_an_embedding_table_is_read_by_the_row():
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "ids"], ["y"])],
        "lookup",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, [1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 16])],
        [onnx.numpy_helper.from_array(zeros(1000, 16), "table")],
    )
    cost = graph_cost(helper.make_model(graph))
    assert cost.weight_bytes == 4 * 16 * 4
    assert cost.io_bytes == 4 * 8 + 4 * 16 * 4


def test_an_if_counts_for_its_dearer_branch():
    def branch(name, width):
        weights = onnx.numpy_helper.from_array(zeros(4, width), f"w{width}")
        nodes = [helper.make_node("MatMul", ["x", f"w{width}"], [name])]
        return helper.make_graph(
            nodes, name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, width])], [weights]
        )

    graph = helper.make_graph(
        [helper.make_node("If", ["c"], ["y"], then_branch=branch("t", 3), else_branch=branch("e", 7))],
        "if",
        [
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, None])],
    )
    assert graph_cost(helper.make_model(graph)).macs == 2 * 4 * 7


@pytest.mark.parametrize(("how", "folded"), [({}, True), ({"fold": False}, False), ({"large": True}, False)])
def test_a_large_model_is_not_loaded_to_be_counted(tmp_path, monkeypatch, how, folded):
    """A decoder's graph is small, its weights lie beside it: a bench of 3 billion parameters loaded them all, twice."""
    asked = []
    monkeypatch.setattr(onnx_macs, "_folded", asked.append)
    if how.pop("large", False):
        monkeypatch.setattr(onnx_macs, "MAX_FOLDED_BYTES", 100_000)
    path = str(tmp_path / "m.onnx")
    model = one_node("MatMul", {"a": None}, {"y": None}, {"b": zeros(400, 500)})
    onnx.save_model(model, path, save_as_external_data=True, location="m.onnx.data", size_threshold=0)
    assert Path(path).stat().st_size < 10_000
    assert file_cost(path, **how).uncounted == {"MatMul": 1}
    assert asked == [path] * folded
