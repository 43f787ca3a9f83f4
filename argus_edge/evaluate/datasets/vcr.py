"""VCR: questions about people and objects that are boxed and named in the image; four answers, then four rationales.

R. Zellers et al. From Recognition to Cognition: Visual Commonsense Reasoning. CVPR 2019. People and objects are named
by their class and their number, as the paper's figures show: ``[person1]``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from argus_edge.evaluate.datasets.annotations import annotation_errors, iter_json_lines
from argus_edge.evaluate.datasets.base import Dataset, ImageRef, Question, Requirement, missing_files_error
from argus_edge.evaluate.datasets.images import ImageBrokenError

__all__ = ["Vcr", "draw_boxes", "render_tokens"]

_SOURCE = "https://visualcommonsense.com/download/"

# Okabe and Ito's colours, which stay apart for colour-blind readers.
_COLOURS = ("#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7")
_BEFORE_PUNCTUATION = re.compile(r" (?=[.,?!;:%)\]]|'\w|n't\b)")


class Vcr:
    """``val.jsonl`` with ``vcr1images/``: each image has its boxes in a metadata file beside it."""

    name = "vcr"
    requirements = (
        Requirement("val.jsonl", "questions, answers, rationales", _SOURCE),
        Requirement("vcr1images/", "images and metadata", _SOURCE),
    )

    def missing(self, root: Path) -> list[Requirement]:
        """Return what the folder lacks."""
        lacking = [] if _annotations(root, "val") else [self.requirements[0]]
        return lacking if _image_folder(root).is_dir() else [*lacking, self.requirements[1]]

    def read(self, root: Path, *, name: str, split: str | None = None) -> Dataset:
        """Read the questions of a split (``val`` unless told otherwise; the test split has no labels)."""
        wanted = split or "val"
        path = _annotations(root, wanted)
        if path is None:
            lacking = [Requirement(f"{wanted}.jsonl", "questions, answers, rationales", _SOURCE)]
            raise missing_files_error(self.name, root, lacking)
        folder = _image_folder(root)
        index: dict[str, int] = {}
        files: list[tuple[str, str, str]] = []
        drawn: list[set[int]] = []
        questions: list[Question] = []
        for number, entry in iter_json_lines(path, dataset=self.name):
            with annotation_errors(self.name, f"{path}:{number}"):
                image_id = str(entry["img_id"])
                if image_id not in index:
                    index[image_id] = len(files)
                    files.append((image_id, _inside(folder, entry["img_fn"]), _inside(folder, entry["metadata_fn"])))
                    drawn.append(set())
                position = index[image_id]
                answer, rationale = _pair(entry, position)
                questions += [answer, rationale]
                texts = [entry["question"], *entry["answer_choices"], *entry["rationale_choices"]]
                drawn[position].update(
                    int(i) for text in texts for part in text if isinstance(part, list) for i in part
                )
        return Dataset(
            name=name,
            kind=self.name,
            split=wanted,
            images=tuple(
                ImageRef(id=image_id, path=path, boxes_path=boxes, drawn=tuple(sorted(named)))
                for (image_id, path, boxes), named in zip(files, drawn, strict=True)
            ),
            questions=tuple(questions),
        )


def _annotations(root: Path, split: str) -> Path | None:
    places = (root / f"{split}.jsonl", root / "vcr1annots" / f"{split}.jsonl")
    return next((place for place in places if place.is_file()), None)


def _image_folder(root: Path) -> Path:
    return root / "vcr1images"


def _inside(folder: Path, name: Any) -> str:
    parts = str(name).split("/")
    if any(part in ("", ".", "..") or "\\" in part for part in parts):
        raise ValueError(f"the file name {str(name)[:100]!r} leaves the folder")
    return str(folder.joinpath(*parts))


def _pair(entry: dict[str, Any], image: int) -> tuple[Question, Question]:
    """Return the answer question and the rationale question, which is asked with the right answer given."""
    objects = [str(name) for name in entry["objects"]]
    text = render_tokens(entry["question"], objects)
    answers = tuple(render_tokens(choice, objects) for choice in entry["answer_choices"])
    rationales = tuple(render_tokens(choice, objects) for choice in entry["rationale_choices"])
    right, reason = int(entry["answer_label"]), int(entry["rationale_label"])
    if len(answers) != 4 or len(rationales) != 4 or not (0 <= right < 4 and 0 <= reason < 4):
        raise ValueError("four answers and four rationales with labels 0 to 3 are expected")
    group = str(entry["annot_id"])
    return (
        Question(f"{group}/a", image, text, (answers[right],), answers, right, "q_a", group),
        Question(
            f"{group}/r", image, f"{text} {answers[right]}", (rationales[reason],), rationales, reason, "qa_r", group
        ),
    )


def render_tokens(tokens: Sequence[str | list[int]], objects: Sequence[str]) -> str:
    """Return a question, answer or rationale as text, with objects by name.

    Examples
    --------
    >>> render_tokens(["Why", "is", [0, 2], "smiling", "?"], ["person", "car", "person"])
    'Why is [person1] and [person3] smiling?'
    """
    parts = []
    for token in tokens:
        if isinstance(token, list):
            parts.append(" and ".join(f"[{objects[i]}{i + 1}]" for i in token))
        else:
            parts.append(str(token))
    return _BEFORE_PUNCTUATION.sub("", " ".join(parts))


def draw_boxes(image: Image.Image, metadata: bytes, drawn: Sequence[int]) -> Image.Image:
    """Return a copy of an image with the named boxes drawn on it.

    Parameters
    ----------
    metadata
        VCR's metadata file: ``boxes`` (left, top, right, bottom, score, in pixels), ``names``, ``width``, ``height``.
    drawn
        Indices of the boxes to draw.

    Raises
    ------
    ImageBrokenError
        The metadata is not as published.
    """
    try:
        document = json.loads(metadata)
        boxes = [tuple(float(value) for value in document["boxes"][i][:4]) for i in drawn]
        names = [f"{document['names'][i]}{i + 1}"[:40] for i in drawn]
        scale_x, scale_y = image.width / float(document["width"]), image.height / float(document["height"])
    except (KeyError, TypeError, ValueError, IndexError, ZeroDivisionError, RecursionError) as error:
        raise ImageBrokenError(f"the boxes' metadata cannot be read: {str(error)[:100]}") from error
    picture = image.copy()
    pen = ImageDraw.Draw(picture)
    size = max(12, min(picture.size) // 28)
    font = ImageFont.load_default(size)
    for number, (box, label) in enumerate(zip(boxes, names, strict=True)):
        colour = _COLOURS[number % len(_COLOURS)]
        left, right = sorted((box[0] * scale_x, box[2] * scale_x))
        top, bottom = sorted((box[1] * scale_y, box[3] * scale_y))
        pen.rectangle((left, top, right, bottom), outline=colour, width=max(2, size // 6))
        text_box = pen.textbbox((left + 2, top + 1), label, font=font)
        pen.rectangle((left, top, text_box[2] + 2, text_box[3] + 2), fill=colour)
        pen.text((left + 2, top + 1), label, font=font, fill="black")
    return picture
