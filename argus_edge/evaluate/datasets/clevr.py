"""CLEVR v1.0: questions about rendered scenes, with its closed set of 28 answers.

J. Johnson et al. CLEVR: A Diagnostic Dataset for Compositional Language and Elementary Visual Reasoning. CVPR 2017.
"""

from __future__ import annotations

from pathlib import Path

from argus_edge.evaluate.datasets.annotations import annotation_errors, iter_json_array
from argus_edge.evaluate.datasets.base import Dataset, ImageRef, Question, Requirement, missing_files_error

__all__ = ["ANSWERS", "QUESTION_TYPES", "Clevr"]

_SOURCE = "https://dl.fbaipublicfiles.com/clevr/CLEVR_v1.0.zip"

ANSWERS = (
    *("yes", "no"),
    *(str(number) for number in range(11)),
    *("gray", "red", "blue", "green", "brown", "purple", "cyan", "yellow"),
    *("cube", "sphere", "cylinder"),
    *("rubber", "metal"),
    *("large", "small"),
)

# The last function of a question's program -> the paper's question type (its figure 2 and table 3).
QUESTION_TYPES = {
    "exist": "exist",
    "count": "count",
    "equal_integer": "compare_integer",
    "less_than": "compare_integer",
    "greater_than": "compare_integer",
    "query_size": "query_attribute",
    "query_color": "query_attribute",
    "query_material": "query_attribute",
    "query_shape": "query_attribute",
    "equal_size": "compare_attribute",
    "equal_color": "compare_attribute",
    "equal_material": "compare_attribute",
    "equal_shape": "compare_attribute",
}


class Clevr:
    """``questions/CLEVR_val_questions.json`` and ``images/val/``; the test split has no answers."""

    name = "clevr"
    requirements = (
        Requirement("questions/CLEVR_val_questions.json", "questions", _SOURCE),
        Requirement("images/val/", "images", _SOURCE),
    )

    def missing(self, root: Path) -> list[Requirement]:
        """Return what the folder lacks."""
        questions, images = self.requirements
        lacking = [] if (root / questions.path).is_file() else [questions]
        return lacking if (root / images.path).is_dir() else [*lacking, images]

    def read(self, root: Path, *, name: str, split: str | None = None) -> Dataset:
        """Read the questions of a split (``val`` unless told otherwise)."""
        wanted = split or "val"
        path = root / "questions" / f"CLEVR_{wanted}_questions.json"
        if not path.is_file():
            raise missing_files_error(self.name, root, [Requirement(f"questions/{path.name}", "questions", _SOURCE)])
        index: dict[str, int] = {}
        images: list[ImageRef] = []
        questions: list[Question] = []
        for number, entry in enumerate(iter_json_array(path, dataset=self.name, key="questions")):
            with annotation_errors(self.name, f"{path}: question {number}"):
                filename = str(entry["image_filename"])
                if "/" in filename or "\\" in filename:
                    raise ValueError(f"the file name {filename[:100]!r} leaves the folder")
                if filename not in index:
                    index[filename] = len(images)
                    images.append(
                        ImageRef(id=filename.rsplit(".", 1)[0], path=str(root / "images" / wanted / filename))
                    )
                last = entry["program"][-1]
                # "function" in v1.0; the CoGenT files say "type".
                function = str(last["function"] if "function" in last else last["type"])
                questions.append(
                    Question(
                        id=str(entry.get("question_index", number)),
                        image=index[filename],
                        text=str(entry["question"]),
                        answers=(str(entry["answer"]),),
                        type=QUESTION_TYPES[function],
                    )
                )
        return Dataset(
            name=name,
            kind=self.name,
            split=wanted,
            images=tuple(images),
            questions=tuple(questions),
            answer_set=ANSWERS,
            closed_answers=True,
        )
