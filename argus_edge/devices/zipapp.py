"""Builds the agent's zipapp: one file with the package ``agents`` and a ``__main__.py``, the same bytes every time."""

from __future__ import annotations

import hashlib
import io
import zipfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from argus_edge.artifacts import atomic_open, host_errors, locked

if TYPE_CHECKING:
    from importlib.abc import Traversable

PACKAGE = "agents"
MAIN = "import sys\n\nfrom agents.main import main\n\nsys.exit(main())\n"
# Zip's oldest date: no time of building enters the bytes.
EPOCH = (1980, 1, 1, 0, 0, 0)
FILE_MODE = 0o644


@dataclass(frozen=True)
class AgentArchive:
    """The built agent.

    Attributes
    ----------
    path
        Where it lies on the host.
    sha256
        Hash of its bytes; the name under which a device keeps it.
    size
        Bytes.
    """

    path: Path
    sha256: str
    size: int


def agent_bytes() -> bytes:
    """Return the zipapp's bytes, made from the installed ``argus_edge.agents``; the same for the same sources."""
    members = {
        f"{PACKAGE}/{name}": source.read_bytes() for name, source in _sources(resources.files("argus_edge.agents"))
    }
    members["__main__.py"] = MAIN.encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(members):
            info = zipfile.ZipInfo(name, EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            info.external_attr = FILE_MODE << 16
            archive.writestr(info, members[name])
    return buffer.getvalue()


def build_agent(folder: Path | None = None) -> AgentArchive:
    """Build the zipapp and return where it is; nothing is written if it is there already.

    Parameters
    ----------
    folder
        Where to put it; by default the user's cache folder.

    Raises
    ------
    HostError
        The folder cannot be written to.
    """
    content = agent_bytes()
    digest = hashlib.sha256(content).hexdigest()
    target = (folder or Path(platformdirs.user_cache_dir("argus-edge")) / "agents") / f"agent-{digest[:16]}.pyz"
    if not target.is_file() or hashlib.sha256(target.read_bytes()).hexdigest() != digest:
        _write(target, content)
    return AgentArchive(target, digest, len(content))


def _write(target: Path, content: bytes) -> None:
    with host_errors(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked(target.parent / ".lock"):
            # Whoever writes holds the lock, so these are of commands that were killed while they wrote.
            for left in target.parent.glob(".agent-*.part"):
                left.unlink(missing_ok=True)
            with atomic_open(target, private=True) as file:
                file.write(content)


def _sources(folder: Traversable, prefix: str = "") -> list[tuple[str, Traversable]]:
    """Return (relative name, file) of every Python source below a package's folder."""
    found: list[tuple[str, Traversable]] = []
    for item in folder.iterdir():
        if item.is_dir() and item.name != "__pycache__":
            found += _sources(item, f"{prefix}{item.name}/")
        elif item.name.endswith(".py"):
            found.append((prefix + item.name, item))
    return found
