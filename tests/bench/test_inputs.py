"""Inputs: free dimensions are never guessed, ids stay in range, masks are on, the user's arrays are checked."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from argus_edge.bench.inputs import Shapes, check_shapes_are_used, parse_shapes, prepare_inputs, read_input_file
from argus_edge.bench.model_types import BenchComponent, InputSpec, ResolvedModel
from argus_edge.bench.models import resolve_model
from argus_edge.errors import InputError, UsageError


def component(*inputs, name="m"):
    return BenchComponent(name=name, format="onnx", model=None, inputs=tuple(inputs))


IMAGE = InputSpec("image", "float32", ("batch", 3, "height", "width"))
IDS = InputSpec("input_ids", "int64", ("batch", 7), rows=50)


def test_free_dimensions_that_nobody_bound_are_listed():
    with pytest.raises(UsageError) as caught:
        prepare_inputs(component(IMAGE, IDS))
    assert caught.value.exit_code == 2
    text = str(caught.value)
    assert "image [batch, 3, height, width]" in text
    assert "input_ids [batch, 7]" in text
    assert "--shape batch=N --shape height=N --shape width=N" in text


def test_a_free_dimension_without_a_name():
    with pytest.raises(UsageError, match="--shape x=Nx4"):
        prepare_inputs(component(InputSpec("x", "float32", ("?", 4))))


@pytest.mark.parametrize(
    ("given", "batch"),
    [
        (["image=2x3x8x9", "input_ids=2x7"], None),
        (["batch=2", "height=8", "width=9"], None),
        (["height=8", "width=9"], 2),
        (["image=2x3x8x9", "batch=2"], None),
    ],
)
def test_ways_to_bind(given, batch):
    prepared = prepare_inputs(component(IMAGE, IDS), shapes=parse_shapes(given), batch=batch)
    assert prepared.shapes == {"image": [2, 3, 8, 9], "input_ids": [2, 7]}


def test_inputs_are_seeded():
    first, again, other = (
        prepare_inputs(component(InputSpec("x", "float32", (4, 5))), seed=seed).arrays["x"] for seed in (1, 1, 2)
    )
    assert (first == again).all()
    assert (first != other).any()


def test_token_ids_stay_in_range_and_masks_are_ones():
    prepared = prepare_inputs(
        component(
            InputSpec("input_ids", "int64", (4, 500), rows=10),
            InputSpec("attention_mask", "int64", (4, 500)),
            InputSpec("token_type_ids", "int64", (4, 500), rows=2),
            InputSpec("position_ids", "int64", (4, 500), rows=512),
            InputSpec("pixels", "uint8", (1, 8, 8, 3)),
            InputSpec("flag", "bool", (1,)),
            InputSpec("bool_masked_pos", "float32", (2,)),
        )
    )
    arrays = prepared.arrays
    assert arrays["input_ids"].min() >= 1
    assert arrays["input_ids"].max() <= 9
    assert len(np.unique(arrays["input_ids"])) == 9
    assert (arrays["attention_mask"] == 1).all()
    assert (arrays["token_type_ids"] == 0).all()
    assert (arrays["position_ids"] == np.arange(500)).all()
    assert arrays["pixels"].max() > 200
    assert arrays["flag"].all()
    assert (arrays["bool_masked_pos"] == 1).all()
    assert arrays["input_ids"].dtype == np.int64
    assert prepared.notes == ()


def test_integers_of_unknown_range_are_never_random():
    prepared = prepare_inputs(component(InputSpec("tokens", "int32", (1, 8))))
    assert (prepared.arrays["tokens"] == 1).all()
    assert "not known" in prepared.notes[0]


def test_the_range_of_ids_is_read_from_the_graph(tmp_path):
    table = onnx.numpy_helper.from_array(np.zeros((37, 4), np.float32), "table")
    graph = helper.make_graph(
        [
            helper.make_node("Cast", ["ids"], ["wide"], to=TensorProto.INT64),
            helper.make_node("Gather", ["table", "wide"], ["y"]),
        ],
        "embed",
        [helper.make_tensor_value_info("ids", TensorProto.INT32, [1, 200])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 200, 4])],
        [table],
    )
    path = tmp_path / "m.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8).SerializeToString()
    )
    (found,) = resolve_model(str(path)).components
    assert found.inputs[0].rows == 37
    assert prepare_inputs(found).arrays["ids"].max() == 36


@pytest.mark.parametrize(
    "text", ["x", "x=", "=1x2", "x=1x", "x=axb", "x=1x-2", "x=1x2:complex", "x=" + "1x" * 16 + "1"]
)
def test_shapes_that_cannot_be_read(text):
    with pytest.raises(UsageError):
        parse_shapes([text])


def test_a_shape_for_something_the_model_does_not_have():
    model = ResolvedModel("m", None, (component(IMAGE),))
    with pytest.raises(UsageError, match="imgae"):
        check_shapes_are_used(model, parse_shapes(["imgae=1x3x8x8"]))
    check_shapes_are_used(model, parse_shapes(["image=1x3x8x8", "batch=1"]))


def test_fixed_lengths_are_not_overridden():
    with pytest.raises(UsageError, match="asks for 1x4x8x8"):
        prepare_inputs(component(IMAGE), shapes=parse_shapes(["image=1x4x8x8"]))
    with pytest.raises(UsageError, match="--batch asks for 4"):
        prepare_inputs(component(InputSpec("x", "float32", (1, 3))), batch=4)


def test_a_batch_leaves_fixed_inputs_beside_a_free_one_alone():
    scale = InputSpec("scale", "float32", (1,))
    prepared = prepare_inputs(component(InputSpec("x", "float32", ("n", 4)), scale), batch=3)
    assert prepared.shapes == {"x": [3, 4], "scale": [1]}


def test_torchscript_needs_its_arguments():
    script = BenchComponent(name="m", format="torchscript", model=None, inputs=None)
    with pytest.raises(UsageError, match="in order"):
        prepare_inputs(script)
    arrays = prepare_inputs(script, shapes=parse_shapes(["ids=1x4:int64", "image=1x3x8x8"])).arrays
    assert list(arrays) == ["ids", "image"]
    assert arrays["ids"].dtype == np.int64


def test_an_input_beyond_memory_is_refused():
    with pytest.raises(UsageError, match="GB"):
        prepare_inputs(component(InputSpec("x", "float32", ("n",))), shapes=Shapes(dims={"n": 10**12}))


def test_the_users_own_arrays(tmp_path):
    path = tmp_path / "in.npz"
    np.savez(path, image=np.zeros((2, 3, 8, 8), np.float32), input_ids=np.full((2, 7), 49))
    part = component(IMAGE, IDS)
    prepared = prepare_inputs(part, given=read_input_file(path, part, several=False))
    assert prepared.origin == "file"
    assert prepared.shapes["image"] == [2, 3, 8, 8]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"image": None}, "lacks image"),
        ({"more": np.zeros(1)}, "has more"),
        ({"image": np.zeros((2, 3, 8, 8))}, "float64"),
        ({"image": np.zeros((2, 1, 8, 8), np.float32)}, r"\[2, 1, 8, 8\]"),
        ({"image": np.zeros((2, 3), np.float32)}, r"\[2, 3\]"),
        ({"input_ids": np.full((2, 7), 50)}, "50 rows"),
    ],
)
def test_arrays_that_do_not_fit(change, word):
    given = {"image": np.zeros((2, 3, 8, 8), np.float32), "input_ids": np.full((2, 7), 49), **change}
    with pytest.raises(InputError, match=word) as caught:
        prepare_inputs(component(IMAGE, IDS), given={name: array for name, array in given.items() if array is not None})
    assert caught.value.exit_code == 2


def test_input_files_that_are_none(tmp_path):
    part = component(IMAGE)
    with pytest.raises(InputError):
        read_input_file(tmp_path / "none.npz", part, several=False)
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(InputError):
        read_input_file(tmp_path / "text.npz", part, several=False)
    np.savez(tmp_path / "objects.npz", image=np.array([{}], dtype=object))
    with pytest.raises(InputError):
        read_input_file(tmp_path / "objects.npz", part, several=False)


def test_inputs_for_a_bundle_are_named_by_component(tmp_path):
    np.savez(tmp_path / "in.npz", **{"image/x": np.zeros(1), "text/x": np.ones(1)})
    arrays = read_input_file(tmp_path / "in.npz", component(name="text"), several=True)
    assert arrays["x"].tolist() == [1.0]
