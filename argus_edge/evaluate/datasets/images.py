"""From an image file to the 8-bit RGB picture that a person would see."""

from __future__ import annotations

import functools
import io
import warnings

import numpy as np
from PIL import Image, ImageCms, ImageOps, UnidentifiedImageError

__all__ = ["ImageBrokenError", "ImageMissingError", "decode_image", "read_image_bytes"]

MAX_FILE_BYTES = 1 << 30
_DEEP_GREY = ("I", "I;16", "I;16L", "I;16B", "I;16N")
# What photographs come in. Pillow reads more; among those is EPS, which it hands to Ghostscript to run.
_FORMATS = ["AVIF", "BMP", "DIB", "GIF", "ICO", "JPEG", "JPEG2000", "PCX", "PNG", "PPM", "SGI", "TGA", "TIFF", "WEBP"]


class ImageBrokenError(Exception):
    """An image cannot be read or decoded; the message is the reason, one line."""


class ImageMissingError(ImageBrokenError):
    """The image's file is not there."""


def read_image_bytes(path: str) -> bytes:
    """Return the bytes of an image file.

    Raises
    ------
    ImageBrokenError
        The file is missing, unreadable, empty or larger than 1 GiB.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError as error:
        raise ImageMissingError("the file is missing") from error
    except OSError as error:
        raise ImageBrokenError(error.strerror or "cannot be read") from error
    if not data:
        raise ImageBrokenError("the file is empty")
    if len(data) > MAX_FILE_BYTES:
        raise ImageBrokenError("the file is larger than 1 GiB")
    return data


@functools.cache
def _formats() -> list[str]:
    Image.init()
    return [name for name in _FORMATS if name in Image.OPEN]  # AVIF came with Pillow 11.3


def decode_image(data: bytes) -> Image.Image:
    """Decode an image file's bytes into an RGB picture, upright and flattened.

    EXIF orientation is applied; transparency is laid over white; palettes are resolved; 16-bit grey is scaled by its
    full range; CMYK goes through its own colour profile where it carries one; of an animation the first frame counts.

    Parameters
    ----------
    data
        The file's bytes: AVIF, BMP, GIF, ICO, JPEG, JPEG 2000, PCX, PNG, PPM, SGI, TGA, TIFF or WebP.

    Returns
    -------
    PIL.Image.Image
        Mode ``RGB``.

    Raises
    ------
    ImageBrokenError
        Not an image, truncated, too large, or of a kind (floating point) that has no one appearance.
    """
    try:
        with warnings.catch_warnings():
            # Of odd metadata, and from 89 million pixels; from 179 million Pillow refuses, which is the limit here.
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data), formats=_formats()) as opened:
                opened.load()
                return _to_rgb(ImageOps.exif_transpose(opened))
    except ImageBrokenError:
        raise
    except UnidentifiedImageError as error:
        raise ImageBrokenError("not an image that can be recognised") from error
    except Exception as error:
        # Damaged files make Pillow's decoders raise nearly anything: struct.error, RuntimeError, NotImplementedError …
        raise ImageBrokenError(f"cannot be decoded: {str(error)[:200] or type(error).__name__}") from error


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode in _DEEP_GREY:
        grey = np.asarray(image).astype(np.int64).clip(0, 65535)
        return Image.fromarray(((grey + 128) // 257).astype(np.uint8)).convert("RGB")
    if image.mode == "F":
        raise ImageBrokenError("floating-point pixels have no one appearance; convert them to 8 or 16 bits")
    if image.mode == "CMYK":
        return _cmyk_to_rgb(image)
    if image.has_transparency_data:
        layered = image.convert("RGBA")
        flat = Image.new("RGBA", layered.size, "white")
        flat.alpha_composite(layered)
        return flat.convert("RGB")
    return image.convert("RGB")


def _cmyk_to_rgb(image: Image.Image) -> Image.Image:
    profile = image.info.get("icc_profile")
    if profile:
        try:
            converted = ImageCms.profileToProfile(
                image, ImageCms.ImageCmsProfile(io.BytesIO(profile)), ImageCms.createProfile("sRGB"), outputMode="RGB"
            )
        except ImageCms.PyCMSError:
            # A damaged profile: the plain formula is what a viewer falls back to.
            converted = None
        if converted is not None:
            return converted
    return image.convert("RGB")
