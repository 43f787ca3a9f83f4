"""The prompts as data: read from one file, overridden by the user's, rendered by task and model family."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import yaml

from argus_edge.artifacts import read_file
from argus_edge.errors import InputError

__all__ = ["Prompts", "load_prompts"]

_MAX_BYTES = 1 << 20

# Task -> the fields that its prompts must have, and those that they may have.
_FIELDS: dict[str, tuple[set[str], set[str]]] = {
    "caption": (set(), set()),
    "answer": ({"question"}, {"question"}),
    "choose": ({"question"}, {"question", "choices"}),
    "statement": ({"question", "choice"}, {"question", "choice"}),
    "match": ({"caption"}, {"caption"}),
    "embed": ({"caption"}, {"caption"}),
}


@dataclass(frozen=True)
class Prompts:
    """Prompt templates by task and family."""

    templates: Mapping[str, Mapping[str, str]]

    def id(self, task: str, family: str) -> str:
        """Return the id that a report keeps a prompt under: ``answer.default``, ``answer.blip``."""
        return f"{task}.{family if family in self.templates[task] else 'default'}"

    def template(self, task: str, family: str) -> str:
        """Return the template for a family."""
        return self.templates[task].get(family, self.templates[task]["default"])

    def render(self, task: str, family: str, **fields: str) -> str:
        """Return the prompt with its fields filled in; braces in the fields stay as they are."""
        return self.template(task, family).format(**fields)


def load_prompts(path: Path | None = None) -> Prompts:
    """Return the project's prompts, with those of a user's file in their place.

    Raises
    ------
    InputError
        The file is not YAML, names a task that there is none of, or a prompt lacks its fields or has others.
    """
    text = resources.files("argus_edge.evaluate").joinpath("prompts.yaml").read_text(encoding="utf-8")
    templates: dict[str, dict[str, str]] = yaml.safe_load(text)
    if path is not None:
        for task, families in _read(path).items():
            templates[task] = {**templates[task], **families}
    return Prompts(templates)


def _read(path: Path) -> dict[str, dict[str, str]]:
    try:
        document = yaml.safe_load(read_file(path, limit=_MAX_BYTES).decode("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"The prompts are not YAML: {str(error)[:200]}.", where=str(path)) from error
    if not isinstance(document, dict):
        raise InputError("The prompts file holds no tasks.", where=str(path), next_step="see docs/eval.md")
    for task, families in document.items():
        if task not in _FIELDS:
            raise InputError(f"No task {str(task)[:40]!r}.", where=str(path), next_step=f"tasks: {', '.join(_FIELDS)}")
        if not isinstance(families, dict) or not all(isinstance(text, str) for text in families.values()):
            raise InputError(f"{task}: expected family: text.", where=str(path))
        for family, template in families.items():
            _check(task, template, f"{path}: {task}.{family}")
    return document


def _check(task: str, template: str, where: str) -> None:
    needed, allowed = _FIELDS[task]
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError as error:
        raise InputError(f"The prompt is not a template: {error}.", where=where) from error
    fields = {name for _, name, _, _ in parts if name is not None}
    if not (needed <= fields <= allowed) or any(spec or conversion for _, _, spec, conversion in parts):
        wanted = ", ".join(f"{{{name}}}" for name in sorted(allowed)) or "no field"
        raise InputError(f"The prompt must have {wanted}, plain.", where=where, next_step="write {{ for a brace")
