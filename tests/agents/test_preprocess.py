"""A picture becomes the input that the models' own processors make of it, with Pillow and with numpy alone."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from argus_edge.agents import preprocess

Image = pytest.importorskip("PIL.Image", reason="Pillow is what the processors use")

from argus_edge.evaluate.models.bundle_base import preprocess_image
from argus_edge.schema.bundle import ImagePreprocess

MEAN, STD = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]


def how(**changes):
    fields = {
        "height": 224,
        "width": 224,
        "resize": "stretch",
        "resample": "bicubic",
        "rescale": 1 / 255,
        "mean": MEAN,
        "std": STD,
        "layout": "NCHW",
    }
    return ImagePreprocess(**{**fields, **changes})


def picture(height, width):
    """A photograph's smooth shades with sharp edges in them."""
    rows, columns = np.mgrid[:height, :width]
    planes = [128 + 100 * np.sin(rows / 17 + k) * np.cos(columns / (11 + k)) for k in range(3)]
    image = np.stack(planes, axis=-1)
    image[height // 3 : height // 2, width // 4 : width // 2] = (255, 0, 30)
    return image.clip(0, 255).astype(np.uint8)


@pytest.mark.parametrize("resample", ["nearest", "bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize("resize", ["stretch", "shortest-edge-then-centre-crop"])
@pytest.mark.parametrize("size", [(480, 640), (640, 480), (100, 90), (224, 224)])
def test_it_is_what_pillow_makes_of_it(resample, resize, size) -> None:
    spec = how(resample=resample, resize=resize)
    image = picture(*size)
    ours = preprocess.preparer(spec.model_dump(), *size)(image)
    theirs = preprocess_image(Image.fromarray(image), spec)
    pillow = preprocess.with_pillow(spec.model_dump(), *size)(image)
    assert pillow.shape == theirs.shape
    assert np.allclose(pillow, theirs, atol=1e-5)
    assert ours.dtype == np.float32
    assert ours.shape == theirs.shape == (3, 224, 224)
    # Pillow computes in fixed point: a level or two is all that may differ.
    levels = np.abs(ours - theirs) * np.array(STD, np.float32)[:, None, None] * 255
    assert levels.max() <= 2.01
    assert np.mean(levels) < 0.3


@pytest.mark.parametrize("library", ["Pillow", "numpy"])
def test_what_is_timed_is_told(library, monkeypatch) -> None:
    if library == "numpy":
        monkeypatch.setitem(sys.modules, "PIL", None)
    spec = {**how(height=32, width=32).model_dump(), "picture": [48, 64]}
    figures = preprocess.measure(spec)
    assert len(figures["preprocess_s"]) == preprocess.CALLS
    assert min(figures["preprocess_s"]) > 0
    assert figures["preprocess_with"].startswith(library + " ")
