"""A user's own images: a folder with a CSV or JSON-lines file that says what is on them. The sample is one, too."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from argus_edge.errors import InputError
from argus_edge.evaluate.datasets.base import MAX_TEXT, Dataset, ImageRef, Question, Requirement

__all__ = ["Folder", "Sample"]

_FIELDS = ("image", "id", "caption", "captions", "question", "answer", "answers", "choices", "type")
_MAX_SHOWN = 20
_MAX_CHOICES = 26  # a chat model names one by its letter
_HELP = "see docs/your-own-images.md"


class _LineError(ValueError):
    """What is wrong with one line."""


@dataclass
class _Rows:
    """The images, captions and questions that the lines so far have named."""

    root: Path
    index: dict[str, int] = field(default_factory=dict)
    captions: list[list[str]] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    question_ids: set[str] = field(default_factory=set)

    def add(self, row: dict[str, Any], line: int) -> None:
        unknown = [key for key in row if key not in _FIELDS]
        if unknown:
            raise _LineError(f"unknown field {str(unknown[0])[:40]!r} (known: {', '.join(_FIELDS)})")
        image = _image_name(row.get("image"), self.root)
        captions = _texts(row, "captions") + _texts(row, "caption")
        question = _text(row.get("question"), "question")
        if not captions and not question:
            raise _LineError("neither a caption nor a question")
        if not question:
            stray = next((key for key in ("answer", "answers", "choices", "type") if row.get(key)), None)
            if stray:
                raise _LineError(f"{stray} without a question")
        position = self.index.get(image, len(self.captions))
        asked = self._question(row, question, position, line) if question else None
        if asked and asked.id in self.question_ids:
            raise _LineError(f"the id {asked.id[:60]!r} is taken by another question")
        if position == len(self.captions):
            self.index[image] = position
            self.captions.append([])
        self.captions[position] += [caption for caption in captions if caption not in self.captions[position]]
        if asked:
            self.questions.append(asked)
            self.question_ids.add(asked.id)

    def _question(self, row: dict[str, Any], text: str, position: int, line: int) -> Question:
        answers = tuple(_texts(row, "answer") + _texts(row, "answers"))
        choices = tuple(_texts(row, "choices"))
        if not answers:
            raise _LineError("a question without an answer")
        correct = None
        if choices:
            if not 2 <= len(choices) <= _MAX_CHOICES or len(set(choices)) != len(choices):
                raise _LineError(f"choices must be two or more, at most {_MAX_CHOICES}, all different")
            if len(answers) != 1 or answers[0] not in choices:
                raise _LineError(f"the answer {answers[0][:60]!r} is not one of the choices")
            correct = choices.index(answers[0])
        return Question(
            id=_text(row.get("id"), "id") or f"line-{line}",
            image=position,
            text=text,
            answers=answers,
            choices=choices,
            correct=correct,
            type=_text(row.get("type"), "type"),
        )


class Folder:
    """``mine=FOLDER``: images and one ``.csv`` or ``.jsonl`` file (image; captions; question, answer, choices)."""

    name = "mine"
    requirements = (Requirement("data.jsonl or data.csv", "image; captions; question, answer, choices", _HELP),)

    def missing(self, root: Path) -> list[Requirement]:
        """Return the annotation file if there is none."""
        return [] if root.is_dir() and _tables(root) else list(self.requirements)

    def read(self, root: Path, *, name: str, split: str | None = None) -> Dataset:
        """Read the folder's table; all mistakes are reported together, by line.

        Raises
        ------
        InputError
            No table or several, a line that does not hold, or a split was asked for.
        """
        if split is not None:
            raise InputError(f"A folder of one's own has no splits ({split!r}).", where=str(root))
        if not root.is_dir():
            raise InputError("No such folder.", where=str(root), next_step=_HELP)
        tables = _tables(root)
        if len(tables) != 1:
            what = "no .csv or .jsonl file" if not tables else f"several tables: {', '.join(t.name for t in tables)}"
            raise InputError(
                f"The folder holds {what}; it needs one.", where=str(root), next_step=f"name it data.jsonl; {_HELP}"
            )
        table = tables[0]
        rows = _Rows(root)
        mistakes: list[str] = []
        for line, row in _read_table(table):
            try:
                if isinstance(row, Exception):
                    raise row
                rows.add(row, line)
            except _LineError as error:
                mistakes.append(f"line {line}: {error}")
        if mistakes:
            shown = "\n    ".join(mistakes[:_MAX_SHOWN])
            more = f"\n    … and {len(mistakes) - _MAX_SHOWN} more" if len(mistakes) > _MAX_SHOWN else ""
            raise InputError(
                f"{len(mistakes)} line(s) cannot be used:\n    {shown}{more}", where=str(table), next_step=_HELP
            )
        if not rows.index:
            raise InputError("The table has no lines.", where=str(table), next_step=_HELP)
        free = [answer for question in rows.questions if not question.choices for answer in question.answers]
        return Dataset(
            name=name,
            kind=self.name,
            split="all",
            images=tuple(ImageRef(id=image, path=str(root / image)) for image in rows.index),
            captions=tuple(tuple(captions) for captions in rows.captions),
            questions=tuple(rows.questions),
            answer_set=tuple(dict.fromkeys(free)),
        )


class Sample(Folder):
    """Twenty photographs that are installed with the package; the same layout as a user's own folder."""

    name = "sample"


