"""Puts the agent and models on a device, once each: folders are named by content, what is there is not sent again."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from argus_edge.artifacts import sha256_file
from argus_edge.devices import container
from argus_edge.devices.agent_client import CALL_S, AgentClient
from argus_edge.devices.remote_files import MAX_ANSWER_BYTES, failure, find_answer, new_mark, script
from argus_edge.devices.transport import Progress, Transport
from argus_edge.errors import DeviceUnreachableError, InputError, MisfitError
from argus_edge.schema.device import DeviceEntry
from argus_edge.text import clean

AGENT_FILE = "agent.pyz"
RESERVE_BYTES = 32 << 20
"""Left free beside what is sent: for the journal, samples and the result."""
ATTEMPTS = 3
"""How often an upload is taken up again after the link was lost."""

# mark folder: makes it and tells the kilobytes that are free there.
_FREE = """
LC_ALL=C; export LC_ALL
umask 077
mkdir -p -- "$2" || exit 73
set -- "$1" $(df -Pk -- "$2" | tail -n 1)
echo "$1 free" "$5"
"""
# mark file: its size, 0 where there is none.
_SIZE = """
[ -f "$2" ] && { echo "$1 size" $(wc -c <"$2"); exit 0; }
echo "$1 size" 0
"""


@dataclass(frozen=True)
class Deployed:
    """A set of files on the device.

    Attributes
    ----------
    folder
        Their folder on the device.
    sent_bytes
        What went over the link; 0 where all was there.
    """

    folder: str
    sent_bytes: int

    def path(self, name: str) -> str:
        """Return the path on the device of one of the files."""
        return f"{self.folder}/{name}"


def deploy_agent(transport: Transport, entry: DeviceEntry, *, progress: Progress | None = None) -> AgentClient:
    """Send the agent unless it is there, start its container where the entry names an image, and return its client."""
    from argus_edge.devices.zipapp import build_agent

    deployed = deploy_files(transport, entry, {AGENT_FILE: build_agent().path}, progress=progress)
    container.ensure(transport, entry, deployed.path(AGENT_FILE))
    return AgentClient(transport, entry, deployed.path(AGENT_FILE))


def deploy_files(
    transport: Transport,
    entry: DeviceEntry,
    files: Mapping[str, Path],
    *,
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
) -> Deployed:
    """Send files that belong together into one folder named by their content.

    Parameters
    ----------
    transport, entry
        The device.
    files
        Name below the folder (``model.onnx``, ``weights/0.bin``) to the local file: a model and its external data
        under the names by which it refers to them.
    progress
        Called with the bytes done and the bytes in all, over all files.
    say
        Told when the link was lost and the upload is taken up again.

    Raises
    ------
    MisfitError
        The device has not enough room; nothing was sent.
    InputError
        A file cannot be read, or a name would leave the folder.
    DeviceUnreachableError
        The link was lost three times in a row; what was sent stays, and the next call goes on from there.
    """
    for name in files:
        if not _inside(name):
            raise InputError(f"Not a name inside a folder: {clean(name, limit=100)!r}.", where=str(files[name]))
    try:
        sizes = {name: path.stat().st_size for name, path in files.items()}
        hashes = {name: sha256_file(path) for name, path in files.items()}
    except OSError as error:
        raise InputError(f"Cannot read the file: {error.strerror}.", where=error.filename) from error
    folder = f"{entry.home}/{content_key(hashes)}"
    check_room(transport, entry, folder, sizes)
    total, done, sent = sum(sizes.values()), 0, 0
    for name, path in files.items():
        base = done

        def report(part: int, _: int, base: int = base) -> None:
            if progress:
                progress(base + part, total)

        sent += _put(transport, path, f"{folder}/{name}", hashes[name], report, say)
        done += sizes[name]
        report(sizes[name], total)
    return Deployed(folder, sent)


def content_key(hashes: Mapping[str, str]) -> str:
    """Return the name of the folder for a set of files.

    A single file's folder is its own hash. Several are named by the hash of their list: two models may share a graph
    and differ in external weights alone.
    """
    if len(hashes) == 1:
        return next(iter(hashes.values()))
    return hashlib.sha256(
        "".join(f"{digest}  {name}\n" for name, digest in sorted(hashes.items())).encode()
    ).hexdigest()


def check_room(transport: Transport, entry: DeviceEntry, folder: str, files: Mapping[str, int]) -> None:
    """Raise where the device has not enough room for what is still to be sent.

    Parameters
    ----------
    transport, entry
        The device.
    folder
        Where the files go.
    files
        Name to size in bytes.

    Raises
    ------
    MisfitError
        With what is needed and what is free.
    """
    total = sum(files.values())
    free = free_bytes(transport, folder, entry.home)
    if free >= total + RESERVE_BYTES:
        return
    # Short: then what is there already counts.
    held = sum(min(_ask(transport, _SIZE, f"{folder}/{name}", entry.home), size) for name, size in files.items())
    if free < total - held + RESERVE_BYTES and held < total:
        raise MisfitError(
            f"Not enough room on the device: {_mb(total - held + RESERVE_BYTES)} are needed, {_mb(free)} are free.",
            where=f"{transport.description}:{entry.home}",
            next_step="free some space there "
            f"(`argus-edge runs prune --device {entry.name} --yes` clears what runs left), or name another home",
        )


def free_bytes(transport: Transport, folder: str, home: str) -> int:
    """Return the bytes that are free where a folder of the device is; it is made if missing.

    Raises
    ------
    MisfitError
        The folder cannot be made.
    """
    return _ask(transport, _FREE, folder, home) * 1024


def _ask(transport: Transport, text: str, path: str, home: str) -> int:
    mark = new_mark()
    done = transport.run(script(text, mark, path), timeout=CALL_S, limit=MAX_ANSWER_BYTES)
    answer = find_answer(done.stdout, mark)
    if answer is None:
        raise failure(done.status, done.stderr, home, transport.description)
    return answer.number


def _put(
    transport: Transport,
    path: Path,
    remote: str,
    sha256: str,
    progress: Progress,
    say: Callable[[str], None] | None,
) -> int:
    """Send a file, taken up again where the link is lost; return the bytes that went over it."""
    for left in reversed(range(ATTEMPTS)):
        try:
            return transport.put(path, remote, sha256=sha256, progress=progress)
        except DeviceUnreachableError as error:
            if not left:
                raise
            if say:
                say(f"{error.what} Going on with the upload.")
    raise AssertionError("unreachable")


def _inside(name: str) -> bool:
    path = PurePosixPath(name)
    return (
        bool(path.parts)
        and not path.is_absolute()
        and ".." not in path.parts
        and not re.search(r"[\x00-\x1f\x7f]", name)
    )


def _mb(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"
