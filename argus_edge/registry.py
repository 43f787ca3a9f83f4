"""Lazy registries: a name stands for "module:Class", imported when it is first asked for."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from argus_edge.errors import UsageError


class Registry(Mapping[str, Any]):
    """A read-only mapping from a name to a lazily imported object.

    Parameters
    ----------
    kind
        What the entries are ("dataset", "exporter"), for the error message.
    entries
        Name to ``"module:attribute"``.
    """

    def __init__(self, kind: str, entries: dict[str, str]) -> None:
        self.kind = kind
        self._entries = entries

    def __getitem__(self, name: str) -> Any:
        if name not in self._entries:
            raise UsageError(f"Unknown {self.kind} {name!r}.", next_step=f"choose one of: {', '.join(self._entries)}")
        module, _, attribute = self._entries[name].partition(":")
        return getattr(importlib.import_module(module), attribute)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
