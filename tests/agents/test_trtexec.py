"""TensorRT's trtexec on recorded output: the texts are excerpts in the format that its versions print.

Sources: banners as posted in NVIDIA/TensorRT issues 4177 and 4036 and OE4T/meta-tegra pull request 952; the fields of
``--exportTimes`` as in TensorRT's own samples/trtexec/tracer.py (8) and as of 10.7; ``--exportProfile`` as of 8 and 10.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from argus_edge.agents.runtimes import tensor_rt, trtexec
from argus_edge.schema.agent import OpRow

BANNERS = {
    "&&&& RUNNING TensorRT.trtexec [TensorRT v8201] # trtexec --onnx=m.onnx": "8.2.1",
    "&&&& RUNNING TensorRT.trtexec [TensorRT v8400] # trtexec --loadEngine=mnist16.trt --batch=16": "8.4.0",
    "&&&& RUNNING TensorRT.trtexec [TensorRT v8502] # trtexec": "8.5.2",
    "&&&& RUNNING TensorRT.trtexec [TensorRT v100200] # D:\\TensorRT-10.2.0.19\\bin\\trtexec.exe": "10.2.0",
    "&&&& RUNNING TensorRT.trtexec [TensorRT v100300] [b31] # trtexec": "10.3.0",
    "no banner": None,
}
TIMES_8 = """[
  { "startInMs" : 0, "endInMs" : 0.0107, "startComputeMs" : 0.0112, "endComputeMs" : 2.5112, "startOutMs" : 2.5113,
    "endOutMs" : 2.5213, "inMs" : 0.0107, "computeMs" : 2.5, "outMs" : 0.01, "latencyMs" : 2.5207,
    "endToEndMs" : 2.5213 },
  { "startInMs" : 2.6, "endInMs" : 2.61, "startComputeMs" : 2.61, "endComputeMs" : 5.01, "startOutMs" : 5.01,
    "endOutMs" : 5.02, "inMs" : 0.01, "computeMs" : 2.4, "outMs" : 0.01, "latencyMs" : 2.42, "endToEndMs" : 2.42 }
]"""
TIMES_10 = """[
  { "startEnqMs" : 0.1, "endEnqMs" : 0.2, "startH2dMs" : 10.0, "endH2dMs" : 10.5, "startComputeMs" : 10.5,
    "endComputeMs" : 11.75, "startD2hMs" : 11.75, "endD2hMs" : 12.0, "h2dMs" : 0.5, "computeMs" : 1.25, "d2hMs" : 0.25,
    "latencyMs" : 2.0 }
]"""
PROFILE = """[
  { "count" : 625 }
, { "name" : "Reformatting CopyNode", "timeMs" : 36.6844, "averageMs" : 0.058695, "percentage" : 1.2 }
, { "name" : "Conv_4 + PWN(Clip_7)", "timeMs" : 68.3092, "averageMs" : 0.109295, "medianMs" : 0.1, "percentage" : 2.24 }
, { "name" : "Conv_8", "timeMs" : 0, "averageMs" : 0, "percentage" : 0 }
]"""
FAILED = """[07/30/2024-15:30:36] [I] Start parsing network model.
[07/30/2024-15:30:36] [E] [TRT] ModelImporter.cpp:720: While parsing node number 0 [Foo]:
[07/30/2024-15:30:36] [E] Failed to parse onnx file
[07/30/2024-15:30:36] [I] Finished parsing network model.
[07/30/2024-15:30:36] [E] Engine set up failed
&&&& FAILED TensorRT.trtexec [TensorRT v8201] # trtexec --onnx=m.onnx
"""
DYNAMIC = (
    "[06/09/2022-10:00:00] [W] Dynamic dimensions required for input: input_ids, but no shapes were provided. "
    "Automatically overriding shape to: 1x1\n"
    "[06/09/2022-10:00:00] [W] Dynamic dimensions required for input: mask, but no shapes were provided. "
    "Automatically overriding shape to: 1x1\n"
)


@pytest.mark.parametrize(("text", "version"), BANNERS.items())
def test_the_version_is_read_from_the_banner(text, version) -> None:
    assert trtexec.version("some line\n" + text + "\n") == version


def test_each_call_of_an_exported_trace_has_its_start_and_latency() -> None:
    assert trtexec.times(TIMES_8) == [(0.0, pytest.approx(2.5207e-3)), (pytest.approx(2.6e-3), pytest.approx(2.42e-3))]
    assert trtexec.times(TIMES_10) == [(pytest.approx(0.01), pytest.approx(2e-3))]


@pytest.mark.parametrize("text", ["", "{}", "[{}]", '[{"startInMs": 1}]', "[1", "[1]"])
def test_a_trace_that_is_none_is_refused(text) -> None:
    with pytest.raises((ValueError, TypeError)):
        trtexec.times(text)


def test_layers_are_listed_the_slowest_first() -> None:
    rows = [OpRow.model_validate(row) for row in trtexec.profile_rows(PROFILE)]
    assert rows[0].name == "Conv_4 + PWN(Clip_7)"
    assert rows[0].total_s == pytest.approx(0.0683092)
    assert {row.calls for row in rows} == {625}


def test_errors_are_what_was_marked_so() -> None:
    assert trtexec.errors(FAILED).endswith("Failed to parse onnx file; Engine set up failed")
    assert "ModelImporter" in trtexec.errors(FAILED)
    assert trtexec.errors("Segmentation fault\n") == "Segmentation fault"


def test_free_dimensions_that_trtexec_set_to_one_are_noticed() -> None:
    assert trtexec.unbound_inputs(DYNAMIC) == ["input_ids", "mask"]
    assert trtexec.unbound_inputs("") == []


def test_commands_use_the_options_of_their_version() -> None:
    arguments = ("trtexec", "m.onnx", "e.plan", ["fp16"], {"x": (1, 3, 224, 224), "y": (1,)})
    old = trtexec.build_command(arguments[0], "--buildOnly  Skip inference", *arguments[1:])
    new = trtexec.build_command(arguments[0], "--skipInference  Exit after", *arguments[1:])
    assert "--buildOnly" in old
    assert "--skipInference" in new
    assert "--fp16" in new
    assert "--optShapes=x:1x3x224x224,y:1" in new
    spec = {"duration_s": 10.0, "min_calls": 64}
    run = trtexec.run_command("trtexec", "--useSpinWait", "e.plan", spec, 2.0, {"x": "/a b"}, {}, "t.json")
    assert run[1:6] == [
        "--loadEngine=e.plan",
        "--duration=10",
        "--iterations=64",
        "--warmUp=2000",
        "--exportTimes=t.json",
    ]
    assert "--loadInputs='x':'/a b'" in run
    assert "--useSpinWait" in run


def test_an_engine_is_for_one_model_version_gpu_set_of_flags_and_shapes() -> None:
    base = ("a" * 64, "8.2.1", "NVIDIA Jetson Nano", ["fp16"], {"x": (1, 3)})
    others = [
        ("b" * 64, *base[1:]),
        (base[0], "8.2.2", *base[2:]),
        (*base[:2], "other", *base[3:]),
        (*base[:3], [], base[4]),
        (*base[:4], {"x": (2, 3)}),
    ]
    keys = {tensor_rt.engine_key(*values) for values in [base, *others]}
    assert len(keys) == 6
    assert tensor_rt.engine_key(*base[:3], ["int8", "fp16"], {}) == tensor_rt.engine_key(
        *base[:3], ["fp16", "int8"], {}
    )


def test_the_gpu_is_named_by_the_driver_or_the_device_tree(tmp_path) -> None:
    assert tensor_rt.gpu_name(tmp_path) == "unknown"
    tree = tmp_path / "proc/device-tree"
    tree.mkdir(parents=True)
    (tree / "model").write_bytes(b"NVIDIA Jetson Nano Developer Kit\0")
    assert tensor_rt.gpu_name(tmp_path) == "NVIDIA Jetson Nano Developer Kit"
    gpu = tmp_path / "proc/driver/nvidia/gpus/0000:01:00.0"
    gpu.mkdir(parents=True)
    (gpu / "information").write_text("Model: \t\t NVIDIA A100-SXM4-80GB\nIRQ:   \t\t 30\n")
    assert tensor_rt.gpu_name(tmp_path) == "NVIDIA A100-SXM4-80GB"


# A stand-in that behaves as trtexec does on the command line and writes what it exports.
STAND_IN = """#!/bin/sh
echo "&&&& RUNNING TensorRT.trtexec [TensorRT v8201] # trtexec $*"
echo "$*" >> "$FAKE_LOG"
for word in "$@"; do
  case "$word" in
    --help) echo "  --buildOnly   Skip inference perf measurement" ;;
    --saveEngine=*) echo plan > "${word#--saveEngine=}" ;;
    --exportTimes=*) cp "$FAKE_TIMES" "${word#--exportTimes=}" ;;
    --exportProfile=*) cp "$FAKE_PROFILE" "${word#--exportProfile=}" ;;
    --onnx=*) if grep -q broken "${word#--onnx=}"; then cat "$FAKE_FAILED"; exit 1; fi ;;
  esac
