"""Real models under the real runtimes, through the real agent."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from argus_edge.agents.runtimes import litert, onnx_runtime
from argus_edge.schema.agent import OpRow
from tests.support.agent_device import Agent, interpreters, onnx_part

SHORT = {"duration_s": 0.3, "min_calls": 10}
WARM = {"fixed_calls": 2}


@pytest.fixture(scope="module")
def small_onnx(tmp_path_factory):
    """y = relu(x W + b), z = x + 1, opset 13, IR 7, with golden inputs; small enough for any runtime since 1.10."""
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(7)
    weights, bias = rng.normal(size=(8, 5)).astype(np.float32), rng.normal(size=5).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["x", "w", "b"], ["g"], name="gemm"),
            helper.make_node("Relu", ["g"], ["y"], name="relu"),
            helper.make_node("Add", ["x", "one"], ["z"], name="add"),
        ],
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 8])],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 5]),
            helper.make_tensor_value_info("z", TensorProto.FLOAT, [2, 8]),
        ],
        [
            numpy_helper.from_array(weights, "w"),
            numpy_helper.from_array(bias, "b"),
            numpy_helper.from_array(np.ones(1, np.float32), "one"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    folder = tmp_path_factory.mktemp("small")
    onnx.save(model, folder / "small.onnx")
    golden = {}
    for case in range(3):
        x = rng.normal(size=(2, 8)).astype(np.float32)
        golden[f"in/x/{case}"] = x
        golden[f"out/y/{case}"] = np.maximum(x @ weights + bias, 0)
        golden[f"out/z/{case}"] = x + 1
    np.savez(folder / "golden.npz", **golden)
    np.savez(folder / "inputs.npz", x=golden["in/x/0"], unused=np.zeros(3))
    return folder


def small_part(folder: Path, **more):
    more = {"inputs": str(folder / "inputs.npz"), "threads": 1, **more}
    return onnx_part(folder / "small.onnx", **more)


# ---------------------------------------------------------------- ONNX Runtime


def test_onnxruntime_runs_a_model_and_agrees_with_its_golden_outputs(agent, small_onnx) -> None:
    pytest.importorskip("onnxruntime")
    part = agent.run(small_part(small_onnx, golden=str(small_onnx / "golden.npz"))).parts[0]
    assert part.state == "done", part.error
    assert part.runtime_version == __import__("onnxruntime").__version__
    assert part.providers_used == ["cpu"]
    assert not part.provider_fell_back
    assert part.threads == 1
    assert part.parity.cases == 3
    assert part.parity.max_abs_error < 1e-5
    assert part.parity.cosine_min > 0.9999
    assert set(part.parity.outputs) == {"y", "z"}
    assert part.import_s > 0
    assert part.load_s > 0
    assert part.first_s > 0
    assert part.memory.baseline_rss < part.memory.peak_rss_load


@pytest.mark.parametrize("provider", ["cuda", "tensorrt"])
def test_a_fall_back_to_the_cpu_is_found_out(agent, small_onnx, provider) -> None:
    library = pytest.importorskip("onnxruntime")
    if onnx_runtime.PROVIDERS[provider][0] in library.get_available_providers():
        pytest.skip("this machine has that provider")
    part = agent.run(small_part(small_onnx, provider=provider)).parts[0]
    assert part.state == "done"
    assert part.provider_fell_back
    assert part.provider_requested == provider
    assert part.providers_used == ["cpu"]
    assert "CPUExecutionProvider" in part.provider_detail
    assert not list((agent.home / "runs/run-1").glob(".ort-profile*"))


def test_operators_are_listed_in_a_pass_of_their_own(agent, small_onnx) -> None:
    pytest.importorskip("onnxruntime")
    part = agent.run(small_part(small_onnx, profile_ops=True)).parts[0]
    assert part.state == "done", part.error
    by_op = {row.op: row for row in part.ops}
    assert {"Relu", "Add"} & set(by_op) or "FusedGemm" in by_op
    assert all(row.provider == "cpu" and row.calls == 20 for row in part.ops)
    assert [row.total_s for row in part.ops] == sorted((row.total_s for row in part.ops), reverse=True)
    assert part.samples_count == 0
    assert part.samples_file is None


PROFILE = [
    {"cat": "Session", "name": "model_loading_uri", "dur": 1000},
    {
        "cat": "Node",
        "name": "a_kernel_time",
        "dur": 100,
        "args": {"op_name": "Conv", "provider": "CUDAExecutionProvider"},
    },
    {"cat": "Node", "name": "a_fence_before", "dur": 7, "args": {"op_name": "Conv"}},
    {
        "cat": "Node",
        "name": "a_kernel_time",
        "dur": 300,
        "args": {"op_name": "Conv", "provider": "CUDAExecutionProvider"},
    },
    {
        "cat": "Node",
        "name": "b_kernel_time",
        "dur": 50,
        "args": {"op_name": "Shape", "provider": "CPUExecutionProvider"},
    },
    {"cat": "Node", "name": "odd"},
]


def test_a_profile_tells_each_operators_time_and_provider() -> None:
    events = onnx_runtime.node_events(PROFILE)
    assert onnx_runtime.placement(events) == {"cuda": 1, "cpu": 1}
    rows = onnx_runtime.op_rows(events)
    assert rows[0] == {"op": "Conv", "name": "a", "provider": "cuda", "calls": 2, "total_s": pytest.approx(4e-4)}
    assert len(onnx_runtime.op_rows(events, limit=1)) == 2
    assert onnx_runtime.op_rows(events, limit=1)[-1]["op"] == "(others)"
    for row in onnx_runtime.op_rows(events, limit=1):
        OpRow.model_validate(row)


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x08\x07\x12\x00"])
def test_a_file_that_is_no_model_is_rejected(agent, tmp_path, content) -> None:
    pytest.importorskip("onnxruntime")
    (tmp_path / "m.onnx").write_bytes(content)
    error = agent.run(onnx_part(tmp_path / "m.onnx")).error
    assert error.kind == "model-rejected"


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "no array was given for the input"),
        ({"x": np.zeros((2, 9), np.float32)}, "imension"),
        ({"x": np.zeros((2, 8), np.float64)}, "type"),
    ],
)
def test_inputs_that_do_not_fit_are_rejected(agent, small_onnx, tmp_path, arrays, message) -> None:
    pytest.importorskip("onnxruntime")
    np.savez(tmp_path / "inputs.npz", **arrays)
    error = agent.run(small_part(small_onnx, inputs=str(tmp_path / "inputs.npz"))).error
    assert error.kind == "input-rejected"
    assert message in error.message


def test_pickled_inputs_are_refused(agent, small_onnx, tmp_path) -> None:
    pytest.importorskip("onnxruntime")
    np.savez(tmp_path / "inputs.npz", x=np.array([print], dtype=object))
    result = agent.run(small_part(small_onnx, inputs=str(tmp_path / "inputs.npz")))
    assert result.error.kind == "input-rejected"
    assert "allow_pickle" in result.error.message


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"not an archive"])
def test_an_inputs_file_that_is_none_is_refused(agent, small_onnx, tmp_path, content) -> None:
    pytest.importorskip("onnxruntime")
    (tmp_path / "inputs.npz").write_bytes(content)
    assert agent.run(small_part(small_onnx, inputs=str(tmp_path / "inputs.npz"))).error.kind == "input-rejected"


def test_a_part_that_asks_for_what_the_runtime_does_not_do_is_a_bad_job(agent, small_onnx) -> None:
    result = agent.run(small_part(small_onnx, format="tflite"))
    assert result.error.kind == "bad-job"


# ---------------------------------------------------------------- Python 3.6


@pytest.fixture(scope="module")
def old_python(tmp_path_factory):
    """Python 3.6 with onnxruntime 1.10.0, the Jetson Nano's; ``ARGUS_EDGE_PYTHON36`` names one that is ready."""
    ready = os.environ.get("ARGUS_EDGE_PYTHON36")
    if ready:
        return ready
    found = [python for python in interpreters() if "3.6" in python]
    if not found:
        pytest.skip("no Python 3.6 here")
    if subprocess.run([found[0], "-c", "import onnxruntime"], capture_output=True, check=False).returncode == 0:
        return found[0]
    folder = tmp_path_factory.mktemp("python36")
    python = str(folder / "bin/python")
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    steps = [
        [found[0], "-m", "venv", str(folder)],
        [*pip, "pip==21.3.1"],
        [*pip, "onnxruntime==1.10.0", "numpy==1.19.4"],
    ]
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"cannot make a Python 3.6 with onnxruntime 1.10: {done.stderr.strip()[-200:]}")
    return python


