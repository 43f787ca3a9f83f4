"""Copying a model's tokenizer and image processor into its bundle."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from argus_edge.artifacts import sha256_file
from argus_edge.errors import InputError
from argus_edge.exporters.source import ModelSource, explain
from argus_edge.schema.bundle import BundleFile, Generation, ImagePreprocess

# Data only: never Python files, never pickles.
PATTERNS = (
    "config.json",
    "generation_config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "chat_template.json",
    "chat_template.jinja",
)


# PIL's numbers of its filters, as processors write them.
FILTERS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}


def checkpoint_preprocess(spec: ImagePreprocess | None, bundle: Path) -> ImagePreprocess | None:
    """Return the family's preprocessing with what the checkpoint's own processor names: sizes, statistics, filter.

    None where it does what a bundle cannot say, such as cutting less than it resized to.

    Raises
    ------
    InputError
        The processor's file is not readable.
    """
    if spec is None:
        return None
    try:
        own = image_processor_config(bundle / "processor")
        resize = own_resize(own, spec)
        resample = FILTERS.get(own["resample"]) if own.get("resample") is not None else spec.resample
        if resize is None or resample is None:
            return None
        plain = own.get("do_normalize") is False
        changes = {
            "resize": resize,
            "mean": [0.0] * 3 if plain else own.get("image_mean") or spec.mean,
            "std": [1.0] * 3 if plain else own.get("image_std") or spec.std,
            "rescale": 1.0 if own.get("do_rescale") is False else own.get("rescale_factor") or spec.rescale,
            "resample": resample,
        }
        return ImagePreprocess.model_validate({**spec.model_dump(), **changes})
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise InputError(
            f"The image processor's configuration is not readable: {error}.", where="preprocessor_config.json"
        ) from error


def image_processor_config(folder: Path) -> dict[str, Any]:
    """Return the image processor's configuration: transformers 5 saves it inside ``processor_config.json``."""
    for name, key in (("processor_config.json", "image_processor"), ("preprocessor_config.json", None)):
        if (folder / name).is_file():
            found = json.loads((folder / name).read_text(encoding="utf-8"))
            found = found.get(key) if key else found
            if found is not None:
                return dict(found)
    return {}


def own_resize(own: dict[str, Any], spec: ImagePreprocess) -> str | None:
    """Return how the checkpoint's processor brings an image to the vision input's size; None for another way."""
    wanted = {"height": spec.height, "width": spec.width}
    size, crop = own.get("size"), own.get("crop_size") or wanted
    if own.get("do_resize") is False:
        return None
    if size is None or (isinstance(size, dict) and "longest_edge" in size):
        return spec.resize  # nothing said, or Qwen2-VL's bounds, within which the family has chosen
    if isinstance(size, int):  # as processors were saved before 2023
        size = {"height": size, "width": size} if spec.resize == "stretch" else {"shortest_edge": size}
    if isinstance(crop, int):
        crop = {"height": crop, "width": crop}
    cut = crop if own.get("do_center_crop", spec.resize != "stretch") else None
    if size == wanted and cut in (None, wanted):
        return "stretch"
    if size == {"shortest_edge": max(wanted.values())} and cut == wanted:
        return "shortest-edge-then-centre-crop"
    return None


def checkpoint_ends(generation: Generation | None, bundle: Path) -> Generation | None:
    """Return how to generate with the end tokens that the checkpoint's own settings name, where text is a prompt's.

    They go before the configuration's, as they do in transformers.

    Raises
    ------
    InputError
        The settings' file is not readable.
    """
    path = bundle / "processor" / "generation_config.json"
    if generation is None or generation.image_features is None or not path.is_file():
        return generation
    try:
        named = json.loads(path.read_text(encoding="utf-8")).get("eos_token_id")
        ends = [int(end) for end in (named if isinstance(named, list) else [named]) if end is not None]
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise InputError(f"The generation settings are not readable: {error}.", where=path.name) from error
    return generation.model_copy(update={"eos_token_ids": ends or generation.eos_token_ids})


def copy_processor(source: ModelSource, bundle: Path) -> list[BundleFile]:
    """Copy the files that turn images and texts into inputs to ``processor/`` of a bundle.

    Returns
    -------
    list of BundleFile
        Empty for a configuration that ships with the tool, which has no such files.

    Raises
    ------
    InputError
        The hub cannot be reached.
    """
    if source.location is None:
        return []
    origin = Path(source.location)
    if not origin.is_dir():
        from huggingface_hub import snapshot_download

        try:
            origin = Path(snapshot_download(source.location, revision=source.revision, allow_patterns=list(PATTERNS)))
        except Exception as error:
            raise explain(error, source.location) from error
    target = bundle / "processor"
    target.mkdir()
    copied = []
    for name in PATTERNS:
        if (origin / name).is_file():
            shutil.copyfile(origin / name, target / name)
            size = (target / name).stat().st_size
            copied.append(BundleFile(path=f"processor/{name}", sha256=sha256_file(target / name), bytes=size))
    return copied
