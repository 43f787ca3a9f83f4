"""Copying a model's tokenizer and image processor into its bundle."""

from __future__ import annotations

import shutil
from pathlib import Path

from argus_edge.artifacts import sha256_file
from argus_edge.exporters.source import ModelSource, explain
from argus_edge.schema.bundle import BundleFile

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
