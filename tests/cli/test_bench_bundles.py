"""`argus-edge bench` of exported bundles, and of a server, as typed: what a user reads and what a program reads."""

import json
import subprocess
import sys

import pytest

from tests.support.chat_server import serving
from tests.support.tiny_bundle import answering_bundle

MAIN = "from argus_edge.cli.main import main; main()"


@pytest.fixture(scope="module")
def quick_home(tmp_path_factory):
    """A record of runs of the test's own."""
    return tmp_path_factory.mktemp("data")


def argus(folder, *words):
    import os

    environment = {**os.environ, "ARGUS_EDGE_DATA": str(folder), "COLUMNS": "150", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", MAIN, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=600)


def test_a_server_as_typed(quick_home):
    with serving() as (url, _):
        done = argus(
            quick_home, "bench", "--runtime", "server", "--url", url, "--device", "local", "--duration", "0.3s",
            "--warmup", "1", "--output-tokens", "8", "--image", "32x32", "--json", "-",
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    (measurement,) = report["measurements"]
    assert measurement["generation"]["output_tokens"] == 8
    assert "about" in done.stderr


def test_a_bundle_as_typed(quick_home):
    bundle = answering_bundle(quick_home / "answers")
    done = argus(
        quick_home, "bench", bundle, "--device", "local", "--duration", "0.3s", "--warmup", "1",
        "--prompt-tokens", "16", "--output-tokens", "6",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "2 components and the whole" in done.stderr
    for words in ("end-to-end", "first token", "between tokens", "16 tokens read (4 the image's), 6 written"):
        assert words in done.stdout
    assert "steps" in done.stdout
    assert "preprocessing" in done.stdout
    # The report's file is a source of the page.
    page = argus(quick_home, "report", *quick_home.glob("*.json"), "--markdown", "-")
    assert "### Writing text" in page.stdout, page.stderr
    assert "### Where the time of a unit of work goes" in page.stdout


def test_lengths_that_are_not_possible(quick_home):
    done = argus(quick_home, "bench", "--device", "local", "--output-tokens", "4")
    assert done.returncode == 2
    assert "belong to a model that writes text" in done.stderr


@pytest.mark.slow
@pytest.mark.timeout(1200)  # an export, then three processes that import torch, on a machine that may be busy
@pytest.mark.parametrize(("family", "form"), [("clip", "onnx"), ("gemma3", "onnx"), ("gemma3", "torch")])
def test_exported_models_as_typed(quick_home, family, form):
    pytest.importorskip("torch", reason="needs the export extra")
    pytest.importorskip("transformers", minversion="5", reason="the families need transformers 5")
    from tests.support import tiny_vlm

    model = quick_home / f"{family}-model"
    model.mkdir(exist_ok=True)
    getattr(tiny_vlm, family)(model)
    bundle = quick_home / f"{family}-{form}-bundle"
    done = argus(quick_home, "export", model, "--format", form, "--precision", "fp32", "--out", bundle)
    assert done.returncode == 0, done.stderr
    done = argus(
        quick_home, "bench", bundle, "--device", "local", "--duration", "0.5s", "--warmup", "2", "--json", "-"
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["headline"] == "end-to-end"
    whole = report["measurements"][-1]
    names = [step["name"] for step in whole["steps"]]
    assert names == (["image", "text"] if family == "clip" else ["vision", "prefill", "decode"])
    # One process holds all: less than the sum of two, more than either's file.
    assert whole["memory_headline"]["bytes"] < sum(
        each["memory_headline"]["bytes"] for each in report["measurements"][:-1]
    )
    if family == "gemma3":
        assert whole["generation"]["output_tokens"] == 32
        assert whole["generation"]["kv_cache_bytes"] > 0