def _tables(root: Path) -> list[Path]:
    """Return ``data.jsonl`` or ``data.csv`` where there is one, else every table in the folder."""
    for preferred in ("data.jsonl", "data.csv"):
        if (root / preferred).is_file():
            return [root / preferred]
    return sorted(path for path in root.iterdir() if path.suffix.lower() in (".csv", ".jsonl") and path.is_file())


def _read_table(path: Path) -> Iterator[tuple[int, dict[str, Any] | _LineError]]:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            if path.suffix.lower() == ".csv":
                yield from _read_csv(file)
            else:
                yield from _read_json_lines(file)
    except UnicodeDecodeError as error:
        raise InputError(
            f"The table is not UTF-8 (byte {error.start}).", where=str(path), next_step="save it as UTF-8"
        ) from error
    except csv.Error as error:
        raise InputError(f"The table is not CSV: {error}.", where=str(path), next_step=_HELP) from error
    except OSError as error:
        raise InputError(f"Cannot read the table: {error.strerror}.", where=str(path)) from error


def _read_csv(file: Any) -> Iterator[tuple[int, dict[str, Any] | _LineError]]:
    reader = csv.DictReader(file)
    header = reader.fieldnames or []
    if "image" not in [str(name).strip() for name in header]:
        apart = next((mark for mark in (";", "\t") if mark in "".join(header)), None)
        hint = f"; the fields are separated by {apart!r}: save it with commas" if apart else ""
        yield 1, _LineError(f"the first line must name the columns, among them image; found {str(header)[:80]}{hint}")
        return
    while True:
        # A quoted field may span lines: the row is named by the line where it starts.
        line = reader.line_num + 1
        row = next(reader, None)
        if row is None:
            return
        if None in row:
            yield line, _LineError("more fields than columns (quote a text that holds a comma)")
            continue
        yield line, {str(key).strip(): value.strip() for key, value in row.items() if value and value.strip()}


def _read_json_lines(file: Any) -> Iterator[tuple[int, dict[str, Any] | _LineError]]:
    for line, text in enumerate(file, 1):
        if not text.strip():
            continue
        try:
            row = json.loads(text)
        except (ValueError, RecursionError) as error:
            yield line, _LineError(f"not JSON: {str(error)[:100]}")
            continue
        yield line, row if isinstance(row, dict) else _LineError("not a JSON object")


def _image_name(value: Any, root: Path) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _LineError("no image")
    name = PurePosixPath(value.strip().replace("\\", "/"))
    if name.is_absolute() or ".." in name.parts or ":" in name.parts[0]:
        raise _LineError(f"the image {value[:100]!r} is not inside the folder")
    if not (root / name).is_file():
        raise _LineError(f"no image {value[:100]!r} in the folder")
    return str(name)


def _text(value: Any, key: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise _LineError(f"{key} must be a text")
    text = " ".join(str(value).split())
    if len(text) > MAX_TEXT:
        raise _LineError(f"{key} is longer than {MAX_TEXT} characters")
    return text


def _texts(row: dict[str, Any], key: str) -> list[str]:
    """Return a field as a list of texts: a JSON list, or one text in which ``|`` separates several."""
    value = row.get(key)
    if value is None:
        return []
    single = key in ("caption", "answer")
    parts = value if isinstance(value, list) else [value] if single else str(value).split("|")
    if single and isinstance(value, list):
        raise _LineError(f"{key} must be one text; several go into {key}s")
    return [text for text in (_text(part, key) for part in parts) if text]
