"""One pass over a dataset's images: what each file's bytes hash to, and which cannot be decoded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from PIL import Image

from argus_edge.evaluate.datasets.base import Dataset, ImageRef
from argus_edge.evaluate.datasets.images import ImageBrokenError, ImageMissingError, decode_image, read_image_bytes
from argus_edge.evaluate.datasets.vcr import draw_boxes

__all__ = ["ImageStatus", "dataset_sha256", "inspect_image", "inspect_images", "open_image"]


@dataclass(frozen=True)
class ImageStatus:
    """An image's content hash (its bytes and its boxes' file), or why it cannot be used."""

    sha256: str
    reason: str = ""
    missing: bool = False


def _read(ref: ImageRef) -> tuple[bytes, bytes]:
    return read_image_bytes(ref.path), read_image_bytes(ref.boxes_path) if ref.boxes_path else b""


def open_image(ref: ImageRef, perturb: Callable[[Image.Image], Image.Image] | None = None) -> Image.Image:
    """Return an image as a model sees it.

    Parameters
    ----------
    perturb
        Applied to the photograph before boxes are drawn on it: what disturbs a camera does not disturb the labels.

    Raises
    ------
    ImageBrokenError
        The image or its boxes cannot be read.
    """
    data, boxes = _read(ref)
    image = decode_image(data)
    if perturb is not None:
        image = perturb(image)
    return draw_boxes(image, boxes, ref.drawn) if ref.boxes_path else image


def inspect_image(ref: ImageRef) -> ImageStatus:
    """Decode one image and hash its bytes; a broken one is described, not raised."""
    try:
        data, boxes = _read(ref)
    except ImageBrokenError as error:
        return ImageStatus("", str(error), missing=isinstance(error, ImageMissingError))
    sha256 = hashlib.sha256(data + boxes).hexdigest()
    try:
        image = decode_image(data)
        if ref.boxes_path:
            draw_boxes(image, boxes, ref.drawn)
    except ImageBrokenError as error:
        return ImageStatus(sha256, str(error))
    return ImageStatus(sha256)


def inspect_images(images: tuple[ImageRef, ...], *, threads: int) -> Iterator[ImageStatus]:
    """Yield the status of every image, in order; at most a few decoded images are in memory."""
    with ThreadPoolExecutor(threads) as pool:
        for start in range(0, len(images), 16 * threads):
            yield from pool.map(inspect_image, images[start : start + 16 * threads])


def dataset_sha256(dataset: Dataset, image_hashes: list[str]) -> str:
    """Return the hash of everything that was evaluated on: ids, annotations, images' bytes and boxes, in order."""
    digest = hashlib.sha256()
    for index, (ref, image_hash) in enumerate(zip(dataset.images, image_hashes, strict=True)):
        captions = dataset.captions[index] if dataset.captions else ()
        digest.update(json.dumps([ref.id, image_hash, ref.drawn, captions]).encode())
    for question in dataset.questions:
        digest.update(json.dumps(list(vars(question).values())).encode())
    digest.update(json.dumps([dataset.split, dataset.gallery_captions, dataset.answer_set]).encode())
    return digest.hexdigest()
