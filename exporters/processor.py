"""Copying a model's tokenizer and image processor into its bundle."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from argus_edge.artifacts import sha256_file
from argus_edge.errors import InputError
from argus_edge.exporters.source import ModelSource, explain
from argus_edge.schema.bundle import BundleFile, ImagePreprocess

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
    """Return the family's preprocessing with the statistics and the filter that the checkpoint's own processor names.

    Raises
    ------
    InputError
        The processor's file is not readable.
    """
    path = bundle / "processor" / "preprocessor_config.json"
    if spec is None or not path.is_file():
        return spec
    try:
        own = json.loads(path.read_text(encoding="utf-8"))
        changes = {
            "mean": own.get("image_mean") or spec.mean,
            "std": own.get("image_std") or spec.std,
            "rescale": own.get("rescale_factor") or spec.rescale,
            "resample": FILTERS.get(own.get("resample"), spec.resample),
        }
        return ImagePreprocess.model_validate({**spec.model_dump(), **changes})
    except (ValueError, AttributeError, TypeError) as error:
        raise InputError(f"The image processor's configuration is not readable: {error}.", where=path.name) from error


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
