"""An exported bundle does what its original does: the same captions, answers and scores in onnxruntime."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from argus_edge.errors import InputError
from argus_edge.evaluate.models import capabilities_of, load_model
from argus_edge.evaluate.models.bundle_base import preprocess_image
from argus_edge.evaluate.models.resolve import resolve_model
from argus_edge.schema.bundle import ImagePreprocess
from tests.support import tiny_vlm

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("onnxscript")
Image = pytest.importorskip("PIL.Image")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def picture(seed, size=(48, 40)):
    pixels = np.random.default_rng(seed).integers(0, 256, (6, 6, 3), np.uint8)
    return Image.fromarray(pixels).resize(size, Image.Resampling.BILINEAR)


IMAGES = [picture(seed) for seed in range(3)]
TEXTS = ["a red cat", "a blue dog on the table", "what colour is the dog"]


EXPORT = """
import sys
from pathlib import Path
from argus_edge.exporters.export import ExportOptions, export_model
export_model(ExportOptions(model=sys.argv[1], out=Path(sys.argv[2]), opset=15))
"""


def export(folder, out):
    """Export in a process of its own: pytest's capture of every logger makes tracing slower by far."""
    subprocess.run([sys.executable, "-c", EXPORT, str(folder), str(out)], check=True, capture_output=True)
    return out


def load(reference, **options):
    return load_model(resolve_model(str(reference), threads=1, **options).spec)


def test_clip(tmp_path):
    folder = tiny_vlm.clip(tmp_path / "clip")
    original, bundle = load(folder), load(export(folder, tmp_path / "bundle"))
    assert capabilities_of(bundle) == ("embed",)
    for method, inputs in (("embed_images", IMAGES), ("embed_texts", TEXTS)):
        expected, found = getattr(original, method)(inputs), getattr(bundle, method)(inputs)
        cosine = (expected * found).sum(axis=1) / np.linalg.norm(expected, axis=1) / np.linalg.norm(found, axis=1)
        assert cosine.min() > 0.99999


def test_blip_captions(tmp_path):
    folder = tiny_vlm.blip(tmp_path / "blip")
    original, bundle = load(folder), load(export(folder, tmp_path / "bundle"))
    assert capabilities_of(bundle) == ("caption",)
    for prompt in ("a picture of", ""):
        assert bundle.caption(IMAGES, prompt) == original.caption(IMAGES, prompt)


def test_blip_matching_scores_pairs(tmp_path):
    from transformers import AutoImageProcessor, AutoTokenizer, BlipForImageTextRetrieval

    folder = tiny_vlm.blip(tmp_path / "blip", "BlipForImageTextRetrieval")
    bundle = load(export(folder, tmp_path / "bundle"))
    assert capabilities_of(bundle) == ("score_pairs",)
    model = BlipForImageTextRetrieval.from_pretrained(folder).eval()
    pixels = AutoImageProcessor.from_pretrained(folder, backend="pil")(images=IMAGES, return_tensors="pt")
    tokens = AutoTokenizer.from_pretrained(folder)(TEXTS, padding=True, return_tensors="pt")
    wanted = model(input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"], **pixels).itm_score
    expected = (wanted[:, 1] - wanted[:, 0]).detach().numpy()
    np.testing.assert_allclose(bundle.score_pairs(IMAGES, TEXTS), expected, atol=1e-4)


def test_lxmert(tmp_path):
    folder = tiny_vlm.lxmert(tmp_path / "lxmert")
    rng = np.random.default_rng(0)
    arrays = {f"{i}.features": rng.normal(size=(5, 8)).astype(np.float32) for i in range(3)}
    arrays |= {f"{i}.boxes": rng.uniform(size=(5, 4)).astype(np.float32) for i in range(3)}
    np.savez(tmp_path / "features.npz", **arrays)
    features = tmp_path / "features.npz"
    original, bundle = load(folder, features=features), load(export(folder, tmp_path / "bundle"), features=features)
    assert bundle.answer(["0", "1", "2"], TEXTS) == original.answer(["0", "1", "2"], TEXTS)


def test_gemma3(tmp_path):
    folder = tiny_vlm.gemma3(tmp_path / "gemma3")
    original, bundle = load(folder), load(export(folder, tmp_path / "bundle"))
    assert capabilities_of(bundle) == ("score_pairs", "caption", "answer", "choose")
    np.testing.assert_allclose(bundle.next_token(IMAGES, TEXTS), original.next_token(IMAGES, TEXTS), atol=1e-3)
    assert bundle.answer(IMAGES, TEXTS) == original.answer(IMAGES, TEXTS)


def test_qwen2_5_vl(tmp_path):
    folder = tiny_vlm.qwen2_5_vl(tmp_path / "qwen")
    original, bundle = load(folder), load(export(folder, tmp_path / "bundle"))
    # The bundle's image has a fixed size; at that size the original sees the same.
    how = bundle.manifest.preprocess
    images = [picture(seed, (how.width, how.height)) for seed in range(3)]
    np.testing.assert_allclose(bundle.next_token(images, TEXTS), original.next_token(images, TEXTS), atol=1e-3)
    assert bundle.answer(images, TEXTS) == original.answer(images, TEXTS)


@pytest.mark.parametrize("size", [(48, 40), (40, 48), (33, 90), (32, 32), (101, 67)])
def test_clip_preprocessing_is_that_of_its_processor(size):
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    how = ImagePreprocess(
        height=32,
        width=32,
        resize="shortest-edge-then-centre-crop",
        resample="bicubic",
        rescale=1 / 255,
        mean=[0.48145466, 0.4578275, 0.40821073],
        std=[0.26862954, 0.26130258, 0.27577711],
        layout="NCHW",
    )
    image = picture(4, size)
    processor = CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    expected = processor(images=[image], return_tensors="np")["pixel_values"][0]
    np.testing.assert_allclose(preprocess_image(image, how), expected, atol=1e-5)


def test_random_weights_and_changed_files_are_refused(tmp_path):
    bundle = export(tiny_vlm.lxmert(tmp_path / "lxmert"), tmp_path / "bundle")
    model = next(bundle.rglob("*.onnx"))
    whole = model.read_bytes()
    model.write_bytes(whole[:-1] + b"x")
    with pytest.raises(InputError):
        resolve_model(str(bundle), threads=1)
    model.write_bytes(whole)
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["random_weights"] = True
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="random weights"):
        resolve_model(str(bundle), threads=1)
