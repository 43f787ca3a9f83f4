"""Artefacts are written whole, read with their version checked, and never left half-written."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from argus_edge.artifacts import atomic_open, parse_artifact, read_artifact, write_artifact
from argus_edge.errors import HostError, InputError
from argus_edge.schema.base import Artifact


class Note(Artifact):
    KIND: ClassVar[str] = "note"
    VERSION: ClassVar[int] = 2
    text: str = ""

    @classmethod
    def migrate(cls, document: dict[str, Any], version: int) -> dict[str, Any]:
        text = document.pop("message")
        return {**document, "text": text, "schema_version": 2}


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    write_artifact(Note(text="a"), tmp_path / "n.json")
    assert read_artifact(tmp_path / "n.json", Note).text == "a"
    assert [p.name for p in tmp_path.iterdir()] == ["n.json"]


def test_an_older_version_is_migrated() -> None:
    note = parse_artifact(json.dumps({"kind": "note", "schema_version": 1, "message": "old"}), Note, where="x")
    assert note.text == "old"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{", "Not a JSON document"),
        ("[]", "Expected a note"),
        ('{"kind": "other", "schema_version": 1}', "Expected a note, found 'other'"),
        ('{"kind": "note"}', "schema_version"),
        ('{"kind": "note", "schema_version": 3}', "reads up to 2"),
        ('{"kind": "note", "schema_version": 2, "text": 5}', "text"),
        ('{"kind": "note", "schema_version": 2, "txet": "a"}', "txet"),
    ],
)
def test_what_does_not_hold_is_named(document: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_artifact(document, Note, where="x")


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Cannot read"):
        read_artifact(tmp_path / "none.json", Note)


def test_a_failure_in_the_middle_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "n.json"
    target.write_text("old")
    with contextlib.suppress(KeyboardInterrupt), atomic_open(target, "w") as file:
        file.write("new")
        raise KeyboardInterrupt
    assert target.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_place_that_cannot_be_written_is_a_host_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HostError, match=r"Cannot write"):
        write_artifact(Note(), tmp_path / "file" / "n.json")


def test_private_files_are_readable_by_the_user_alone(tmp_path: Path) -> None:
    with atomic_open(tmp_path / "secret", "w", private=True) as file:
        file.write("x")
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
