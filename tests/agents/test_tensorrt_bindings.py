"""TensorRT's Python package, by stand-ins of it and of the CUDA runtime, in both generations of its interface."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

FAKE = Path(__file__).parent / "fakes_tensorrt"
CUDART = """
#include <stdlib.h>
#include <string.h>
static size_t used;
int cudaStreamCreate(void **s) { *s = malloc(1); return 0; }
int cudaStreamSynchronize(void *s) { return 0; }
int cudaMalloc(void **p, size_t n) { *p = malloc(n); used += n; return *p ? 0 : 2; }
int cudaHostAlloc(void **p, size_t n, unsigned f) { *p = malloc(n); return *p ? 0 : 2; }
int cudaMemcpyAsync(void *d, const void *s, size_t n, int kind, void *stream) { memcpy(d, s, n); return 0; }
int cudaMemGetInfo(size_t *f, size_t *t) { *t = 1 << 30; *f = *t - used; return 0; }
"""


@pytest.fixture(scope="module")
def cudart(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no C compiler for the stand-in of the CUDA runtime")
    folder = tmp_path_factory.mktemp("cuda")
    (folder / "cudart.c").write_text(CUDART)
    target = folder / "libcudart.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(target), str(folder / "cudart.c")], check=True)
    return folder


@pytest.fixture(params=["10.3.0", "8.2.1"])
def host(agent, cudart, request):
    agent.environment.update(PYTHONPATH=str(FAKE), LD_LIBRARY_PATH=str(cudart), FAKE_TENSORRT=request.param)
    agent.version = request.param
    return agent


@pytest.fixture
def part(tmp_path):
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.savez(tmp_path / "inputs.npz", x=x)
    np.savez(tmp_path / "golden.npz", **{"in/x/0": x + 1, "out/y/0": 2 * x + 2})
    (tmp_path / "m.onnx").write_text("static")
    return {
        "name": "m",
        "runtime": "tensorrt",
        "provider": "tensorrt",
        "format": "onnx",
        "model": str(tmp_path / "m.onnx"),
        "inputs": str(tmp_path / "inputs.npz"),
        "golden": str(tmp_path / "golden.npz"),
        "options": {"fp16": True},
        "scenario": {"duration_s": 0.2, "min_calls": 5},
        "warmup": {"fixed_calls": 2},
    }


def test_an_engine_is_built_kept_run_and_compared(host, part) -> None:
    first = host.run(part).parts[0]
    assert first.state == "done", first.error
    assert first.runtime_version == host.version
    assert first.build_s > 0
    assert first.parity.max_abs_error == 0.0
    assert first.samples_count >= 5
    assert first.memory.device_peak > 0
    (plan,) = (host.home / "engines").iterdir()
    assert plan.read_bytes() == b"plan FP16"
    second = host.run(part, run="run-2").parts[0]
    assert second.build_s is None
    assert second.load_s > 0


def test_free_dimensions_take_the_shapes_of_the_given_inputs(host, part, tmp_path) -> None:
    Path(part["model"]).write_text("dynamic")
    assert host.run(part).state == "done"
    # Another batch is another engine.
    np.savez(tmp_path / "inputs.npz", x=np.ones((3, 4), np.float32))
    assert host.run({**part, "golden": None}, run="run-2").parts[0].build_s > 0
    error = host.run({**part, "inputs": None, "golden": None}, run="run-3").error
    assert (error.kind, "free dimensions" in error.message) == ("model-rejected", True)


def test_layers_are_profiled(host, part) -> None:
    (row,) = host.run({**part, "profile_ops": True}).parts[0].ops
    assert (row.name, row.calls, row.provider) == ("double", 20, "tensorrt")
    assert row.total_s == pytest.approx(20 * 0.25e-3)


def test_what_is_wrong_is_named(host, part, tmp_path) -> None:
    Path(part["model"]).write_text("broken")
    error = host.run(part).error
    assert (error.kind, "UNSUPPORTED_NODE" in error.message) == ("model-rejected", True)
    Path(part["model"]).write_text("static")
    np.savez(tmp_path / "inputs.npz", x=np.ones((2, 5), np.float32))
    assert host.run(part, run="run-2").error.kind == "input-rejected"
    (tmp_path / "old.plan").write_bytes(b"from another version")
    engine = {**part, "format": "engine", "model": str(tmp_path / "old.plan")}
    assert host.run(engine, run="run-3").error.kind == "model-rejected"
