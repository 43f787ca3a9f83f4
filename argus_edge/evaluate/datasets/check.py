"""What a dataset's folder holds: counts, broken and missing images, missing files and where they come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from argus_edge.evaluate.datasets import DATASETS, Requirement, read_dataset, readable
from argus_edge.evaluate.datasets.index import dataset_sha256, inspect_images

__all__ = ["DatasetCheck", "check_dataset"]


@dataclass(frozen=True)
class DatasetCheck:
    """The findings on one dataset; ``ok`` where it can be evaluated on as a whole."""

    name: str
    folder: str
    split: str
    images: int
    captions: int
    questions: int
    tasks: tuple[str, ...]
    missing_files: tuple[Requirement, ...]
    missing_images: tuple[str, ...]
    broken: tuple[tuple[str, str], ...]
    sha256: str | None

    @property
    def ok(self) -> bool:
        """Whether nothing is missing or broken."""
        return not (self.missing_files or self.missing_images or self.broken)


def check_dataset(
    name: str,
    folder: Path,
    *,
    split: str | None = None,
    threads: int = 2,
    progress: Callable[[int, int], None] | None = None,
) -> DatasetCheck:
    """Read a dataset's annotations and decode every one of its images.

    Parameters
    ----------
    progress
        Called with (images seen, images in all).

    Raises
    ------
    InputError
        The annotations are there but not as published. (What is missing is a finding, not an error.)
    """
    with readable(folder):
        lacking = tuple(DATASETS[name]().missing(folder))
    if any(not requirement.path.endswith("/") for requirement in lacking):
        return DatasetCheck(name, str(folder), split or "", 0, 0, 0, (), lacking, (), (), None)
    dataset = read_dataset(name, folder, split=split)
    kept, hashes, missing, broken = [], [], [], []
    for index, status in enumerate(inspect_images(dataset.images, threads=threads)):
        ref = dataset.images[index]
        if status.missing:
            missing.append(ref.id)
        elif status.reason:
            broken.append((ref.id, status.reason))
        else:
            kept.append(index)
            hashes.append(status.sha256)
        if progress:
            progress(index + 1, len(dataset.images))
    return DatasetCheck(
        name=name,
        folder=str(folder),
        split=dataset.split,
        images=len(dataset.images),
        captions=sum(map(len, dataset.captions)),
        questions=len(dataset.questions),
        tasks=dataset.tasks,
        missing_files=lacking,
        missing_images=tuple(missing),
        broken=tuple(broken),
        sha256=dataset_sha256(dataset.select(kept), hashes),
    )
