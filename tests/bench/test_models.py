"""MODEL as typed: every kind of file, and every way in which one can be broken, with the exit code."""

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from argus_edge.bench.models import LONG_TO_READ_BYTES, light_folder, long_to_read, resolve_model
from argus_edge.errors import InputError

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def linear(shape=(1, 4), width=3):
    weights = onnx.numpy_helper.from_array(np.ones((4, width), np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "linear",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(shape))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [*shape[:-1], width])],
        [weights],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)


def with_external(folder, location="weights.bin", size=48):
    """A linear model whose weights lie in ``location``; returns the model's path."""
    model = linear()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", "0"), ("length", str(size))):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def refused(path, *words):
    with pytest.raises(InputError) as caught:
        resolve_model(str(path))
    assert caught.value.exit_code == 2
    text = str(caught.value)
    for word in words:
        assert word in text
    assert caught.value.where
    return text


def test_without_a_model_it_is_resnet50_and_says_so():
    model = resolve_model(None)
    assert model.name == "resnet50"
    assert model.constant_weights
    assert "constant" in model.notes[0]
    (component,) = model.components
    assert component.inputs[0].shape == (1, 3, 224, 224)
    assert component.opset == 9


def test_the_null_runtime_needs_no_model():
    model = resolve_model(None, runtime="null")
    assert model.components[0].format == "none"
    assert model.components[0].files == ()


def test_an_onnx_file(tmp_path):
    path = tmp_path / "small.onnx"
    path.write_bytes(linear(("batch", 4)).SerializeToString())
    model = resolve_model(str(path))
    (component,) = model.components
    assert (component.format, component.opset, component.ir_version) == ("onnx", 15, 8)
    assert component.ops == {"MatMul": 1}
    assert component.inputs[0].shape == ("batch", 4)
    assert component.precision == "fp32"
    assert not model.constant_weights


def test_a_copy_of_a_light_model_is_known_for_its_constant_weights(tmp_path):
    copy = tmp_path / "light_squeezenet.onnx"
    copy.write_bytes((light_folder() / "light_squeezenet.onnx").read_bytes())
    assert resolve_model(str(copy)).constant_weights


def test_missing(tmp_path):
    refused(tmp_path / "none.onnx", "No such model", "check the path")


def test_a_hub_name_is_told_to_be_exported_first():
    assert "argus-edge export openai/clip-vit-base-patch32" in refused("openai/clip-vit-base-patch32")


def test_a_folder_without_a_manifest(tmp_path):
    refused(tmp_path, "manifest.json", "argus-edge export")


def test_empty(tmp_path):
    path = tmp_path / "m.onnx"
    path.touch()
    refused(path, "empty")


def test_not_onnx(tmp_path):
    path = tmp_path / "m.onnx"
    for content in (
        b"hello, world\n",
        b"\x89PNG\r\n\x1a\n" + bytes(100),
        os.urandom(4096),
        b"\0" * 64,
        b"<html></html>",
    ):
        path.write_bytes(content)
        refused(path, "Not an ONNX model")


@pytest.mark.parametrize("share", [0.01, 0.3, 0.5, 0.9, 0.999])
def test_truncated_onnx(tmp_path, share):
    whole = (LIGHT / "light_squeezenet.onnx").read_bytes()
    path = tmp_path / "m.onnx"
    path.write_bytes(whole[: int(len(whole) * share)])
    refused(path, "truncated")


def test_a_model_truncated_at_any_byte_is_refused(tmp_path):
    whole = linear().SerializeToString()
    path = tmp_path / "m.onnx"
    for length in range(1, len(whole)):
        path.write_bytes(whole[:length])
        refused(path)


def test_a_tensor_with_too_few_bytes(tmp_path):
    model = linear()
    model.graph.initializer[0].raw_data = b"\0" * 7
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    refused(path, "7 bytes", "48")


def test_external_data_travels_with_the_model(tmp_path):
    path = with_external(tmp_path)
    (tmp_path / "weights.bin").write_bytes(bytes(48))
    (component,) = resolve_model(str(path)).components
    assert [file.name for file in component.files] == ["model.onnx", "weights.bin"]


