"""Images come out as a person would see them, whatever the file holds; what is broken is said to be."""

from __future__ import annotations

import io

import numpy as np
import pytest

from argus_edge.evaluate.datasets.images import (
    ImageBrokenError,
    ImageMissingError,
    decode_image,
    read_image_bytes,
)

Image = pytest.importorskip("PIL.Image")


def encoded(image, kind="PNG", **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def colour(image, x=0, y=0):
    return image.getpixel((x, y))


def test_grey():
    image = decode_image(encoded(Image.new("L", (3, 2), 77)))
    assert (image.mode, image.size, colour(image)) == ("RGB", (3, 2), (77, 77, 77))


def test_one_bit():
    assert colour(decode_image(encoded(Image.new("1", (2, 2), 1)))) == (255, 255, 255)


def test_palette():
    image = Image.new("RGB", (2, 2), (10, 200, 30)).quantize(4)
    assert image.mode == "P"
    assert colour(decode_image(encoded(image))) == (10, 200, 30)


def test_a_transparent_palette_entry_is_white():
    image = Image.new("P", (2, 1), 0)
    image.putpalette([200, 0, 0, 0, 0, 200])
    image.putpixel((1, 0), 1)
    shown = decode_image(encoded(image, transparency=0))
    assert (colour(shown, 0), colour(shown, 1)) == ((255, 255, 255), (0, 0, 200))


def test_alpha_is_laid_over_white():
    image = Image.new("RGBA", (2, 1), (255, 0, 0, 255))
    image.putpixel((1, 0), (255, 0, 0, 0))
    shown = decode_image(encoded(image))
    assert (colour(shown, 0), colour(shown, 1)) == ((255, 0, 0), (255, 255, 255))
    assert colour(decode_image(encoded(Image.new("LA", (1, 1), (0, 128))))) == pytest.approx((127, 127, 127), abs=1)


@pytest.mark.parametrize(("value", "shown"), [(0, 0), (65535, 255), (32896, 128), (257, 1)])
def test_sixteen_bit_grey_is_scaled_not_cut(value, shown):
    image = Image.fromarray(np.full((2, 2), value, np.uint16))
    assert colour(decode_image(encoded(image))) == (shown,) * 3
    assert colour(decode_image(encoded(image, "TIFF"))) == (shown,) * 3


def test_sixteen_bit_colour():
    # Pillow writes none: a PNG by hand, one pixel of 16 bits a channel.
    import struct
    import zlib

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    pixel = struct.pack(">BHHH", 0, 65535, 32896, 0)
    header = struct.pack(">IIBBBBB", 1, 1, 16, 2, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(pixel)) + chunk(b"IEND", b"")
    assert colour(decode_image(data)) == (255, 128, 0)


def test_cmyk():
    image = Image.new("CMYK", (8, 8), (0, 255, 255, 0))
    red, green, blue = colour(decode_image(encoded(image, "JPEG", quality=95)))
    assert red > 200
    assert max(green, blue) < 60


@pytest.mark.parametrize(("orientation", "top_left"), [(1, "black"), (3, "white"), (6, "white"), (8, "black")])
def test_exif_orientation(orientation, top_left):
    image = Image.new("RGB", (16, 8), "black")
    image.paste("white", (0, 4, 16, 8))  # the lower half is white
    exif = Image.Exif()
    exif[0x0112] = orientation
    shown = decode_image(encoded(image, "PNG", exif=exif))
    assert shown.size == ((16, 8) if orientation in (1, 3) else (8, 16))
    assert colour(shown) == ((255,) * 3 if top_left == "white" else (0,) * 3)


def test_of_an_animation_the_first_frame():
    frames = [Image.new("RGB", (2, 2), name) for name in ("red", "blue")]
    shown = decode_image(encoded(frames[0], "GIF", save_all=True, append_images=frames[1:]))
    assert colour(shown) == (255, 0, 0)


def test_damage_is_found_wherever_it_is():
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    for kind in ("PNG", "JPEG"):
        data = encoded(Image.fromarray(pixels), kind)
        for part in (data[:10], data[: len(data) // 2], data[: len(data) - 40]):
            with pytest.raises(ImageBrokenError):
                decode_image(part)


@pytest.mark.parametrize("data", [b"not an image", b"\x89PNG\r\n\x1a\n", b"GIF89a" + b"\xff" * 30, b"<svg></svg>"])
def test_what_is_no_image_is_said_to_be_none(data):
    with pytest.raises(ImageBrokenError):
        decode_image(data)


def test_whatever_a_decoder_raises_makes_a_broken_image():
    # struct.error from an EXIF entry whose value is no integer, NotImplementedError and RuntimeError from others.
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010F] = "Maker"
    data = bytearray(encoded(Image.new("RGB", (32, 32), "red"), "JPEG", exif=exif))
    tag = data.index(b"\x01\x12\x00\x03")
    seen = set()
    for position in range(tag - 16, tag + 24):
        for value in (0, 1, 2, 7, 12, 255):
            damaged = bytearray(data)
            damaged[position] = value
            try:
                seen.add(decode_image(bytes(damaged)).mode)
            except ImageBrokenError as error:
                seen.add(type(error.__cause__).__name__)
    assert "RGB" in seen
    assert "error" in seen, "struct.error was met and turned into a broken image"


def test_postscript_is_not_run():
    # Pillow would hand it to Ghostscript.
    with pytest.raises(ImageBrokenError, match="recognised"):
        decode_image(encoded(Image.new("RGB", (8, 8), "red"), "EPS"))


def test_floating_point_has_no_one_appearance():
    with pytest.raises(ImageBrokenError, match="floating"):
        decode_image(encoded(Image.fromarray(np.ones((2, 2), np.float32)), "TIFF"))


def test_a_picture_too_large_to_be_meant_is_refused():
    import struct
    import zlib

    header = struct.pack(">IIBBBBB", 200_000, 200_000, 8, 0, 0, 0, 0)
    chunk = struct.pack(">I", 13) + b"IHDR" + header + struct.pack(">I", zlib.crc32(b"IHDR" + header))
    with pytest.raises(ImageBrokenError):
        decode_image(b"\x89PNG\r\n\x1a\n" + chunk)


def test_missing_and_empty_files(tmp_path):
    with pytest.raises(ImageMissingError):
        read_image_bytes(str(tmp_path / "none.png"))
    (tmp_path / "empty.png").write_bytes(b"")
    with pytest.raises(ImageBrokenError, match="empty"):
        read_image_bytes(str(tmp_path / "empty.png"))
