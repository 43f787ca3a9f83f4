"""Datasets in the layouts that their authors publish, and the user's own folder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from argus_edge.errors import InputError, UsageError
from argus_edge.evaluate.datasets.base import Dataset, ImageRef, Question, Requirement
from argus_edge.registry import Registry

__all__ = [
    "DATASETS",
    "FOLDER_NAMES",
    "Dataset",
    "ImageRef",
    "Question",
    "Requirement",
    "parse_data_option",
    "read_dataset",
    "readable",
    "sample_folder",
]

# Each class has name, requirements, missing(root) and read(root, name=, split=).
DATASETS = Registry(
    "dataset",
    {
        "coco": "argus_edge.evaluate.datasets.karpathy:Coco",
        "flickr30k": "argus_edge.evaluate.datasets.karpathy:Flickr30k",
        "vg": "argus_edge.evaluate.datasets.visual_genome:VisualGenome",
        "clevr": "argus_edge.evaluate.datasets.clevr:Clevr",
        "vcr": "argus_edge.evaluate.datasets.vcr:Vcr",
        "mine": "argus_edge.evaluate.datasets.folder:Folder",
        "sample": "argus_edge.evaluate.datasets.folder:Sample",
    },
)

# `all=FOLDER` looks for each dataset under these names.
FOLDER_NAMES = {
    "coco": ("coco", "COCO", "mscoco"),
    "flickr30k": ("flickr30k", "Flickr30k", "flickr30k-images"),
    "vg": ("vg", "visual_genome", "VisualGenome", "visualgenome"),
    "clevr": ("clevr", "CLEVR_v1.0", "CLEVR"),
    "vcr": ("vcr", "VCR", "vcr1"),
}


def sample_folder() -> Path:
    """Return the folder of the sample photographs that is installed with the package."""
    return Path(str(resources.files("argus_edge.evaluate.datasets") / "sample"))


def parse_data_option(values: tuple[str, ...] | list[str]) -> dict[str, Path]:
    """Return dataset name -> folder from ``NAME=PATH[,NAME=PATH…]`` options.

    ``all=FOLDER`` stands for every dataset that is found under its usual name in that folder; ``sample`` needs no path.

    Raises
    ------
    UsageError
        No such dataset, a name without a folder, or a name twice.
    InputError
        ``all=FOLDER`` where no dataset is found.
    """
    found: dict[str, Path] = {}
    for part in (part.strip() for value in values for part in value.split(",") if part.strip()):
        name, equals, path = part.partition("=")
        if name == "all" and equals:
            entries = _find_all(Path(path))
        elif name == "sample" and not equals:
            entries = {"sample": sample_folder()}
        elif not equals or not path:
            raise UsageError(f"{part!r} names no folder.", next_step=f"write it as {name or 'coco'}=FOLDER")
        else:
            if name not in DATASETS:
                raise UsageError(
                    f"Unknown dataset {name!r}.", next_step=f"choose one of: {', '.join(DATASETS)}, or all=FOLDER"
                )
            entries = {name: Path(path)}
        for key, folder in entries.items():
            if key in found:
                raise UsageError(f"The dataset {key} is given twice.", next_step="give each dataset once")
            found[key] = folder
    if not found:
        raise UsageError("No dataset is given.", next_step="--data sample, or --data mine=FOLDER")
    return found


def _find_all(root: Path) -> dict[str, Path]:
    found = {}
    with readable(root):
        for name, folders in FOLDER_NAMES.items():
            present = [root / folder for folder in folders if (root / folder).is_dir()]
            if present:
                found[name] = present[0]
    if not found:
        raise InputError(
            "No dataset is found there.",
            where=str(root),
            next_step=f"name its folders {', '.join(FOLDER_NAMES)}, or give each as NAME=FOLDER",
        )
    return found


def read_dataset(name: str, folder: Path, *, split: str | None = None) -> Dataset:
    """Read a dataset's annotations; images are only named, not opened.

    Raises
    ------
    InputError
        The folder may not be read, or is not as published; the error says what is missing and where it comes from.
    """
    with readable(folder):
        dataset: Dataset = DATASETS[name]().read(folder, name=name, split=split)
    return dataset


@contextlib.contextmanager
def readable(folder: Path) -> Iterator[None]:
    """Turn an ``OSError`` from looking into a dataset's folder into an :class:`InputError`."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"The folder cannot be read: {error.strerror}.",
            where=str(error.filename or folder),
            next_step="check the path and its permissions",
        ) from error
