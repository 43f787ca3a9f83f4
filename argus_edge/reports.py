"""Finding reports: files and folders become artefacts, each with the name it was read from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from argus_edge.artifacts import parse_artifact, read_file, sha256_file
from argus_edge.errors import InputError
from argus_edge.schema.base import Artifact, Source

A = TypeVar("A", bound=Artifact)

# What `eval`, `export` and people call a file in a folder of its own.
GENERIC_NAMES = ("eval", "manifest", "bench", "report")


@dataclass(frozen=True)
class Found(Generic[A]):
    """An artefact with the file that it came from; without a hash where it was computed and not read."""

    path: Path
    sha256: str
    artifact: A

    @property
    def label(self) -> str:
        """The file's name, with its folder's where the name alone tells nothing apart (every eval.json)."""
        generic = self.path.stem in GENERIC_NAMES and self.path.parent.name
        return f"{self.path.parent.name}/{self.path.name}" if generic else self.path.name

    @property
    def source(self) -> Source:
        """What an artefact made from this one records."""
        return Source(name=self.label, sha256=self.sha256 or None)


def _kind_of(text: bytes, where: str) -> str | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        # It may be half a report, and a verdict without it another one.
        raise InputError(
            f"Not a JSON document: {error}.", where=where, next_step="mend the file, or take it out of the folder"
        ) from error
    kind = document.get("kind") if isinstance(document, dict) else None
    return kind if isinstance(kind, str) else None


def find_reports(paths: Iterable[str | Path], kinds: Sequence[type[Artifact]]) -> list[Found[Artifact]]:
    """Read every report of the given kinds.

    Parameters
    ----------
    paths
        Files, each of which must be one of the kinds; folders, whose ``*.json`` files are searched: other documents
        are passed over, what is no JSON at all is an error.
    kinds
        Artefact classes.

    Returns
    -------
    list of Found
        In the order given, folders by name; a file met twice comes once.

    Raises
    ------
    InputError
        A file that is none of the kinds or is damaged, a path that does not exist, or a folder without a report.
    """
    by_kind = {kind.KIND: kind for kind in kinds}
    wanted = " or ".join(f"{kind} report" for kind in by_kind)
    found: dict[Path, Found[Artifact]] = {}
    for given in map(Path, paths):
        if given.is_dir():
            files = sorted(path for path in given.rglob("*.json") if path.is_file())
        elif given.exists():
            files = [given]
        else:
            raise InputError("No such file or folder.", where=str(given), next_step="check the path")
        before = len(found)
        for file in files:
            text = read_file(file)
            kind = by_kind.get(_kind_of(text, str(file)) or "")
            if kind is None:
                if given.is_dir():
                    continue
                raise InputError(f"This is not a {wanted}.", where=str(file))
            artifact = parse_artifact(text, kind, where=str(file))
            found.setdefault(file.resolve(), Found(file, sha256_file(file), artifact))
        if given.is_dir() and len(found) == before and not any(given.resolve() in path.parents for path in found):
            raise InputError(f"The folder holds no {wanted}.", where=str(given))
    return list(found.values())


def of_kind(found: Iterable[Found[Artifact]], kind: type[A]) -> list[Found[A]]:
    """Return those of one kind."""
    return [Found(each.path, each.sha256, each.artifact) for each in found if isinstance(each.artifact, kind)]
