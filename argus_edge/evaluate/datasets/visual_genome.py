"""Visual Genome: region descriptions as captions, question answers as an optional reasoning cell.

R. Krishna et al. Visual Genome: Connecting Language and Vision Using Crowdsourced Dense Image Annotations. IJCV 2017.
The split is the published one of dense captioning: J. Johnson, A. Karpathy, L. Fei-Fei. DenseCap. CVPR 2016.
"""

from __future__ import annotations

from pathlib import Path

from argus_edge.errors import InputError
from argus_edge.evaluate.datasets.annotations import annotation_errors, iter_json_array, load_json
from argus_edge.evaluate.datasets.base import Dataset, ImageRef, Question, Requirement, missing_files_error

__all__ = ["VisualGenome"]

_HOME = "https://homes.cs.washington.edu/~ranjay/visualgenome/api.html"
_IMAGE_FOLDERS = ("VG_100K", "VG_100K_2", "images/VG_100K", "images/VG_100K_2", "images")


class VisualGenome:
    """The three JSON files of the release, the images, and DenseCap's split."""

    name = "vg"
    optional_tasks = ("reasoning",)
    requirements = (
        Requirement("image_data.json", "images", _HOME),
        Requirement("region_descriptions.json", "regions, used as captions", _HOME),
        Requirement("VG_100K/", "images, part 1", _HOME),
        Requirement("VG_100K_2/", "images, part 2", _HOME),
        Requirement(
            "densecap_splits.json",
            "the published split",
            "https://raw.githubusercontent.com/jcjohnson/densecap/master/info/densecap_splits.json",
        ),
    )

    def missing(self, root: Path) -> list[Requirement]:
        """Return what the folder lacks; the question answers are optional."""
        lacking = [
            item for item in self.requirements if item.path.endswith(".json") and not (root / item.path).is_file()
        ]
        if not any((root / folder).is_dir() for folder in _IMAGE_FOLDERS):
            lacking += [item for item in self.requirements if item.path.endswith("/")]
        return lacking

    def read(self, root: Path, *, name: str, split: str | None = None) -> Dataset:
        """Read the regions and questions of a split (``test`` unless told otherwise; ``all`` needs no split file)."""
        wanted = split or "test"
        lacking = [
            item
            for item in self.missing(root)
            if item.path.endswith(".json") and not (wanted == "all" and item.path == "densecap_splits.json")
        ]
        if lacking:
            raise missing_files_error(self.name, root, lacking)
        ids = _image_ids(root, wanted)
        index = {image_id: position for position, image_id in enumerate(ids)}
        return Dataset(
            name=name,
            kind=self.name,
            split="all" if wanted == "all" else f"densecap-{wanted}",
            images=tuple(ImageRef(id=str(image_id), path=str(_image_path(root, image_id))) for image_id in ids),
            captions=_regions(root / "region_descriptions.json", index),
            questions=_questions(root / "question_answers.json", index),
            optional_tasks=self.optional_tasks,
        )


def _image_ids(root: Path, split: str) -> list[int]:
    path = root / "image_data.json"
    known: list[int] = []
    for entry in iter_json_array(path, dataset="vg"):
        with annotation_errors("vg", f"{path}: image {len(known)}"):
            # Release 1.0 says "id", 1.2 and later "image_id".
            known.append(int(entry["image_id"] if "image_id" in entry else entry["id"]))
    if split == "all":
        return known
    splits_path = root / "densecap_splits.json"
    splits = load_json(splits_path, dataset="vg")
    with annotation_errors("vg", str(splits_path)):
        if split not in splits:
            raise InputError(
                f"No split {split!r}.", where=str(splits_path), next_step=f"choose among {sorted(splits)} and all"
            )
        chosen = {int(image_id) for image_id in splits[split]}
    return [image_id for image_id in known if image_id in chosen]


def _image_path(root: Path, image_id: int) -> Path:
    places = [root / folder / f"{image_id}.jpg" for folder in _IMAGE_FOLDERS]
    return next((place for place in places if place.is_file()), places[0])


def _regions(path: Path, index: dict[int, int]) -> tuple[tuple[str, ...], ...]:
    captions: list[tuple[str, ...]] = [()] * len(index)
    for number, entry in enumerate(iter_json_array(path, dataset="vg")):
        with annotation_errors("vg", f"{path}: entry {number}"):
            image_id = int(entry["id"] if "id" in entry else entry["image_id"])
            if image_id in index:
                phrases = (" ".join(str(region["phrase"]).split()) for region in entry["regions"])
                # The same phrase twice on one image is one caption: it would be its own tie.
                captions[index[image_id]] = tuple(dict.fromkeys(phrase for phrase in phrases if phrase))
    return tuple(captions)


def _questions(path: Path, index: dict[int, int]) -> tuple[Question, ...]:
    if not path.is_file():
        return ()
    questions = []
    for number, entry in enumerate(iter_json_array(path, dataset="vg")):
        with annotation_errors("vg", f"{path}: entry {number}"):
            if int(entry["id"]) not in index:
                continue
            for qa in entry["qas"]:
                text = str(qa["question"])
                questions.append(
                    Question(
                        id=str(qa["qa_id"]),
                        image=index[int(entry["id"])],
                        text=text,
                        answers=(str(qa["answer"]),),
                        # Visual Genome's own six types: what, where, when, who, why, how.
                        type=(text.split() or [""])[0].lower().strip("?,"),
                    )
                )
    return tuple(questions)