done
"""


@pytest.fixture
def jetson(agent, tmp_path, monkeypatch):
    """A device whose PATH has the stand-in."""
    tools = tmp_path / "tools"
    tools.mkdir()
    tool = tools / "trtexec"
    tool.write_text(STAND_IN)
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    for name, text in (("times", TIMES_8), ("profile", PROFILE), ("failed", FAILED)):
        (tools / name).write_text(text)
        agent.environment[f"FAKE_{name.upper()}"] = str(tools / name)
    agent.environment.update(PATH=f"{tools}{os.pathsep}{os.environ['PATH']}", FAKE_LOG=str(tools / "log"))
    return agent


def trt_part(model: Path, **more):
    return {
        "name": "engine",
        "runtime": "tensorrt",
        "provider": "tensorrt",
        "format": "onnx",
        "model": str(model),
        "options": {"backend": "trtexec", "fp16": True},
        "scenario": {"duration_s": 1.0, "min_calls": 2},
        **more,
    }


def test_an_engine_is_built_once_then_taken_from_the_cache(jetson, tmp_path) -> None:
    model = tmp_path / "m.onnx"
    model.write_text("model")
    first = jetson.run(trt_part(model)).parts[0]
    assert first.state == "done", first.error
    assert first.runtime_version == "8.2.1"
    assert first.build_s > 0
    assert first.samples_count == 2
    assert first.providers_used == ["tensorrt"]
    second = jetson.run(trt_part(model), run="run-2").parts[0]
    assert second.build_s is None
    model.write_text("another model")
    assert jetson.run(trt_part(model), run="run-3").parts[0].build_s > 0
    assert len(list((jetson.home / "engines").iterdir())) == 2
    log = Path(jetson.environment["FAKE_LOG"]).read_text()
    assert log.count("--buildOnly --fp16") == 2


def test_a_model_that_trtexec_refuses_is_named_with_its_words(jetson, tmp_path) -> None:
    model = tmp_path / "m.onnx"
    model.write_text("broken")
    error = jetson.run(trt_part(model)).error
    assert error.kind == "model-rejected"
    assert "Failed to parse onnx file" in error.message
    assert list((jetson.home / "engines").iterdir()) == []


def test_layers_are_profiled_in_a_pass_of_their_own(jetson, tmp_path) -> None:
    model = tmp_path / "m.onnx"
    model.write_text("model")
    part = jetson.run(trt_part(model, profile_ops=True)).parts[0]
    assert part.ops[0].name == "Conv_4 + PWN(Clip_7)"
    assert part.samples_count == 0


def test_a_scenario_that_trtexec_cannot_issue_is_refused(jetson, tmp_path) -> None:
    model = tmp_path / "m.onnx"
    model.write_text("model")
    error = jetson.run(trt_part(model, scenario={"name": "paced"})).error
    assert (error.kind, "paced" in error.message) == ("bad-job", True)


def test_a_device_without_tensorrt_says_so(agent, tmp_path) -> None:
    model = tmp_path / "m.onnx"
    model.write_text("model")
    if trtexec.locate():
        pytest.skip("this machine has trtexec")
    error = agent.run(trt_part(model)).error
    assert error.kind == "runtime-missing"
    assert "trtexec" in error.message
    assert json.dumps(error.detail)
