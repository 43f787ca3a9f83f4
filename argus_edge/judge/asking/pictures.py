"""A picture as a judge is to see it: upright, transparency over white, 16-bit grey scaled, as a person sees it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from argus_edge.errors import MissingDependencyError
from argus_edge.judge.asking.base import ItemRefusedError

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["encode_picture", "open_picture"]

# What any chat API takes. Others, and what needs turning or flattening, are sent as PNG.
_SENT_AS_THEY_ARE = {"JPEG": "image/jpeg", "PNG": "image/png"}
_ORIENTATION = 0x0112


def open_picture(path: Path) -> Image:
    """Return a picture in RGB.

    Raises
    ------
    ItemRefusedError
        It cannot be read or decoded.
    """
    return _decoded(path)[1]


def encode_picture(path: Path) -> tuple[str, bytes]:
    """Return a picture's media type and bytes: the file's own where any reader shows them alike, else a PNG.

    Raises
    ------
    ItemRefusedError
        It cannot be read or decoded.
    """
    from PIL import Image

    data, picture = _decoded(path)
    with Image.open(io.BytesIO(data)) as opened:
        plain = opened.mode in ("L", "RGB") and not opened.has_transparency_data
        if plain and opened.format in _SENT_AS_THEY_ARE and opened.getexif().get(_ORIENTATION, 1) == 1:
            return _SENT_AS_THEY_ARE[opened.format], data
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return "image/png", buffer.getvalue()


def _decoded(path: Path) -> tuple[bytes, Image]:
    try:
        from argus_edge.evaluate.datasets.images import ImageBrokenError, decode_image, read_image_bytes
    except ImportError as error:
        raise MissingDependencyError("pillow", "judge", needed_for="showing a judge pictures") from error
    try:
        data = read_image_bytes(str(path))
        return data, decode_image(data)
    except ImageBrokenError as error:
        raise ItemRefusedError(f"the image cannot be read: {error}", where=str(path)) from error
