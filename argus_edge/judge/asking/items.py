"""The items to be judged: one JSON object a line, checked before the judge is asked anything."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argus_edge.artifacts import read_file
from argus_edge.errors import InputError

__all__ = ["DEFAULT_PROMPT", "Item", "fill_prompt", "read_items"]

DEFAULT_PROMPT = """\
You are grading an assistant's answer to a request about the image. Look at the image first and work out what a good
answer would say. Then judge the answer: is it correct, does it address the request, is it complete and supported by
what the image shows? Its length does not matter.

[Request]
{question}

[Answer]
{answer}

Give your reasons in a few sentences. Then end with a line of exactly this form, where X is an integer from 1 (poor)
to {levels} (excellent):
Score: X
"""

_ALIASES = {
    "id": ("id", "sample_id"),
    "question": ("question", "prompt", "instruction"),
    "answer": ("answer", "response", "caption"),
    "image": ("image", "images", "image_path"),
    "human": ("human", "human_score"),
}
_MAX_IMAGE = 50 << 20


@dataclass(frozen=True)
class Item:
    """One answer to be judged.

    Attributes
    ----------
    extra
        Other fields, as text: columns of the result (``model``, ``split`` …).
    """

    id: str
    task: str
    question: str
    answer: str
    images: tuple[Path, ...]
    human: str
    extra: dict[str, str]


def fill_prompt(template: str, item: Item, levels: int) -> str:
    """Put an item into a template's ``{question}``, ``{answer}`` and ``{levels}``; other braces stay as they are."""
    values = {"{levels}": str(levels), "{question}": item.question, "{answer}": item.answer}
    # In one pass, so that braces inside a question or an answer are not filled in again.
    return re.sub(r"\{(?:levels|question|answer)\}", lambda match: values[match[0]], template)


def read_items(path: Path | str) -> list[Item]:
    """Read and check items.

    Parameters
    ----------
    path
        JSON Lines with ``answer`` (or ``response``, ``caption``) and optionally ``question``, ``image`` (path from
        the file's folder, or a list), ``id``, ``task``, ``human`` and any other plain fields.

    Raises
    ------
    InputError
        A line is no JSON object, lacks its answer, repeats an id, or names an image that is not there; the lines are
        named.
    """
    where = str(path)
    try:
        lines = read_file(path).decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise InputError("The items are not UTF-8 text.", where=where) from error
    items: list[Item] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        item = _item(line, f"{where}, line {number}", Path(path).parent, len(items))
        if item.id in seen:
            raise InputError(
                f"The id {item.id[:60]!r} is also that of line {seen[item.id]}.", where=f"{where}, line {number}"
            )
        seen[item.id] = number
        items.append(item)
    if not items:
        raise InputError("There are no items.", where=where)
    return items


def _item(line: str, where: str, folder: Path, index: int) -> Item:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"Not JSON: {error}.", where=where) from error
    if not isinstance(document, dict):
        raise InputError("Not a JSON object.", where=where)
    fields: dict[str, Any] = {}
    for name, aliases in _ALIASES.items():
        fields[name] = next((document.pop(alias) for alias in aliases if document.get(alias) is not None), None)
    if not isinstance(fields["answer"], str) or not fields["answer"].strip():
        raise InputError("The item has no `answer` to judge.", where=where, next_step="fields: answer, question, image")
    images = fields["image"] or []
    paths = [images] if isinstance(images, str) else images
    if not isinstance(paths, list) or not all(isinstance(name, str) for name in paths):
        raise InputError("`image` is neither a path nor a list of paths.", where=where)
    found = []
    for name in paths:
        image = folder / name
        if not image.is_file():
            raise InputError(
                f"There is no image {name[:200]!r}.", where=where, next_step="paths are from the items' folder"
            )
        if image.stat().st_size > _MAX_IMAGE:
            raise InputError(f"The image {name[:200]!r} is larger than 50 MB.", where=where)
        found.append(image)
    task = document.pop("task", None)
    extra = {str(key)[:100]: str(value) for key, value in document.items() if isinstance(value, (str, int, float))}
    human = fields["human"]
    return Item(
        id=str(index if fields["id"] is None else fields["id"]),
        task="" if task is None else str(task),
        question=str(fields["question"] or ""),
        answer=fields["answer"],
        images=tuple(found),
        human="" if human is None else str(human),
        extra=extra,
    )
