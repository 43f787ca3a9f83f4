"""The user's own images and texts as inputs: for static quantisation and for golden cases that mean something."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from argus_edge.errors import InputError, MissingDependencyError
from argus_edge.exporters.plan import Arrays, ComponentPlan
from argus_edge.schema.bundle import ImagePreprocess

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp")
MOST_IMAGES, MOST_TEXTS, LONGEST_TEXT = 1024, 4096, 4096


@dataclass
class Calibration:
    """Prepared images and tokenised texts; falsy where there are none.

    ``earlier`` holds what components that ran before made of the samples, for those that take it as input.
    """

    images: list[np.ndarray] = field(default_factory=list)
    texts: list[list[int]] = field(default_factory=list)
    pad_id: int = 0
    earlier: dict[str, tuple[Arrays, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.images or self.texts)

    def remember(self, component: str, outputs: tuple[Arrays, ...]) -> None:
        """Keep a component's outputs on the first golden case for the components after it."""
        if self:
            self.earlier[component] = outputs


def load_calibration(folder: Path, preprocess: ImagePreprocess | None, processor: Path) -> Calibration:
    """Read every image of a folder, every line of its ``.txt`` files, and the captions of its ``data.jsonl``.

    Parameters
    ----------
    folder
        Searched with its subfolders, in order of name.
    preprocess
        What the model's vision input expects.
    processor
        Folder whose ``processor/`` holds the model's tokenizer, if it came with one.

    Raises
    ------
    InputError
        No such folder, nothing in it, or an image that cannot be read.
    """
    if not folder.is_dir():
        raise InputError("No such calibration folder.", where=str(folder))
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    images = [path for path in paths if path.suffix.lower() in IMAGE_SUFFIXES][:MOST_IMAGES]
    lines: list[str] = []
    for path in paths:
        if path.suffix.lower() == ".txt":
            lines += [line.strip() for line in path.read_text(encoding="utf-8", errors="replace").splitlines()]
        elif path.name == "data.jsonl":
            lines += _captions(path)
    lines = [line[:LONGEST_TEXT] for line in lines if line][:MOST_TEXTS]
    if not images and not lines:
        raise InputError(
            "The calibration folder holds neither images nor texts.",
            where=str(folder),
            next_step=f"put images ({', '.join(IMAGE_SUFFIXES)}) and .txt files with one text a line there, "
            "or give the folder of a dataset of your own",
        )
    found = Calibration()
    if images and preprocess is not None:
        found.images = [prepare_image(path, preprocess) for path in images]
    tokenizer = _tokenizer(processor / "processor") if lines else None
    if tokenizer is not None:
        found.texts = [tokenizer(line).input_ids for line in lines]
        found.pad_id = int(tokenizer.pad_token_id or 0)
    return found


def _captions(path: Path) -> list[str]:
    """Return the captions of a dataset of the user's own (docs/your-own-images.md), in their order."""
    found: list[str] = []
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"Line {number} is not JSON: {error}.", where=str(path)) from error
        captions = row.get("captions", []) if isinstance(row, dict) else []
        if not isinstance(captions, list):
            raise InputError(f"Line {number}: captions are a list of texts.", where=str(path))
        found += [caption.strip() for caption in captions if isinstance(caption, str)]
    return found


def _tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    if not any(folder.glob("tokenizer*")) and not any(folder.glob("vocab*")):
        return None
    return AutoTokenizer.from_pretrained(str(folder))


def prepare_image(path: Path, spec: ImagePreprocess) -> np.ndarray:
    """Return an image as the vision input expects it, without the batch axis.

    Returns
    -------
    numpy.ndarray
        float32 of shape (3, height, width).

    Raises
    ------
    InputError
        Not a readable image.
    """
    try:
        from argus_edge.evaluate.datasets.images import ImageBrokenError, decode_image, read_image_bytes
        from argus_edge.evaluate.models.bundle_base import preprocess_image
    except ImportError as error:
        raise MissingDependencyError("pillow", "export", needed_for="Reading calibration images") from error
    try:
        image = decode_image(read_image_bytes(str(path)))
    except ImageBrokenError as error:
        raise InputError(f"Not a readable image: {error}.", where=str(path)) from error
    return preprocess_image(image, spec)


def calibrated(
    plan: ComponentPlan,
    dims: dict[str, int],
    inputs: tuple[Arrays, ...],
    calibration: Calibration,
    bindings: dict[str, str],
) -> tuple[tuple[Arrays, ...], Literal["random", "calibration"]]:
    """Replace made-up inputs by the user's own where there are such.

    Images go to ``pixel_values``, texts to ``input_ids`` with their mask, outputs of earlier components to the inputs
    that they feed. Texts are padded to the length at hand, or repeated to it in a decoder, whose prompt has no gaps.

    Returns
    -------
    inputs
        As many as were given.
    origin
        ``"calibration"`` where a main input (pixels or tokens) was replaced.
    """
    replaced = []
    used = False
    for index, sample in enumerate(inputs):
        arrays = dict(sample)
        if calibration.images and "pixel_values" in arrays:
            pixels = calibration.images[index % len(calibration.images)]
            if pixels.size == arrays["pixel_values"].size:
                arrays["pixel_values"] = pixels.reshape(arrays["pixel_values"].shape)
                used = True
        if calibration.texts and "input_ids" in arrays and arrays["input_ids"].shape[0] == 1:
            text = calibration.texts[index % len(calibration.texts)]
            _put_text(arrays, text, calibration.pad_id, repeat=plan.role == "decoder")
            used = True
        for name in arrays:
            component, _, output = bindings.get(name, "").partition(".")
            made = calibration.earlier.get(component)
            if made and made[index % len(made)][output].shape == arrays[name].shape:
                arrays[name] = made[index % len(made)][output]
        replaced.append(arrays)
    return tuple(replaced), "calibration" if used else "random"


def _put_text(arrays: Arrays, text: list[int], pad_id: int, *, repeat: bool) -> None:
    ids = arrays["input_ids"]
    length = ids.shape[-1]
    if repeat:
        ids[0] = np.resize(np.asarray(text, ids.dtype), length)
        return
    kept = text if len(text) <= length else [*text[: length - 1], text[-1]]
    ids[0] = [*kept, *[pad_id] * (length - len(kept))]
    if "attention_mask" in arrays:
        arrays["attention_mask"][0] = [1] * len(kept) + [0] * (length - len(kept))