@pytest.mark.slow
def test_the_agent_runs_under_python_3_6_with_onnxruntime_1_10(archive, tmp_path, small_onnx, old_python) -> None:
    agent = Agent(archive, tmp_path / "home", old_python)
    golden = str(small_onnx / "golden.npz")
    result = agent.run(small_part(small_onnx, golden=golden), small_part(small_onnx, profile_ops=True))
    assert result.state == "done", result.error
    assert result.python.startswith("3.6")
    timed, profiled = result.parts
    assert timed.runtime_version == "1.10.0"
    assert timed.parity.max_abs_error < 1e-5
    assert profiled.ops
    agent.call("remove", "run-1")


# ---------------------------------------------------------------- LiteRT


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("serving_default_x:0", "x"),
        ("x", "x"),
        ("a:b:0", "a:b"),
        ("StatefulPartitionedCall:0", "StatefulPartitionedCall"),
    ],
)
def test_a_tensors_plain_name(name, expected) -> None:
    assert litert.plain(name) == expected


@pytest.fixture(scope="module")
def small_tflite(tmp_path_factory):
    """y = 2 x + 1 for x of shape (1, 4), written by hand with the schema's own package."""
    schema = pytest.importorskip("tflite")
    flatbuffers = pytest.importorskip("flatbuffers")
    folder = tmp_path_factory.mktemp("tflite")
    (folder / "small.tflite").write_bytes(build_tflite(schema, flatbuffers.Builder(1024)))
    x = np.array([[1.0, -2.0, 3.0, 0.5]], np.float32)
    np.savez(folder / "inputs.npz", x=x)
    np.savez(folder / "golden.npz", **{"in/x/0": x, "out/y/0": 2 * x + 1})
    return folder


