"""Where a model runs: a GPU that is not there is missed before the data is read; one on another machine is not."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from argus_edge import api
from argus_edge.cli.evaluate import evaluate
from argus_edge.errors import HostError, UsageError
from argus_edge.evaluate.models import load_model
from argus_edge.evaluate.models.resolve import resolve_model
from tests.support import tiny_bundle, tiny_vlm

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("PIL")


@pytest.fixture
def folder(tmp_path):
    return str(tiny_vlm.clip(tmp_path / "clip"))


@pytest.fixture
def bundle(tmp_path):
    made = tiny_bundle.retrieval_bundle(tmp_path / "bundle")
    manifest = made / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"random_weights": False}))
    return str(made)


@pytest.fixture
def one_gpu(monkeypatch):
    """As torch answers on a machine with one."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: True)


@pytest.mark.parametrize("compute", ["gpu", "cuda:", "cuda:x", "CUDA:0", "cpu:0"])
def test_no_such_place(folder, compute):
    with pytest.raises(UsageError, match="Unknown compute device"):
        resolve_model(folder, threads=1, compute=compute)


def test_no_gpu_here(folder, bundle, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    with pytest.raises(UsageError, match="torch sees no CUDA device"):
        resolve_model(folder, threads=1, compute="cuda:0")
    with pytest.raises(UsageError, match="no CUDA provider"):
        resolve_model(bundle, threads=1, compute="cuda:0")


def test_a_number_beyond_those_that_are_there(folder, one_gpu):
    assert resolve_model(folder, threads=1, compute="cuda:0").spec.dtype == "bfloat16"
    assert resolve_model(folder, threads=1, compute="cuda").spec.dtype == "bfloat16"
    with pytest.raises(UsageError, match="sees 1 CUDA device") as caught:
        resolve_model(folder, threads=1, compute="cuda:1")
    assert "cuda:0" in caught.value.next_step


def test_the_gpus_of_a_cluster_need_not_be_here(folder, bundle):
    assert resolve_model(folder, threads=1, compute="cuda:0", here=False).spec.dtype == "bfloat16"
    assert resolve_model(bundle, threads=1, compute="cuda", here=False).spec.compute == "cuda"


def test_a_model_that_the_gpu_has_no_room_for(folder, one_gpu, monkeypatch):
    def full(self, *_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 594.00 MiB.\nmore")

    found = resolve_model(folder, threads=1, compute="cuda:0")
    monkeypatch.setattr(torch.nn.Module, "to", full)
    with pytest.raises(HostError, match="cannot be put on cuda:0: CUDA out of memory"):
        load_model(found.spec)


def test_an_onnxruntime_that_falls_back_to_the_cpu_is_not_taken_for_a_gpu(bundle, monkeypatch):
    # The GPU build lists its provider on a machine without a driver, too, and then computes on the CPU.
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    found = resolve_model(bundle, threads=1, compute="cuda:0")
    with pytest.raises(UsageError, match="could not start CUDA"):
        load_model(found.spec)


@pytest.mark.parametrize(("backend", "expected"), [("local", True), ("ray", False)])
def test_a_backend_says_where_the_gpus_are(tmp_path, monkeypatch, backend, expected):
    asked = []

    def resolve(model, *, here, **_):
        asked.append(here)
        raise UsageError("far enough")

    monkeypatch.setattr("argus_edge.evaluate.models.resolve.resolve_model", resolve)
    line = ["m", "--data", "sample", "--backend", backend, "--out", str(tmp_path)]
    CliRunner().invoke(evaluate, line)
    with pytest.raises(UsageError, match="far enough"):
        api.evaluate("m", data={"mine": tmp_path}, out=tmp_path, backend=backend)
    assert asked == [expected] * 2
