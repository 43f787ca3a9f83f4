"""Reading and writing artefacts and other files: whole to a temporary name and then renamed; versions checked."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, TypeVar

from pydantic import ValidationError

from argus_edge.errors import HostError, InputError
from argus_edge.schema.base import Artifact

A = TypeVar("A", bound=Artifact)

MAX_ARTIFACT_BYTES = 1 << 30
_PIECE_BYTES = 1 << 20

_NO_SUCH_PLACE = (
    errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EBUSY, errno.ENAMETOOLONG, errno.ELOOP, errno.EFBIG,
    errno.EIO, errno.EINVAL, errno.ENXIO, errno.ENODEV,
)  # fmt: skip


@contextlib.contextmanager
def host_errors(path: Path | str) -> Iterator[None]:
    """Turn an ``OSError`` about room or permission into a :class:`HostError` that names the file."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise HostError(
                "The disk is full.", where=str(path), next_step="free some space, or write elsewhere"
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise HostError(
                f"No permission to write ({error.strerror}).", where=str(path), next_step="choose another path"
            ) from error
        if error.errno in _NO_SUCH_PLACE:
            raise HostError(f"Cannot write: {error.strerror}.", where=str(path), next_step="check the path") from error
        raise


def is_stream(path: Path | str) -> bool:
    """Tell whether a path is a device, a pipe or an open descriptor: ``/dev/null``, ``/dev/stdout``, ``>(jq .)``.

    Such a one is written to as it is. A file renamed onto it would take its place, and for root there would be no
    ``/dev/null`` any more.
    """
    target = Path(path)
    descriptor = os.path.abspath(target).startswith(("/dev/fd/", "/dev/std", "/proc/"))
    return descriptor or (target.exists() and not target.is_file() and not target.is_dir())


@contextlib.contextmanager
def atomic_open(path: Path | str, mode: str = "wb", *, private: bool = False) -> Iterator[IO[Any]]:
    """Open a file that appears under ``path`` only when it is whole; a device or a pipe is written to as it is.

    Parameters
    ----------
    path
        Final name; its folder is made if missing.
    mode
        ``"wb"`` or ``"w"`` (UTF-8).
    private
        Readable by the user alone (0600), for files in the user's own folders.

    Raises
    ------
    HostError
        The disk is full or the place is not writable; no partial file is left behind.
    """
    target = Path(path)
    with host_errors(target):
        if is_stream(target):
            with open(target, mode, encoding=None if "b" in mode else "utf-8") as file:
                yield file
            return
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name[:100]}.", suffix=".part", dir=target.parent)
        try:
            if not private:
                umask = os.umask(0)
                os.umask(umask)
                os.fchmod(descriptor, 0o666 & ~umask)
            with os.fdopen(descriptor, mode, encoding=None if "b" in mode else "utf-8") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            raise


@contextlib.contextmanager
def locked(path: Path | str) -> Iterator[None]:
    """Hold a file's ``flock``, after waiting for whoever holds it; the kernel lets it go when the process ends.

    The file is readable by the user alone; it is made if missing, and left as it is else.

    Raises
    ------
    HostError
        The place is not writable.
    """
    with host_errors(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def write_text(path: Path | str, text: str, *, private: bool = False) -> None:
    """Write a text file whole."""
    with atomic_open(path, "w", private=private) as file:
        file.write(text)


def sha256_file(path: Path | str) -> str:
    """Return the SHA-256 of a file's bytes in hexadecimal."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for chunk in iter(lambda: file.read(1 << 20), b""):
            digest.update(chunk)
    return digest.hexdigest()


def dump_artifact(artifact: Artifact) -> str:
    """Return an artefact as indented JSON with a final newline."""
    return artifact.model_dump_json(indent=1) + "\n"


def write_artifact(artifact: Artifact, path: Path | str) -> None:
    """Write an artefact whole to a temporary name and rename it into place."""
    write_text(path, dump_artifact(artifact))


def parse_artifact(text: str | bytes, kind: type[A], *, where: str) -> A:
    """Check and return an artefact.

    Raises
    ------
    InputError
        Not JSON, another kind of artefact, a newer schema version, or a field that does not hold.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"Not a JSON document: {error}.", where=where) from error
    if not isinstance(document, dict) or document.get("kind") != kind.KIND:
        found = document.get("kind") if isinstance(document, dict) else type(document).__name__
        raise InputError(f"Expected a {kind.KIND}, found {str(found)[:60]!r}.", where=where)
    version = document.get("schema_version")
    if not isinstance(version, int):
        raise InputError("The artefact does not say its schema_version.", where=where)
    if version > kind.VERSION:
        raise InputError(
            f"This {kind.KIND} has schema version {version}; this argus-edge reads up to {kind.VERSION}.",
            where=where,
            next_step="pip install --upgrade argus-edge",
        )
    try:
        if version < kind.VERSION:
            document = kind.migrate(document, version)
        return kind.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "document"
        raise InputError(
            f"Not a valid {kind.KIND}: {place}: {first['msg']} ({error.error_count()} problem(s)).", where=where
        ) from error
    except ValueError as error:
        raise InputError(f"Cannot read this {kind.KIND}: {error}.", where=where) from error


def read_file(path: Path | str, *, limit: int = MAX_ARTIFACT_BYTES, next_step: str | None = None) -> bytes:
    """Return a file's bytes, with an :class:`InputError` where it is missing, unreadable or too large.

    Parameters
    ----------
    path
        The file.
    limit
        Its size may be so many bytes.
    next_step
        What to do where it cannot be read.
    """
    source = Path(path)
    try:
        with open(source, "rb") as file:
            content = bytearray()
            # In pieces: a device or a pipe has no size, and need not end.
            while piece := file.read(_PIECE_BYTES):
                content += piece
                if len(content) > limit:
                    raise InputError(f"The file is larger than {limit} bytes.", where=str(source))
    except OSError as error:
        raise InputError(f"Cannot read the file: {error.strerror}.", where=str(source), next_step=next_step) from error
    return bytes(content)


def read_artifact(path: Path | str, kind: type[A]) -> A:
    """Read and check an artefact's file; see :func:`parse_artifact`."""
    return parse_artifact(read_file(path), kind, where=str(path))