def test_external_data_in_a_subfolder(tmp_path):
    path = with_external(tmp_path, "data/weights.bin")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "weights.bin").write_bytes(bytes(48))
    assert resolve_model(str(path)).components[0].external[0].name == "data/weights.bin"


def test_external_data_missing(tmp_path):
    refused(with_external(tmp_path), "weights.bin", "missing", "copy weights.bin")


def test_external_data_cut_short(tmp_path):
    path = with_external(tmp_path)
    (tmp_path / "weights.bin").write_bytes(bytes(47))
    refused(path, "47 bytes", "48")


@pytest.mark.parametrize("location", ["/etc/passwd", "../weights.bin", "a/../../weights.bin", "..\\weights.bin", ""])
def test_external_data_outside_the_folder(tmp_path, location):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "weights.bin").write_bytes(bytes(48))
    refused(with_external(folder, location), "outside")


def test_external_data_by_a_link_out_of_the_folder(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(bytes(48))
    path = with_external(folder)
    (folder / "weights.bin").symlink_to(tmp_path / "secret")
    refused(path, "outside")


def test_external_data_by_a_linked_folder(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "w").write_bytes(bytes(48))
    path = with_external(folder, "data/w")
    (folder / "data").symlink_to(tmp_path / "elsewhere")
    refused(path, "outside")


def test_external_data_that_is_a_dead_link_or_a_folder(tmp_path):
    path = with_external(tmp_path)
    (tmp_path / "weights.bin").symlink_to(tmp_path / "nowhere")
    refused(path, "dead link")
    (tmp_path / "weights.bin").unlink()
    (tmp_path / "weights.bin").mkdir()
    refused(path, "not a file")


def test_external_data_with_a_nonsensical_length(tmp_path):
    path = with_external(tmp_path, size="many")
    (tmp_path / "weights.bin").write_bytes(bytes(48))
    refused(path, "offset")


def test_a_sequence_input_is_refused(tmp_path):
    model = linear()
    model.graph.input[0].type.CopyFrom(helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [1])))
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    refused(path, "not a tensor of numbers")


