"""Artefacts are written whole, read with their version checked, and never left half-written."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pkgutil
import threading
from pathlib import Path
from typing import Any, ClassVar

import pytest

from argus_edge.artifacts import (
    atomic_open,
    is_stream,
    parse_artifact,
    read_artifact,
    read_file,
    write_artifact,
    write_text,
)
from argus_edge.errors import HostError, InputError
from argus_edge.registry import Registry
from argus_edge.schema.base import Artifact
from argus_edge.schema.registry import ARTIFACTS


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


def test_a_folder_in_the_place_of_a_file_is_a_host_error(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / ("n" * 300)):
        with pytest.raises(HostError, match="Cannot write"), atomic_open(place):
            pytest.fail("this cannot be written")
    assert list(tmp_path.iterdir()) == []


def test_private_files_are_readable_by_the_user_alone(tmp_path: Path) -> None:
    with atomic_open(tmp_path / "secret", "w", private=True) as file:
        file.write("x")
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    """A file renamed onto /dev/null would take its place, for root; what is true of a pipe is true of a device."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_text(pipe, "whole")
    reader.join(30)
    assert read == ["whole"]
    assert pipe.is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_an_open_descriptor_is_written_to(tmp_path: Path) -> None:
    """``--json >(jq .)`` and ``--json /dev/stdout``."""
    out, into = os.pipe()
    write_text(f"/dev/fd/{into}", "whole")
    os.close(into)
    with os.fdopen(out) as file:
        assert file.read() == "whole"


def test_what_is_written_to_as_it_is(tmp_path: Path) -> None:
    streams = ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/fd/1", "/proc/self/fd/1"]
    files = [tmp_path, tmp_path / "none", "/dev/shm", "/dev/shm/none.json", "none.json"]
    assert [is_stream(path) for path in streams] == [True] * 5
    assert [is_stream(path) for path in files] == [False] * 5


def test_a_file_that_never_ends_is_not_read_to_its_end():
    with pytest.raises(InputError, match="larger than 1000 bytes"):
        read_file("/dev/zero", limit=1000)


def test_every_artefact_has_a_schema_to_print() -> None:
    import argus_edge.schema

    for module in pkgutil.iter_modules(argus_edge.schema.__path__):
        importlib.import_module(f"argus_edge.schema.{module.name}")
    kinds = {each.KIND for each in Artifact.__subclasses__() if each.__module__.startswith("argus_edge.")}
    assert kinds == set(ARTIFACTS)
    for name in ARTIFACTS:
        assert name == Registry("artefact", ARTIFACTS)[name].KIND
