"""Reading annotation files: JSON, JSON lines, and large JSON arrays element by element, with errors that say where."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from argus_edge.errors import InputError

__all__ = ["annotation_errors", "iter_json_array", "iter_json_lines", "load_json"]

_CHUNK = 1 << 20
# One element of an annotation array (an image with its regions) is far smaller; more is not an annotation file.
_MAX_ELEMENT = 1 << 26
_MAX_LINE = 1 << 24
_SPACE_OR_COMMA = re.compile(r"[\s,]*")


@contextlib.contextmanager
def annotation_errors(dataset: str, where: str) -> Iterator[None]:
    """Turn what a malformed annotation raises when it is read into an :class:`InputError` that names the place."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"Cannot read the {dataset} annotations: {error.strerror}.",
            where=where,
            next_step="check the folder with: argus-edge data check",
        ) from error
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        detail = f"the field {error} is missing" if isinstance(error, KeyError) else str(error)[:200]
        raise InputError(
            f"The {dataset} annotations are not as published: {detail}.",
            where=where,
            next_step="download the file again; it may have been cut short or be of another version",
        ) from error


def load_json(path: Path, *, dataset: str) -> Any:
    """Read a whole JSON file; :class:`InputError` where it is missing, unreadable or not JSON."""
    with annotation_errors(dataset, str(path)), open(path, encoding="utf-8") as file:
        return json.load(file)


def iter_json_lines(path: Path, *, dataset: str) -> Iterator[tuple[int, Any]]:
    """Yield (line number, document) of a JSON-lines file; blank lines are passed over."""
    with annotation_errors(dataset, str(path)), open(path, encoding="utf-8") as file:
        for number in range(1, 1 << 62):
            line = file.readline(_MAX_LINE)
            if not line:
                return
            if not line.strip():
                continue
            with annotation_errors(dataset, f"{path}:{number}"):
                document = json.loads(line)
            yield number, document


def iter_json_array(path: Path, *, dataset: str, key: str | None = None) -> Iterator[Any]:
    """Yield the elements of a JSON array one by one, so that a file of many hundred megabytes is never held whole.

    Parameters
    ----------
    key
        The array is the value of this key of the top object; None where the file itself is the array.

    Raises
    ------
    InputError
        The file is missing, holds no such array, or ends within it.
    """
    decoder = json.JSONDecoder()
    opening = re.compile(rf'"{re.escape(key)}"\s*:\s*\[' if key else r"\A\ufeff?\s*\[")
    with annotation_errors(dataset, str(path)), open(path, encoding="utf-8") as file:
        buffer = file.read(_CHUNK)
        found = opening.search(buffer)
        if found is None:
            raise ValueError(f"no array {key!r}" if key else "not a JSON array")
        position = found.end()
        while True:
            position = _SPACE_OR_COMMA.match(buffer, position).end()  # type: ignore[union-attr]  # may match nothing
            if buffer[position : position + 1] == "]":
                return
            try:
                element, end = decoder.raw_decode(buffer, position)
            except ValueError:
                more = file.read(max(_CHUNK, len(buffer)))
                if not more or len(buffer) > _MAX_ELEMENT:
                    raise ValueError("the array does not end, or an element of it is not JSON") from None
                buffer, position = buffer[position:] + more, 0
                continue
            if not isinstance(element, dict):
                # A bare number cut by the chunk's end would read as a shorter one; annotations are objects.
                raise TypeError("an element of the array is not an object")
            yield element
            position = end
