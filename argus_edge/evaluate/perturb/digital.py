"""Digital changes, with ImageNet-C's strengths: brightness, contrast, saturation, elastic, pixelation, JPEG."""

from __future__ import annotations

import io

import numpy as np
import numpy.typing as npt
from PIL import Image as PillowImage

from argus_edge.evaluate.perturb.pixels import gaussian, sample, to_uint8

__all__ = ["brightness", "contrast", "elastic_transform", "jpeg_compression", "pixelate", "saturate"]

Image = npt.NDArray[np.uint8]


def brightness(image: Image, severity: int, rng: np.random.Generator) -> Image:
    """Raise the value of HSV; hue and saturation stay."""
    more = 255 * (0.1, 0.2, 0.3, 0.4, 0.5)[severity - 1]
    value = image.max(axis=2, keepdims=True).astype(np.float32)
    raised = np.minimum(value + more, 255)
    # With hue and saturation fixed, the three channels grow in proportion; black turns grey.
    scaled = image * (raised / np.maximum(value, 1))
    return to_uint8(np.where(value > 0, scaled, raised))


def saturate(image: Image, severity: int, rng: np.random.Generator) -> Image:
    """Scale and shift the saturation of HSV; hue and value stay. Grey counts as red, as HSV has it by convention."""
    scale, shift = ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2))[severity - 1]
    value = image.max(axis=2, keepdims=True).astype(np.float32)
    depth = value - image
    saturation = depth.max(axis=2, keepdims=True) / np.maximum(value, 1)
    wanted = np.clip(saturation * scale + shift, 0, 1)
    coloured = depth * (wanted / np.where(saturation > 0, saturation, 1))
    reddened = value * wanted * np.array([0, 1, 1], np.float32)
    return to_uint8(value - np.where(saturation > 0, coloured, reddened))


def contrast(image: Image, severity: int, rng: np.random.Generator) -> Image:
    """Pull every value towards its channel's mean."""
    share = (0.4, 0.3, 0.2, 0.1, 0.05)[severity - 1]
    means = image.mean(axis=(0, 1))
    levels = np.arange(256)[:, None] * share + means * (1 - share)
    table = to_uint8(levels)
    return np.stack([table[image[..., channel], channel] for channel in range(3)], axis=2)


def elastic_transform(image: Image, severity: int, rng: np.random.Generator) -> Image:
    """Displace pixels by a smooth random field."""
    strength = 250 * (0.05, 0.065, 0.085, 0.1, 0.12)[severity - 1]
    height, width = image.shape[:2]
    reach, sigma = 0.005 * height, (0.01 * height, 0.01 * width)
    fields = rng.uniform(-reach, reach, size=(2, height, width)).astype(np.float32)
    right, down = (gaussian(field, sigma, mode="reflect", truncate=3) * np.float32(strength) for field in fields)
    rows = np.arange(height, dtype=np.float32)[:, None] + down
    columns = np.arange(width, dtype=np.float32) + right
    return to_uint8(sample(image, rows, columns))


def pixelate(image: Image, severity: int, rng: np.random.Generator) -> Image:
    """Average into fewer, larger pixels."""
    share = (0.6, 0.5, 0.4, 0.3, 0.25)[severity - 1]
    height, width = image.shape[:2]
    small = (max(1, int(width * share)), max(1, int(height * share)))
    picture = PillowImage.fromarray(image).resize(small, PillowImage.Resampling.BOX)
    return np.asarray(picture.resize((width, height), PillowImage.Resampling.NEAREST))


def jpeg_compression(image: Image, severity: int, rng: np.random.Generator) -> Image:
    """Compress as JPEG, and decode."""
    quality = (25, 18, 15, 10, 7)[severity - 1]
    buffer = io.BytesIO()
    PillowImage.fromarray(image).save(buffer, "JPEG", quality=quality)
    return np.asarray(PillowImage.open(buffer))
