"""Device profiles: what is known of a kind of board. Built-in ones are data files; a user's own stand beside them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from argus_edge.artifacts import read_file
from argus_edge.devices.inventory import Inventory, config_folder
from argus_edge.errors import InputError, UsageError
from argus_edge.schema.agent import DeviceFacts
from argus_edge.schema.device import Peak, PowerMode, Profile
from argus_edge.text import first_line

GENERIC = "generic-linux"
MAX_PROFILE_BYTES = 1 << 20
_MAX_DEPTH = 8


def user_folder() -> Path:
    """Return the folder of the user's own profile files, ``<config folder>/profiles`` (it need not exist)."""
    return config_folder() / "profiles"


def files() -> dict[str, Path]:
    """Return profile name (the file's stem) -> file; a user's file stands before a built-in one of the same name."""
    return _in_folder(_built_in_folder()) | _in_folder(user_folder())


def names() -> list[str]:
    """Return the names of all profiles, sorted."""
    return sorted(files())


def load(name: str) -> Profile:
    """Return a profile by its name or an alias.

    Raises
    ------
    UsageError
        There is no such profile.
    InputError
        The profile's file is not readable or not valid.
    """
    known = files()
    if name in known:
        return _parse(_document(name, known), known[name])
    for candidate, path in known.items():
        # An alias is looked for in the raw document: a faulty file of the user must not hide the others.
        if name in _aliases(path):
            return _parse(_document(candidate, known), path)
    raise UsageError(
        f"There is no device profile {name!r}.",
        where=f"built-in profiles and {user_folder()}",
        next_step=f"choose one of: {', '.join(sorted(known))}",
    )


def load_for(device: str) -> Profile:
    """Return the profile of an inventory entry, or of a bare profile's name.

    Raises
    ------
    UsageError
        There is neither.
    """
    try:
        return load(Inventory().get(device).profile)
    except UsageError:
        return load(device)


def load_file(path: Path | str) -> Profile:
    """Return the profile of a file; it may extend a built-in one.

    Raises
    ------
    InputError
        The file is not readable or not valid.
    """
    source = Path(path)
    return _parse(_document(source.stem, files() | {source.stem: source}), source)


def load_all() -> dict[str, Profile]:
    """Return every profile by name, each checked."""
    return {name: load(name) for name in names()}


def match(facts: DeviceFacts) -> Profile:
    """Return the profile that fits a probed device: by model, image, memory size, or GPU; else generic-linux.

    The longest text that is found in the model's name wins. Where several profiles share it (one board, several
    images or memory sizes), the image's release decides, and then the smallest memory that holds what the kernel
    reports.
    """
    scored = [(score, profile) for profile in load_all().values() if (score := _specificity(profile, facts))]
    fitting = [profile for score, profile in scored if score == max(scored, key=lambda pair: pair[0])[0]]
    firmware = (facts.firmware or "").lstrip("# ")
    fitting = [p for p in fitting if any(firmware.startswith(text) for text in p.match_firmware)] or fitting
    total = facts.memory_total_bytes or 0
    sizes = {p.name: min((s for s in p.memory_bytes if s >= total), default=float("inf")) for p in fitting}
    return min(fitting, key=lambda p: sizes[p.name], default=load(GENERIC))


def power_mode(profile: Profile, reported: str | None) -> PowerMode | None:
    """Return the profile's power mode for what the device reports (``MODE_15W``, ``NV Power Mode: 15W``)."""
    if not reported:
        return None
    text = _mode_key(reported)
    return next((mode for mode in profile.power_modes if _mode_key(mode.name) == text), None)


def peaks(profile: Profile, *, unit: str, dtype: str, mode: str | None = None) -> Iterator[Peak]:
    """Iterate over the peaks of a compute unit and dtype that hold in a power mode (as reported; None: not known).

    Where the mode is not known, every mode's peak comes, the highest first: a floor made of the first stays a floor.
    """
    fitting = [peak for peak in profile.peaks if peak.unit == unit and peak.dtype == dtype]
    if mode:
        key = _mode_key(mode)
        fitting = [peak for peak in fitting if peak.mode is None or _mode_key(peak.mode) == key]
    yield from sorted(fitting, key=lambda peak: -peak.gmacs)


def bandwidth_bytes_s(profile: Profile, mode: str | None = None) -> float | None:
    """Return the memory bandwidth in a power mode (as reported), the profile's own where the mode has none."""
    found = power_mode(profile, mode)
    if found and found.bandwidth_bytes_s:
        return found.bandwidth_bytes_s
    return profile.bandwidth_bytes_s.value if profile.bandwidth_bytes_s else None


def _mode_key(text: str) -> str:
    return text.rpartition(":")[2].strip().upper().removeprefix("MODE_")


def _specificity(profile: Profile, facts: DeviceFacts) -> int:
    found = [text for text in profile.match if text in (facts.model or "")]
    found += [text for text in profile.match_gpu if text in (facts.gpu or "")]
    return max(map(len, found), default=0)


def _built_in_folder() -> Path:
    # The package's data are plain files: it is never imported from a zip.
    return Path(str(resources.files("argus_edge.profiles") / "devices"))


def _in_folder(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))} if folder.is_dir() else {}


def _aliases(path: Path) -> list[str]:
    aliases = _read(path).get("aliases", [])
    return [str(alias) for alias in aliases] if isinstance(aliases, list) else []


def _read(path: Path) -> Mapping[str, Any]:
    """Return a file's document; a fleet's boards ask for the same few files again and again."""
    try:
        status = path.stat()
    except OSError:
        return _read_anew(path, 0, 0)  # says what is wrong with it
    return _read_anew(path, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=64)
def _read_anew(path: Path, modified: int, size: int) -> Mapping[str, Any]:
    try:
        document = yaml.safe_load(read_file(path, limit=MAX_PROFILE_BYTES))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"Not a YAML document: {first_line(error)}.", where=str(path)) from error
    if not isinstance(document, dict):
        raise InputError("A profile is a mapping of fields.", where=str(path), next_step="see docs/profiles.md")
    return document


def _document(name: str, known: dict[str, Path], depth: int = 0) -> dict[str, Any]:
    """Return a file's fields on top of those it extends: a field is replaced whole, aliases are not inherited."""
    path = known[name]
    own = dict(_read(path))
    base = own.pop("extends", None)
    if base is None:
        return own
    if base == name:  # the user's pi5.yaml may extend the built-in pi5
        known = {key: value for key, value in (known | _in_folder(_built_in_folder())).items() if value != path}
    if base not in known or depth >= _MAX_DEPTH:
        fault = "extends itself" if base == name or base in known else f"extends {str(base)[:64]!r}: no such profile"
        step = f"choose one of: {', '.join(sorted(known))}"
        raise InputError(f"The profile {fault}.", where=str(path), next_step=step)
    inherited = _document(str(base), known, depth + 1)
    inherited.pop("aliases", None)
    return inherited | own


def _parse(document: dict[str, Any], path: Path) -> Profile:
    try:
        profile = Profile.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "document"
        raise InputError(
            f"Not a valid profile: {place}: {first['msg']} ({error.error_count()} problem(s)).",
            where=str(path),
            next_step="see docs/profiles.md",
        ) from error
    if profile.name != path.stem:
        raise InputError(
            f"The profile's name {profile.name!r} is not the file's name.",
            where=str(path),
            next_step=f"rename the file to {profile.name}.yaml",
        )
    return profile