def build_tflite(t, b) -> bytes:
    """A graph of MUL and ADD."""

    def vector(start, offsets):
        start(b, len(offsets))
        for offset in reversed(offsets):
            b.PrependUOffsetTRelative(offset)
        return b.EndVector()

    def buffer(data: bytes):
        content = b.CreateByteVector(data) if data else None
        t.BufferStart(b)
        if content is not None:
            t.BufferAddData(b, content)
        return t.BufferEnd(b)

    def ints(values):
        return b.CreateNumpyVector(np.array(values, np.int32))

    buffers = [buffer(b"")] + [buffer(np.float32(value).tobytes()) for value in (2.0, 1.0)]
    tensors = []
    for name, shape, index in (("x", [1, 4], 0), ("two", [1], 1), ("one", [1], 2), ("m", [1, 4], 0), ("y", [1, 4], 0)):
        text, dims = b.CreateString(name), ints(shape)
        t.TensorStart(b)
        t.TensorAddName(b, text)
        t.TensorAddShape(b, dims)
        t.TensorAddType(b, t.TensorType.FLOAT32)
        t.TensorAddBuffer(b, index)
        tensors.append(t.TensorEnd(b))
    operators, codes = [], []
    for index, (code, given, made) in enumerate(
        ((t.BuiltinOperator.MUL, [0, 1], [3]), (t.BuiltinOperator.ADD, [3, 2], [4]))
    ):
        t.OperatorCodeStart(b)
        t.OperatorCodeAddDeprecatedBuiltinCode(b, code)
        t.OperatorCodeAddBuiltinCode(b, code)
        t.OperatorCodeAddVersion(b, 1)
        codes.append(t.OperatorCodeEnd(b))
        inputs, outputs = ints(given), ints(made)
        kind = "Mul" if index == 0 else "Add"
        getattr(t, f"{kind}OptionsStart")(b)
        options = getattr(t, f"{kind}OptionsEnd")(b)
        t.OperatorStart(b)
        t.OperatorAddOpcodeIndex(b, index)
        t.OperatorAddInputs(b, inputs)
        t.OperatorAddOutputs(b, outputs)
        t.OperatorAddBuiltinOptionsType(b, getattr(t.BuiltinOptions, f"{kind}Options"))
        t.OperatorAddBuiltinOptions(b, options)
        operators.append(t.OperatorEnd(b))
    parts = vector(t.SubGraphStartTensorsVector, tensors), ints([0]), ints([4])
    ops = vector(t.SubGraphStartOperatorsVector, operators)
    t.SubGraphStart(b)
    t.SubGraphAddTensors(b, parts[0])
    t.SubGraphAddInputs(b, parts[1])
    t.SubGraphAddOutputs(b, parts[2])
    t.SubGraphAddOperators(b, ops)
    graph = t.SubGraphEnd(b)
    graphs = vector(t.ModelStartSubgraphsVector, [graph])
    all_codes = vector(t.ModelStartOperatorCodesVector, codes)
    all_buffers = vector(t.ModelStartBuffersVector, buffers)
    t.ModelStart(b)
    t.ModelAddVersion(b, 3)
    t.ModelAddOperatorCodes(b, all_codes)
    t.ModelAddSubgraphs(b, graphs)
    t.ModelAddBuffers(b, all_buffers)
    b.Finish(t.ModelEnd(b), file_identifier=b"TFL3")
    return bytes(b.Output())


def tflite_part(folder, **more):
    return {
        "name": "small",
        "runtime": "litert",
        "format": "tflite",
        "model": str(folder / "small.tflite"),
        "inputs": str(folder / "inputs.npz"),
        "golden": str(folder / "golden.npz"),
        "threads": 1,
        "scenario": SHORT,
        "warmup": WARM,
        **more,
    }


