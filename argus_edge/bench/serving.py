"""A server that is driven on the device: where it is, what is asked of it, and the pictures that it is shown."""

from __future__ import annotations

import re
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from argus_edge.artifacts import host_errors
from argus_edge.bench.end_to_end import OUTPUT_TOKENS
from argus_edge.bench.model_types import BenchComponent, ResolvedModel
from argus_edge.bench.options import Options
from argus_edge.errors import InputError, UsageError

SERVER = "server"
PROMPT_TOKENS = 64
# Made-up pictures: as many different ones, each of squares of one colour, so that their files stay small.
PICTURES = 8
SQUARE = 16
MAX_SIDE = 4096
MAX_IMAGE_BYTES = 20 << 20
MAGIC = (b"\x89PNG", b"\xff\xd8\xff", b"RIFF", b"GIF8")
SERVED_NOTE = "Driven on the device itself: the time of a request is what a client there waits."


@dataclass(frozen=True)
class Served:
    """What is asked of a server.

    Attributes
    ----------
    url
        As the device sees it; ends in ``/v1``.
    model
        Its name there; None: the one that it serves.
    prompt_tokens, output_tokens
        Of each request.
    pictures
        Contents of picture files, one in each request, in turn; empty: text alone.
    """

    url: str
    model: str | None
    prompt_tokens: int
    output_tokens: int
    pictures: tuple[bytes, ...] = ()

    @property
    def unit(self) -> str:
        """What one request is, in words; equal across a comparison."""
        shown = " and one image" if self.pictures else ""
        return (
            f"one request answered: a prompt of about {self.prompt_tokens} tokens{shown} read, "
            f"{self.output_tokens} tokens written"
        )


def served_of(model: str | None, options: Options) -> Served | None:
    """Return what is asked of a server; None where none is driven.

    Raises
    ------
    UsageError
        Options that do not go together.
    InputError
        A picture that cannot be read.
    """
    if options.runtime != SERVER:
        for option, value in (("--url", options.url), ("--image", options.images)):
            if value:
                raise UsageError(f"{option} belongs to --runtime server.", next_step="add --runtime server")
        return None
    if options.url is None:
        raise UsageError(
            "Where is the server?", next_step="--url http://127.0.0.1:8080/v1, as it is reached on the device"
        )
    try:
        parts = urlsplit(options.url)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        usable = False
    if not usable or parts.username or len(options.url) > 2000:
        raise UsageError(f"Cannot read --url {options.url[:200]!r}.", next_step="e.g. http://127.0.0.1:8080/v1")
    useless: dict[str, object] = {
        "--provider": options.provider,
        "--threads": options.threads,
        "--batch": options.batch if options.batch != 1 else None,
        "--profile-ops": options.profile_ops,
    }
    for option, asked in useless.items():
        if asked:
            raise UsageError(f"{option} is the server's own to decide.", next_step="give it when you start the server")
    return Served(
        url=options.url,
        model=model,
        prompt_tokens=options.prompt_tokens or PROMPT_TOKENS,
        output_tokens=options.output_tokens or OUTPUT_TOKENS,
        pictures=tuple(picture for image in options.images for picture in pictures(image)),
    )


def served_model(name: str | None, url: str) -> ResolvedModel:
    """Return what stands for the served model until the server has said its name."""
    component = BenchComponent(name=SERVER, format="none", model=None, inputs=())
    return ResolvedModel(
        name=name or f"server at {urlsplit(url).netloc}", sha256=None, components=(component,), notes=(SERVED_NOTE,)
    )


def pictures(image: str) -> list[bytes]:
    """Return the pictures that ``--image`` means: a file's, or made-up ones of a size.

    Raises
    ------
    UsageError
        A size that cannot be.
    InputError
        A file that is no picture.
    """
    size = re.fullmatch(r"(\d{1,5})x(\d{1,5})", image)
    if size and not Path(image).exists():
        width, height = int(size[1]), int(size[2])
        if not (1 <= width <= MAX_SIDE and 1 <= height <= MAX_SIDE):
            raise UsageError(f"--image {image}: sides are 1 to {MAX_SIDE} pixels.")
        return [made_up(width, height, seed) for seed in range(PICTURES)]
    path = Path(image)
    if not path.is_file():
        raise InputError("No such picture.", where=image, next_step="--image FILE, or --image 448x448 for made-up ones")
    with host_errors(path):
        content = path.read_bytes()
    if len(content) > MAX_IMAGE_BYTES or not content.startswith(MAGIC):
        raise InputError(f"Not a PNG, JPEG, WebP or GIF of at most {MAX_IMAGE_BYTES >> 20} MiB.", where=image)
    return [content]


def made_up(width: int, height: int, seed: int) -> bytes:
    """Return a PNG of coloured squares."""
    colours = np.random.default_rng(seed).integers(0, 256, (-(-height // SQUARE), -(-width // SQUARE), 3), np.uint8)
    pixels = colours.repeat(SQUARE, axis=0).repeat(SQUARE, axis=1)[:height, :width]
    # Each row begins with its filter: none.
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, width * 3)], axis=1).tobytes()

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