def tiny_tflite(buffer=b"\0" * 64, lengths=(1, 4)):
    """A TFLite file of one RELU, as the schema lays it out."""
    import flatbuffers
    import tflite

    builder = flatbuffers.Builder(1024)

    def numbers(values, start):
        start(builder, len(values))
        for value in reversed(values):
            builder.PrependInt32(value)
        return builder.EndVector()

    def offsets(values, start):
        start(builder, len(values))
        for value in reversed(values):
            builder.PrependUOffsetTRelative(value)
        return builder.EndVector()

    data = builder.CreateByteVector(buffer)
    tflite.BufferStart(builder)
    empty = tflite.BufferEnd(builder)
    tflite.BufferStart(builder)
    tflite.BufferAddData(builder, data)
    filled = tflite.BufferEnd(builder)
    tensors = []
    for name in ("image", "out"):
        text = builder.CreateString(name)
        shape = numbers([max(length, 1) for length in lengths], tflite.TensorStartShapeVector)
        signature = numbers(list(lengths), tflite.TensorStartShapeSignatureVector)
        tflite.TensorStart(builder)
        tflite.TensorAddShape(builder, shape)
        tflite.TensorAddShapeSignature(builder, signature)
        tflite.TensorAddType(builder, tflite.TensorType.UINT8)
        tflite.TensorAddBuffer(builder, 0)
        tflite.TensorAddName(builder, text)
        tensors.append(tflite.TensorEnd(builder))
    op_in, op_out = numbers([0], tflite.OperatorStartInputsVector), numbers([1], tflite.OperatorStartOutputsVector)
    tflite.OperatorStart(builder)
    tflite.OperatorAddInputs(builder, op_in)
    tflite.OperatorAddOutputs(builder, op_out)
    operator = tflite.OperatorEnd(builder)
    all_tensors = offsets(tensors, tflite.SubGraphStartTensorsVector)
    graph_in, graph_out = (
        numbers([0], tflite.SubGraphStartInputsVector),
        numbers([1], tflite.SubGraphStartOutputsVector),
    )
    operators = offsets([operator], tflite.SubGraphStartOperatorsVector)
    tflite.SubGraphStart(builder)
    tflite.SubGraphAddTensors(builder, all_tensors)
    tflite.SubGraphAddInputs(builder, graph_in)
    tflite.SubGraphAddOutputs(builder, graph_out)
    tflite.SubGraphAddOperators(builder, operators)
    graph = tflite.SubGraphEnd(builder)
    tflite.OperatorCodeStart(builder)
    tflite.OperatorCodeAddDeprecatedBuiltinCode(builder, tflite.BuiltinOperator.RELU)
    tflite.OperatorCodeAddBuiltinCode(builder, tflite.BuiltinOperator.RELU)
    code = tflite.OperatorCodeEnd(builder)
    codes = offsets([code], tflite.ModelStartOperatorCodesVector)
    graphs = offsets([graph], tflite.ModelStartSubgraphsVector)
    buffers = offsets([empty, filled], tflite.ModelStartBuffersVector)
    tflite.ModelStart(builder)
    tflite.ModelAddVersion(builder, 3)
    tflite.ModelAddOperatorCodes(builder, codes)
    tflite.ModelAddSubgraphs(builder, graphs)
    tflite.ModelAddBuffers(builder, buffers)
    builder.Finish(tflite.ModelEnd(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def test_a_tflite_file(tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(tiny_tflite(lengths=(-1, 4)))
    (component,) = resolve_model(str(path)).components
    assert component.format == "tflite"
    assert component.ops == {"RELU": 1}
    assert (component.inputs[0].name, component.inputs[0].dtype) == ("image", "uint8")
    assert component.inputs[0].shape == ("?", 4)


def test_broken_tflite(tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(b"hello, world")
    refused(path, "Not a TFLite model")
    whole = tiny_tflite()
    for share in (0.02, 0.2, 0.5, 0.8):
        path.write_bytes(whole[: int(len(whole) * share)])
        refused(path, "truncated")


def archive(members):
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    return raw.getvalue()


def test_torch_files_are_told_apart(tmp_path):
    path = tmp_path / "m.pt"
    path.write_bytes(archive({"m/data.pkl": b"", "m/constants.pkl": b"", "m/code/__torch__.py": b""}))
    (component,) = resolve_model(str(path)).components
    assert (component.format, component.inputs) == ("torchscript", None)
    path.write_bytes(archive({"m/models/model.json": b"{}"}))
    assert resolve_model(str(path)).components[0].format == "exported"
    path.write_bytes(archive({"m/data.pkl": b"", "m/data/0": b""}))
    refused(path, "weights without a program", "torch.jit.save")
    path.write_bytes(path.read_bytes()[:40])
    refused(path, "truncated")


def test_an_exported_program_says_its_inputs(tmp_path):
    torch = pytest.importorskip("torch")
    program = torch.export.export(torch.nn.Linear(4, 2), (torch.zeros(3, 4),))
    torch.export.save(program, str(tmp_path / "m.pt2"))
    (component,) = resolve_model(str(tmp_path / "m.pt2")).components
    assert component.format == "exported"
    assert component.inputs[0].shape == (3, 4)
    assert component.inputs[0].dtype == "float32"


def test_an_engine_is_refused_with_the_way_to_do_it(tmp_path):
    path = tmp_path / "m.engine"
    path.write_bytes(b"ftrt" + bytes(100))
    refused(path, "--runtime tensorrt")


def test_a_bundle_that_takes_long_to_read_is_known_before_it_is_read(tmp_path):
    (tmp_path / "manifest.json").write_text("{}")
    assert long_to_read(str(tmp_path)) == 0
    (tmp_path / "decoder").mkdir()
    with (tmp_path / "decoder" / "decoder.onnx.data").open("wb") as file:
        file.truncate(LONG_TO_READ_BYTES)  # sparse
    assert long_to_read(str(tmp_path)) == LONG_TO_READ_BYTES + 2
    (tmp_path / "manifest.json").unlink()
    for other in (str(tmp_path), "x" * 5000, "google/gemma-3-4b-it", None):
        assert long_to_read(other) == 0
