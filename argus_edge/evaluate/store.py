"""Results of units by the hash of what they depend on: a folder of small files, each written whole."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from argus_edge.artifacts import atomic_open
from argus_edge.errors import HostError

__all__ = ["Result", "Store"]

Result = npt.NDArray[Any] | list[Any]


class Store:
    """A content-addressed store; several processes may use one folder at a time."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def _path(self, key: str, kind: str) -> Path:
        return self.root / key[:2] / f"{key[2:]}.{kind}"

    def __contains__(self, key: object) -> bool:
        return any(self._path(str(key), kind).is_file() for kind in ("npy", "json"))

    def put(self, key: str, result: Result) -> None:
        """Keep a result: an array as ``.npy``, anything else as JSON."""
        if isinstance(result, np.ndarray):
            buffer = io.BytesIO()
            np.save(buffer, result, allow_pickle=False)
            with atomic_open(self._path(key, "npy")) as file:
                file.write(buffer.getbuffer())
        else:
            with atomic_open(self._path(key, "json"), "w") as file:
                json.dump(result, file)

    def get(self, key: str) -> Result:
        """Return a result.

        Raises
        ------
        KeyError
            There is none.
        HostError
            The file is damaged.
        """
        array, document = self._path(key, "npy"), self._path(key, "json")
        path = array if array.is_file() else document
        try:
            if path is array:
                found: Result = np.load(path, allow_pickle=False)
            else:
                found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise KeyError(key) from error
        except (OSError, ValueError, EOFError) as error:
            raise HostError(
                f"A cached result is damaged: {error}.",
                where=str(path),
                next_step="delete that file and run again; only that piece is computed anew",
            ) from error
        return found
