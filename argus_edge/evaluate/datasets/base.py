"""What every dataset is read into: images by path, captions and questions by image. Nothing is decoded here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from argus_edge.errors import InputError
from argus_edge.text import pasted

__all__ = ["Dataset", "ImageRef", "Question", "Requirement", "folder_within", "missing_files_error"]

MAX_TEXT = 4000


@dataclass(frozen=True)
class ImageRef:
    """One image: where it is, and what is to be drawn on it before a model sees it.

    Attributes
    ----------
    boxes_path
        File of the named boxes (VCR's metadata), read when the image is; empty where nothing is drawn.
    drawn
        Indices of the boxes to draw.
    """

    id: str
    path: str
    boxes_path: str = ""
    drawn: tuple[int, ...] = ()


@dataclass(frozen=True)
class Question:
    """One question about one image.

    Attributes
    ----------
    image
        Index into the dataset's images.
    answers
        Accepted answers; of a question with choices, the right choice.
    choices
        Empty for a free answer.
    type
        What accuracy is broken down by.
    group
        Questions of one group count as one item, right only if all of them are (VCR's Q->AR).
    """

    id: str
    image: int
    text: str
    answers: tuple[str, ...]
    choices: tuple[str, ...] = ()
    correct: int | None = None
    type: str = ""
    group: str = ""


@dataclass(frozen=True)
class Requirement:
    """A file or folder that a dataset needs, and where its authors publish it."""

    path: str
    what: str
    source: str


@dataclass(frozen=True)
class Dataset:
    """A dataset's annotations in memory and its images by path.

    Attributes
    ----------
    name
        The name in reports and budgets (``coco``, ``mine`` …).
    captions
        For each image, its reference captions; empty where the dataset has none.
    gallery_captions
        How many captions of an image enter the retrieval gallery, the first ones; None for all. (The field's 5K test
        on COCO has five an image, 25,000 in all, though some images have six or seven.)
    answer_set
        The answers that occur, for models that can only choose among candidates; empty where there are none.
    closed_answers
        A free answer counts as the one member of ``answer_set`` that it names (CLEVR), not by its whole text.
    notes
        What a reader should know (images without captions left out …).
    optional_tasks
        Tasks measured on request only.
    """

    name: str
    kind: str
    split: str
    images: tuple[ImageRef, ...]
    captions: tuple[tuple[str, ...], ...] = ()
    questions: tuple[Question, ...] = ()
    gallery_captions: int | None = None
    answer_set: tuple[str, ...] = ()
    closed_answers: bool = False
    notes: tuple[str, ...] = ()
    optional_tasks: tuple[str, ...] = ()

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that this dataset has annotations for."""
        found = []
        if any(self.captions):
            found += ["retrieval", "captioning"]
        if self.questions:
            found.append("reasoning")
        return tuple(found)

    def select(self, keep: Sequence[int]) -> Dataset:
        """Return the dataset with only the images of these indices, in this order, and their annotations."""
        new_index = {old: new for new, old in enumerate(keep)}
        return replace(
            self,
            images=tuple(self.images[i] for i in keep),
            captions=tuple(self.captions[i] for i in keep) if self.captions else (),
            questions=tuple(
                replace(question, image=new_index[question.image])
                for question in self.questions
                if question.image in new_index
            ),
        )


def missing_files_error(dataset: str, folder: Path, missing: Sequence[Requirement]) -> InputError:
    """Return the error that lists what a dataset's folder lacks and where it comes from."""
    wrong = "The folder does not" if folder.is_dir() else "There is no such folder to"
    lines = "; ".join(f"{item.path} ({item.what})" for item in missing)
    inner = folder_within(folder, missing)
    return InputError(
        f"{wrong} hold {dataset} as its authors publish it; missing: {lines}.",
        where=str(folder),
        next_step=f"it is one folder deeper: {pasted(f'{dataset}={inner}')}"
        if inner
        else f"get it from {missing[0].source}, then: argus-edge data check {pasted(f'{dataset}={folder}')}",
    )


def folder_within(folder: Path, missing: Sequence[Requirement]) -> Path | None:
    """Return the one folder in this one that holds all that this one lacks: what an archive was unpacked into."""
    if not missing or not folder.is_dir():
        return None
    try:
        # os.path: what may not be looked into (a disk's lost+found) holds nothing.
        found = [each for each in folder.iterdir() if all(os.path.exists(each / item.path) for item in missing)]
    except OSError:
        return None
    return found[0] if len(found) == 1 else None
