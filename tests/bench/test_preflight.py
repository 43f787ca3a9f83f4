"""Pre-flight: what does not fit is said before a byte is sent, all of it at once, with what to do."""

import pytest

from argus_edge.bench.model_types import BenchComponent, ModelFile, ResolvedModel
from argus_edge.bench.preflight import check, choose_provider, choose_runtime, install_command, limit_of
from argus_edge.devices.profiles import load
from argus_edge.errors import MisfitError, UsageError
from argus_edge.schema.agent import DeviceFacts, RuntimeFact

ORT_132 = RuntimeFact(name="onnxruntime", version="1.32.0", providers=["CPUExecutionProvider"])
ORT_110 = RuntimeFact(name="onnxruntime", version="1.10.0", providers=["CPUExecutionProvider"])


def model(tmp_path, size=1000, **changes):
    fields = {"name": "m", "format": "onnx", "opset": 15, "ir_version": 8, "ops": {"Conv": 1}, "precision": "fp32"}
    file = ModelFile(path=tmp_path / "m.onnx", name="m.onnx", sha256="0" * 64, bytes=size)
    return ResolvedModel("m.onnx", "0" * 64, (BenchComponent(**{**fields, **changes}, model=file),))


def facts(*runtimes, **changes):
    return DeviceFacts(wire=1, arch="aarch64", python="3.11", runtimes=list(runtimes), **changes)


def on(resolved, given, profile="pi5", runtime="onnxruntime", provider="cpu"):
    return check(resolved, facts=given, profile=load(profile), runtime=runtime, provider=provider, device="pi5")


def test_a_model_that_fits(tmp_path):
    assert on(model(tmp_path), facts(ORT_132)) == []


@pytest.mark.parametrize(
    ("changes", "given", "words"),
    [
        ({"opset": 17}, facts(ORT_110), ["opset 17", "up to 15", "argus-edge export"]),
        ({"ir_version": 10}, facts(ORT_110), ["IR version 10", "up to 8"]),
        ({}, facts(), ["onnxruntime cannot be used", "pip install", "onnxruntime"]),
        ({}, facts(RuntimeFact(name="onnxruntime", error="died with signal 11")), ["signal 11"]),
        ({"size": 10**10}, facts(ORT_132, memory_available_bytes=10**9), ["10.00 GB", "1.00 GB", "int8"]),
        ({"size": 10**9}, facts(ORT_132, disk_free_bytes=10**8), ["100 MB are free", "runs prune"]),
    ],
)
def test_misfits(tmp_path, changes, given, words):
    profile = "jetson-nano" if ORT_110 in given.runtimes else "pi5"
    with pytest.raises(MisfitError) as caught:
        on(model(tmp_path, **changes), given, profile=profile)
    assert caught.value.exit_code == 4
    for word in words:
        assert word in str(caught.value)


def test_all_reasons_come_at_once(tmp_path):
    with pytest.raises(MisfitError) as caught:
        on(
            model(tmp_path, opset=20, ir_version=10, size=10**10),
            facts(ORT_110, memory_available_bytes=1),
            "jetson-nano",
        )
    assert "opset 20" in caught.value.what
    assert "IR version 10" in caught.value.what
    assert "memory" in caught.value.what


def test_a_provider_that_is_not_there(tmp_path):
    with pytest.raises(MisfitError, match="not cuda"):
        on(model(tmp_path), facts(ORT_132), provider="cuda")


def test_limits_go_by_the_version_that_is_installed():
    pi5 = load("pi5")
    assert limit_of("onnxruntime", "1.32.1", pi5).max_opset == 28
    assert limit_of("onnxruntime", "1.10.0", pi5).max_opset == 15
    assert limit_of("onnxruntime", "99.0", pi5) is None, "what is not known to be refused is tried"
    assert limit_of("onnxruntime", "1.30.0", pi5).max_opset == 28


def test_warnings(tmp_path):
    given = facts(ORT_132, emulated=True, memory_available_bytes=1500, accelerators_unused=["Hailo-8L"])
    said = " ".join(on(model(tmp_path), given))
    assert "swap" in said
    assert "emulated" in said
    assert "Hailo-8L" in said


def test_the_install_command_is_one_that_works_there():
    system = facts(externally_managed=True, python_executable="/usr/bin/python3")
    assert "venv" in install_command("onnxruntime", system, load("pi5"))
    own = facts(python_executable="/home/pi/venv/bin/python")
    assert install_command("litert", own, load("pi5")) == "/home/pi/venv/bin/python -m pip install numpy ai-edge-litert"


def test_runtimes_by_format(tmp_path):
    resolved = model(tmp_path)
    assert choose_runtime(resolved, "auto") == "onnxruntime"
    assert choose_runtime(resolved, "tensorrt") == "tensorrt"
    only_trt = facts(
        RuntimeFact(name="tensorrt", version="10.0"), RuntimeFact(name="onnxruntime", error="not installed")
    )
    assert choose_runtime(resolved, "auto", only_trt) == "tensorrt"
    with pytest.raises(UsageError):
        choose_runtime(resolved, "litert")
    assert choose_provider("onnxruntime", None) == "cpu"
    assert choose_provider("tensorrt", None) == "tensorrt"
    with pytest.raises(UsageError):
        choose_provider("litert", "cuda")
