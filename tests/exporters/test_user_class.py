"""A class of one's own, exported: components by name, free axes found, a dual encoder that `eval` can feed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from argus_edge.artifacts import read_artifact
from argus_edge.errors import InputError, UsageError
from argus_edge.exporters.export import ExportOptions, export_model
from argus_edge.exporters.user_class import UserFamily, open_class
from argus_edge.schema.bundle import BundleManifest

SOURCE = """
import torch
from torch import nn

class Image(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 8, 8)
    def forward(self, pixel_values):
        return self.conv(pixel_values).mean((2, 3))

class Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 8)
    def forward(self, input_ids, attention_mask):
        mask = attention_mask[:, :, None].float()
        states = self.words(input_ids) * mask
        return {"text_embeds": states.sum(1) / mask.sum(1), "states": states}

class Tiny:
    image_preprocess = {"height": 32, "width": 32, "resize": "stretch", "resample": "bicubic",
                        "mean": [0.5] * 3, "std": [0.5] * 3}
    def __init__(self):
        torch.manual_seed(0)
        self.image, self.text = Image(), Text()
    def export_components(self):
        ids = torch.linspace(0, 49, 12).long()[None]
        return {"image": (self.image, {"pixel_values": torch.zeros(1, 3, 32, 32)}),
                "text": (self.text, {"input_ids": ids, "attention_mask": torch.ones_like(ids)})}

class One(Tiny):
    def export_components(self):
        return {"whole": (self.image, {"pixel_values": torch.zeros(1, 3, 32, 32)})}

class Nothing: pass
class Wrong(Tiny):
    def export_components(self): return {"image": self.image}
class Failing(Tiny):
    def export_components(self): raise RuntimeError("no weights here")
class Ragged(Tiny):
    def export_components(self):
        parts = super().export_components()
        ids = {"input_ids": torch.zeros(1, 9).long(), "attention_mask": torch.ones(1, 12).long()}
        return {"text": (parts["text"][0], ids)}
class Odd(Tiny):
    image_preprocess = {"height": 32}
"""


@pytest.fixture
def towers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "towers.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "towers", raising=False)
    return tmp_path


def family(name: str) -> UserFamily:
    return open_class(f"towers:{name}", random_weights=False, seed=0)[1]


def test_free_axes_are_found_by_running_the_example_at_two_sizes(towers: Path) -> None:
    image, text = family("Tiny").components()
    assert image.outputs[0].name == "image_embeds"
    assert image.outputs[0].shape == ["batch", 8]
    assert [spec.shape for spec in text.inputs] == [["batch", "sequence"]] * 2
    assert {spec.name: spec.shape for spec in text.outputs} == {
        "text_embeds": ["batch", 8],
        "states": ["batch", "sequence", 8],
    }
    assert text.inputs[0].values is not None
    assert (text.inputs[0].values.minimum, text.inputs[0].values.maximum) == (0, 49)
    assert (image.role, text.role) == ("image-encoder", "text-encoder")


def test_an_image_and_a_text_tower_are_a_dual_encoder_anything_else_one_call_each(towers: Path) -> None:
    both, one = family("Tiny"), family("One")
    assert (both.name, both.unit_of_work().task) == ("dual-encoder", "retrieval")
    assert (one.name, one.unit_of_work().task) == ("class", "component")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Nothing", "no method export_components"),
        ("Wrong", "must give NAME"),
        ("Failing", "no weights here"),
        ("Odd", "image_preprocess does not hold together"),
        ("Absent", "no class 'Absent'"),
    ],
)
def test_what_does_not_hold_together_is_named(towers: Path, name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        family(name)


def test_integer_inputs_of_different_lengths_are_refused(towers: Path) -> None:
    with pytest.raises(InputError, match="different lengths"):
        family("Ragged").components()


def test_a_class_brings_its_own_weights(towers: Path) -> None:
    with pytest.raises(UsageError, match="brings its own weights"):
        open_class("towers:Tiny", random_weights=True, seed=0)


@pytest.mark.slow
def test_the_bundle_computes_what_the_class_computes_and_eval_can_feed_it(towers: Path) -> None:
    from PIL import Image

    from argus_edge.evaluate.models.bundle_base import preprocess_image

    manifest = export_model(ExportOptions(model="towers:Tiny", out=towers / "bundle", opset=15))
    assert manifest.parity_passed
    assert manifest.source_id == "towers:Tiny"
    kept = read_artifact(towers / "bundle" / "manifest.json", BundleManifest)
    assert kept.preprocess is not None
    import onnxruntime
    from towers import Tiny

    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 50, 3), np.uint8))
    pixels = preprocess_image(picture, kept.preprocess)[None]
    session = onnxruntime.InferenceSession(str(towers / "bundle" / kept.component("image").file.path))
    (found,) = session.run(["image_embeds"], {"pixel_values": pixels})
    with torch.no_grad():
        expected = Tiny().image(torch.from_numpy(pixels)).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-5)