@pytest.mark.parametrize("options", [{}, {"xnnpack": False}])
def test_litert_runs_a_model_and_agrees_with_its_golden_outputs(agent, small_tflite, options) -> None:
    pytest.importorskip("ai_edge_litert")
    part = agent.run(tflite_part(small_tflite, options=options)).parts[0]
    assert part.state == "done", part.error
    assert part.runtime_version == version("ai-edge-litert")
    assert part.parity.max_abs_error == 0.0
    assert part.samples_count >= 10
    assert part.providers_used == (["cpu"] if options else ["xnnpack", "cpu"])


def test_litert_takes_another_batch(agent, small_tflite, tmp_path) -> None:
    pytest.importorskip("ai_edge_litert")
    np.savez(tmp_path / "inputs.npz", x=np.ones((3, 4), np.float32))
    part = agent.run(tflite_part(small_tflite, inputs=str(tmp_path / "inputs.npz"), golden=None)).parts[0]
    assert part.state == "done", part.error


def test_litert_refuses_a_file_that_is_no_model(agent, small_tflite, tmp_path) -> None:
    pytest.importorskip("ai_edge_litert")
    (tmp_path / "m.tflite").write_bytes(b"\0" * 64)
    assert agent.run(tflite_part(small_tflite, model=str(tmp_path / "m.tflite"))).error.kind == "model-rejected"


def version(package: str) -> str:
    from importlib.metadata import version as installed

    return installed(package)


# ---------------------------------------------------------------- PyTorch


NAMES = {"a": "left", "b": "right"}  # what a bundle calls the arguments


@pytest.fixture(scope="module")
def small_torch(tmp_path_factory):
    torch = pytest.importorskip("torch")

    class Small(torch.nn.Module):
        def forward(self, a, b):
            return a + b, (a * b, a @ b.T)

    torch.manual_seed(3)
    a, b = torch.randn(2, 4), torch.randn(2, 4)
    folder = tmp_path_factory.mktemp("torch")
    torch.jit.trace(Small(), (a, b), strict=False).save(str(folder / "small.pt"))
    torch.export.save(torch.export.export(Small(), (a,), {"b": b}), str(folder / "small.pt2"))
    np.savez(folder / "inputs.npz", b=b.numpy(), a=a.numpy())
    golden = {"in/a/0": a, "in/b/0": b, "out/output_0/0": a + b, "out/output_1_1/0": a @ b.T}
    np.savez(folder / "golden.npz", **{name: value.numpy() for name, value in golden.items()})
    renamed = {"in/right/0": b, "in/left/0": a, "out/output_0/0": a + b, "out/output_1_1/0": a @ b.T}
    np.savez(folder / "renamed.npz", **{name: value.numpy() for name, value in renamed.items()})
    np.savez(folder / "renamed-inputs.npz", right=b.numpy(), left=a.numpy())
    return folder


def torch_part(folder, form, **more):
    return {
        "name": "small",
        "runtime": "torch",
        "format": form,
        "model": str(folder / {"torchscript": "small.pt", "exported": "small.pt2"}[form]),
        "inputs": str(folder / "inputs.npz"),
        "golden": str(folder / "golden.npz"),
        "threads": 1,
        "scenario": SHORT,
        "warmup": WARM,
        **more,
    }


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("form", ["torchscript", "exported"])
def test_torch_runs_a_model_and_agrees_with_its_golden_outputs(agent, small_torch, form) -> None:
    part = agent.run(torch_part(small_torch, form)).parts[0]
    assert part.state == "done", part.error
    assert part.runtime_version == __import__("torch").__version__
    assert part.parity.max_abs_error < 1e-6
    assert set(part.parity.outputs) == {"output_0", "output_1_1"}
    assert part.providers_used == ["cpu"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("form", ["torchscript", "exported"])
def test_torch_takes_inputs_by_the_bundles_names_in_whatever_order_they_come(agent, small_torch, form) -> None:
    files = {"inputs": str(small_torch / "renamed-inputs.npz"), "golden": str(small_torch / "renamed.npz")}
    part = agent.run(torch_part(small_torch, form, input_names=list(NAMES.values()), **files)).parts[0]
    assert part.state == "done", part.error
    assert part.parity.max_abs_error < 1e-6


@pytest.mark.slow
def test_torch_lists_operators_and_says_when_there_is_no_cuda(agent, small_torch) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    part = agent.run(torch_part(small_torch, "torchscript", provider="cuda", profile_ops=True)).parts[0]
    assert part.state == "done", part.error
    assert part.provider_fell_back
    assert "no CUDA device" in part.provider_detail
    assert {row.op for row in part.ops} >= {"aten::add", "aten::mul"}
