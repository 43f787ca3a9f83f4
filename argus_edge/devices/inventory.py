"""The user's boards: a YAML file in the user's config folder, readable by the user alone."""

from __future__ import annotations

import contextlib
import difflib
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import platformdirs
import yaml
from pydantic import ValidationError

from argus_edge.artifacts import host_errors, locked, read_file, write_text
from argus_edge.devices.address import parse_address
from argus_edge.errors import InputError, UsageError
from argus_edge.schema.device import DeviceEntry
from argus_edge.text import clean

LOCAL = "local"
ENVIRONMENT = "ARGUS_EDGE_CONFIG"
FILE = "devices.yaml"
MAX_BYTES = 4 << 20


def config_folder() -> Path:
    """Return the folder of the user's settings: ``$ARGUS_EDGE_CONFIG``, else the system's usual place."""
    override = os.environ.get(ENVIRONMENT)
    return Path(override).expanduser() if override else Path(platformdirs.user_config_dir("argus-edge"))


def local_entry() -> DeviceEntry:
    """Return the built-in device: this machine, with the interpreter that runs us."""
    return DeviceEntry(name=LOCAL, python=sys.executable)


class Inventory:
    """The entries of one inventory file.

    Parameters
    ----------
    path
        The file; None: ``devices.yaml`` in the user's config folder. A missing file is an empty inventory.
    existing
        A file that was named must be there: a slip in its name is not an inventory without boards.

    Raises
    ------
    InputError
        The file cannot be read, or an entry does not hold.
    """

    def __init__(self, path: Path | None = None, *, existing: bool = False) -> None:
        self.path = path or config_folder() / FILE
        if path is not None and existing and not path.exists():
            raise InputError(
                "There is no such inventory.",
                where=str(path),
                next_step=f"check the path, or begin one: argus-edge device add NAME --host USER@HOST "
                f"--inventory {shlex.quote(str(path))}",
            )
        self.entries: dict[str, DeviceEntry] = self._read() if self.path.exists() else {}

    def _read(self) -> dict[str, DeviceEntry]:
        where = str(self.path)
        try:
            document = yaml.safe_load(read_file(self.path, limit=MAX_BYTES)) or {}
        except (yaml.YAMLError, RecursionError, UnicodeDecodeError) as error:
            raise InputError(f"The inventory is not YAML: {clean(str(error), limit=300)}.", where=where) from error
        devices = document.get("devices", {}) if isinstance(document, dict) else None
        if not isinstance(devices, dict):
            raise InputError("The inventory has no mapping `devices`.", where=where, next_step="see docs/devices.md")
        return {str(name): self._entry(str(name), fields, where) for name, fields in devices.items()}

    @staticmethod
    def _entry(name: str, fields: Any, where: str) -> DeviceEntry:
        if not isinstance(fields, dict):
            raise InputError(f"The entry {clean(name, limit=64)!r} is not a mapping.", where=where)
        try:
            return make_entry(name, fields)
        except UsageError as error:
            raise InputError(error.what, where=where, next_step="mend the file, see docs/devices.md") from error

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Read the file anew, let it be changed, and write it whole (0600, its folder 0700), all under a lock.

        Several commands at once (a fleet's, another terminal's) then lose none of each other's changes.
        """
        with host_errors(self.path):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(self.path.with_name(f".{self.path.name}.lock")):
            self.entries = self._read() if self.path.exists() else {}
            yield
            devices = {
                name: entry.model_dump(exclude={"name"}, exclude_defaults=True) for name, entry in self.entries.items()
            }
            text = yaml.safe_dump({"devices": devices}, sort_keys=False, allow_unicode=True)
            write_text(self.path, text, private=True)

    def add(self, entry: DeviceEntry, *, replace: bool = False) -> None:
        """Add an entry and write the file.

        Raises
        ------
        UsageError
            The name is taken (and ``replace`` is not set) or reserved, or the address is none.
        """
        if entry.name in (LOCAL, "all"):
            raise UsageError(f"The name {entry.name!r} is reserved.", next_step="choose another name")
        if entry.host is None:
            raise UsageError(
                "A device needs an address.",
                next_step=f"argus-edge device add {entry.name} --host USER@HOST{self.option}",
            )
        parse_address(entry.host)
        with self._changing():
            if entry.name in self.entries and not replace:
                raise UsageError(
                    f"There is a device {entry.name!r} already.",
                    where=str(self.path),
                    next_step="add --replace to change it",
                )
            self.entries[entry.name] = entry

    def change(self, name: str, **fields: Any) -> DeviceEntry:
        """Change some fields of an entry as it stands in the file now, write the file, and return the entry.

        Raises
        ------
        UsageError
            There is no such entry, or a field does not hold.
        """
        return self.update(name, lambda _: fields)

    def update(self, name: str, fields: Callable[[DeviceEntry], dict[str, Any]]) -> DeviceEntry:
        """As :meth:`change`, with fields that depend on the entry as it stands in the file now."""
        with self._changing():
            if name not in self.entries:
                raise unknown_device(name, list(self.entries), self.path)
            known = self.entries[name]
            self.entries[name] = make_entry(name, fields(known), known)
        return self.entries[name]

    @property
    def option(self) -> str:
        """What a command needs to mean this inventory, with a blank before it."""
        return option_of(self.path)

    def remove(self, name: str) -> DeviceEntry:
        """Remove an entry, write the file, and return the entry."""
        with self._changing():
            if name not in self.entries:
                raise unknown_device(name, list(self.entries), self.path)
            return self.entries.pop(name)

    def get(self, name: str) -> DeviceEntry:
        """Return the device of a name: an entry, ``local``, or an address that is not saved.

        Raises
        ------
        UsageError
            There is none; the next step is the command that adds it.
        """
        if name in self.entries:
            return self.entries[name]
        if name == LOCAL:
            return local_entry()
        if "@" in name:
            _, host, _ = parse_address(name)
            return DeviceEntry(name=entry_name(host), host=name)
        raise unknown_device(name, list(self.entries), self.path)

    def select(self, names: str, *, tag: str | None = None) -> list[DeviceEntry]:
        """Return the devices of a comma-separated list, or all with ``all``, narrowed to a tag.

        Raises
        ------
        UsageError
            A name is unknown, or nothing is left.
        """
        if not names.replace(",", "").strip():
            # A script's variable that is not set: every board is the last thing that was meant.
            raise UsageError("No device is named.", next_step=f"name one, or all: argus-edge device list{self.option}")
        if names == "all":
            chosen = list(self.entries.values())
        else:
            chosen = [self.get(name.strip()) for name in dict.fromkeys(names.split(",")) if name.strip()]
        if tag is not None:
            chosen = [entry for entry in chosen if tag in entry.tags]
        if not chosen:
            raise UsageError(
                "No device is left to use." if self.entries else "There is no device in the inventory.",
                where=str(self.path),
                next_step=("argus-edge device list" if self.entries else "argus-edge device add NAME --host USER@HOST")
                + self.option,
            )
        return chosen


def make_entry(name: str, fields: dict[str, Any], old: DeviceEntry | None = None) -> DeviceEntry:
    """Return a checked entry from its fields, on top of an older one's.

    Raises
    ------
    UsageError
        A field does not hold; the message names it.
    """
    shown = clean(str(name), limit=64)
    base = old.model_dump(exclude={"name"}) if old else {}
    try:
        entry = DeviceEntry.model_validate({**base, **fields, "name": name})
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        if first["loc"] == ("name",):
            raise UsageError(
                f"{shown!r} is no name for a device.",
                next_step="letters, digits, . _ and -, 64 at most, a letter or a digit first",
            ) from error
        place = clean(".".join(map(str, first["loc"])), limit=80)
        raise UsageError(f"The device {shown!r} does not hold: {place}: {first['msg']}.") from error
    if entry.host is not None:
        parse_address(entry.host)
    if not entry.home.startswith(("/", "~/")) or ".." in entry.home.split("/"):
        raise UsageError(
            f"The home of {shown!r} must begin with / or ~/ and not climb: {clean(entry.home, limit=80)!r}."
        )
    if not entry.python or entry.python.startswith("-"):
        raise UsageError(f"The python of {shown!r} must be the path of an interpreter.")
    return entry


def entry_name(host: str) -> str:
    """Return a valid entry's name for a host."""
    name = "".join(letter if letter.isascii() and (letter.isalnum() or letter in ".-") else "-" for letter in host)
    return name.strip("-.")[:64] or "device"


def option_of(path: Path) -> str:
    """Return `` --inventory FILE`` for a command that is to mean this inventory, nothing for the user's own."""
    return "" if path == config_folder() / FILE else f" --inventory {shlex.quote(str(path))}"


def unknown_device(name: str, known: list[str], path: Path) -> UsageError:
    """Return the error for a name that the inventory lacks, with the exact command that adds it."""
    shown = clean(name, limit=64)
    close = difflib.get_close_matches(name, [*known, LOCAL], n=1)
    guess = shlex.quote(entry_name(shown))
    return UsageError(
        f"There is no device {shown!r} in the inventory" + (f"; did you mean {close[0]!r}?" if close else "."),
        where=str(path),
        next_step=f"argus-edge device add {guess} --host USER@HOST{option_of(path)}   "
        "(add --profile pi5 or another one)",
    )
