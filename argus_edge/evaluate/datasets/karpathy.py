"""COCO captions and Flickr30k in Karpathy's split: ``dataset_coco.json`` and ``dataset_flickr30k.json``.

A. Karpathy, L. Fei-Fei. Deep Visual-Semantic Alignments for Generating Image Descriptions. CVPR 2015.
"""

from __future__ import annotations

import abc
from pathlib import Path
from typing import Any

from argus_edge.errors import InputError
from argus_edge.evaluate.datasets.annotations import annotation_errors, load_json
from argus_edge.evaluate.datasets.base import Dataset, ImageRef, Requirement, missing_files_error

__all__ = ["Coco", "Flickr30k"]

_KARPATHY = "https://cs.stanford.edu/people/karpathy/deepimagesent/caption_datasets.zip"


class _Karpathy(abc.ABC):
    """Reads one of Karpathy's files; what differs between the two datasets is below."""

    name: str
    annotations: str
    image_folders: tuple[str, ...]
    requirements: tuple[Requirement, ...]

    @abc.abstractmethod
    def image_id(self, entry: dict[str, Any]) -> str:
        """Return the image's id as the dataset's authors number it."""

    def find_annotations(self, root: Path) -> Path | None:
        """Return the split's file, wherever in the folder its usual places are."""
        for place in (root, root / "annotations", root / "karpathy", root / "caption_datasets"):
            if (place / self.annotations).is_file():
                return place / self.annotations
        return None

    def missing(self, root: Path) -> list[Requirement]:
        """Return what the folder lacks."""
        lacking = [] if self.find_annotations(root) else [self.requirements[0]]
        # Of the folder itself only what it holds counts: it is there in any case.
        if not any((root / folder).is_dir() for folder in self.image_folders if folder != ".") and not any(
            root.glob("*.jpg")
        ):
            lacking.append(self.requirements[1])
        return lacking

    def read(self, root: Path, *, name: str, split: str | None = None) -> Dataset:
        """Read the annotations of a split (``test`` unless told otherwise).

        Raises
        ------
        InputError
            Files are missing, the annotations are not as published, or there is no such split.
        """
        wanted = split or "test"
        path = self.find_annotations(root)
        if path is None:
            raise missing_files_error(self.name, root, self.missing(root))
        document = load_json(path, dataset=self.name)
        with annotation_errors(self.name, str(path)):
            entries = document["images"]
            chosen = [entry for entry in entries if entry["split"] == wanted]
        if not chosen:
            splits = sorted({str(entry.get("split")) for entry in entries})
            raise InputError(f"No image of the split {wanted!r}.", where=str(path), next_step=f"choose among {splits}")
        images, captions = [], []
        for number, entry in enumerate(chosen):
            with annotation_errors(self.name, f"{path}: image {number} of split {wanted}"):
                images.append(ImageRef(id=self.image_id(entry), path=str(self.image_path(root, entry))))
                captions.append(tuple(str(sentence["raw"]).strip() for sentence in entry["sentences"]))
        return Dataset(
            name=name,
            kind=self.name,
            split=f"karpathy-{wanted}",
            images=tuple(images),
            captions=tuple(captions),
            gallery_captions=5,
        )

    def image_path(self, root: Path, entry: dict[str, Any]) -> Path:
        """Return the first place where the image is, or the usual one."""
        filename = _plain_name(entry["filename"])
        places = [root / folder / filename for folder in self.image_folders]
        return next((place for place in places if place.is_file()), places[0])


def _plain_name(value: Any) -> str:
    name = str(value)
    if "/" in name or "\\" in name or name in ("", ".", ".."):
        raise ValueError(f"the file name {name[:100]!r} leaves the folder")
    return name


class Coco(_Karpathy):
    """COCO captions, Karpathy's test split: 5,000 images of val2014 with five captions or more each."""

    name = "coco"
    annotations = "dataset_coco.json"
    image_folders = ("val2014", "images/val2014", "images", "train2014", "images/train2014", ".")
    requirements = (
        Requirement("dataset_coco.json", "captions and Karpathy's split", _KARPATHY),
        Requirement("val2014/", "images", "http://images.cocodataset.org/zips/val2014.zip"),
    )

    def image_id(self, entry: dict[str, Any]) -> str:
        """COCO's own image id."""
        return str(entry["cocoid"])


class Flickr30k(_Karpathy):
    """Flickr30k, Karpathy's test split: 1,000 images with five captions each."""

    name = "flickr30k"
    annotations = "dataset_flickr30k.json"
    # Kaggle's copy of it has a folder within a folder of one name.
    image_folders = ("flickr30k-images", "flickr30k_images/flickr30k_images", "flickr30k_images", "images", ".")
    requirements = (
        Requirement("dataset_flickr30k.json", "captions and Karpathy's split", _KARPATHY),
        Requirement("flickr30k-images/", "images", "https://shannon.cs.illinois.edu/DenotationGraph/ (on request)"),
    )

    def image_id(self, entry: dict[str, Any]) -> str:
        """Flickr's photo number, the file's name without its ending."""
        return str(entry["filename"]).rsplit(".", 1)[0]
