"""A board that can be broken: a real sshd in name spaces of its own, on a small disk, with a planted runtime.

Its processes, its boot id and its shared memory are its own, so that it can be rebooted; what it runs is the real agent
under this machine's Python. Needs root and ``unshare``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from argus_edge.agents import entry
from tests.board import trees
from tests.support import sshd
from tests.support.chaos import Chaos

FAKES = Path(__file__).resolve().parents[2] / "tests" / "agents" / "fakes"
DISK = "128m"
MEMORY_BYTES = 256 << 20
# boot id, planted /sys, then the server: inside the name spaces.
INSIDE = """
mount --bind "$1" /proc/sys/kernel/random/boot_id && mount -t tmpfs -o size=64m tmpfs /dev/shm || exit 1
if [ -n "$3" ]; then echo $$ >"$3/cgroup.procs" || exit 1; fi
if [ -n "$2" ]; then mount --rbind "$2" /sys || exit 1; fi
shift 3
exec "$@"
"""


def why_not() -> str | None:
    """Return why such a board cannot be had on this machine, or None."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "a board that can be rebooted needs root on Linux"
    if not sshd.SSHD or not shutil.which("unshare"):
        return "sshd or unshare is missing: apt-get install openssh-server util-linux"
    tried = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"],
        capture_output=True,
        check=False,
    )
    return None if tried.returncode == 0 else "no mount and process name spaces of one's own here"


class Board:
    """One board and the link to it.

    Parameters
    ----------
    folder
        Everything of it.
    environment
        Of every command on the board: what the planted runtime does, a clock that jumps.
    planted
        Give it the files of a Raspberry Pi 5 below /sys.
    memory
        Put it into a memory cgroup of 256 MB.
    """

    def __init__(
        self, folder: Path, *, environment: dict[str, str] | None = None, planted: bool = False, memory: bool = False
    ) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.disk = folder / "disk"
        self.disk.mkdir()
        self.home = self.disk / "argus"
        self.port = sshd.free_port()
        self.host_key = sshd.make_key(folder / "host_key")
        self.user_key = sshd.make_key(folder / "user_key")
        self.tree = trees.pi5(folder / "tree") if planted else None
        self.cgroup = memory_cgroup() if memory else None
        self.boot_id = folder / "boot_id"
        self.python = folder / "python"
        self.set_environment(environment or {})
        self._running: contextlib.ExitStack | None = None
        self.server: sshd.Sshd | None = None

    def set_environment(self, environment: dict[str, str]) -> None:
        """Say what every command of the agent finds in its environment from now on."""
        words = {"PYTHONPATH": str(FAKES), **environment}
        lines = "".join(f"export {name}='{value}'\n" for name, value in words.items())
        self.python.write_text(f'#!/bin/sh\n{lines}exec {sys.executable} "$@"\n')
        self.python.chmod(0o755)

    def boot(self) -> None:
        """Start it, with a new boot id."""
        self.boot_id.write_text(f"{uuid.uuid4()}\n")
        planted = str(self.folder / "tree" / "sys") if self.tree else ""
        within = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "/bin/sh", "-c", INSIDE)
        stack = contextlib.ExitStack()
        self.server = stack.enter_context(
            sshd.serve(
                self.folder / "sshd",
                host_key=self.host_key,
                user_key=self.user_key,
                port=self.port,
                within=(*within, "board", str(self.boot_id), planted, str(self.cgroup or "")),
            )
        )
        self._running = stack

    def crash(self) -> None:
        """Pull the plug: every process of it ends at once."""
        if self._running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._first(), signal.SIGKILL)
            self._running.close()
            self._running = None

    def _first(self) -> int:
        """Return the first process of its name space: sshd."""
        return next(pid for pid in self.everything() if "unshare" in _cmdline(_parent(pid))[0])

    def everything(self) -> list[int]:
        """Return all its processes."""
        config = str(self.folder / "sshd" / "sshd_config")
        own = _space(os.getpid())
        spaces = {_space(pid) for pid in _processes() if any(config in word for word in _cmdline(pid))} - {own, ""}
        return [pid for pid in _processes() if _space(pid) in spaces]

    def sessions(self) -> list[int]:
        """Return the processes of sshd that serve connections, not the one that waits for them."""
        return [pid for pid in self.everything() if _cmdline(pid)[0].startswith("sshd") and pid != self._first()]

    def pids(self) -> list[int]:
        """Return the agent's processes by this machine's numbers."""
        return [pid for pid in self.everything() if any(word.endswith("agent.pyz") for word in _cmdline(pid))]

    def supervisor(self) -> int | None:
        """Return the supervisor's process."""
        return next((pid for pid in self.pids() if entry.SUPERVISE in _cmdline(pid)), None)

    def worker(self) -> int | None:
        """Return the worker's process."""
        return next((pid for pid in self.pids() if entry.WORKER in _cmdline(pid)), None)

    # ------------------------------------------------------------ what is on its disk

    def runs(self) -> list[Path]:
        """Return the runs' folders."""
        folder = self.home / "runs"
        return sorted(path for path in folder.iterdir() if not path.name.startswith(".")) if folder.is_dir() else []

    def fill(self) -> None:
        """Leave no room on the disk."""
        with contextlib.suppress(OSError), open(self.disk / "ballast", "ab", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def clear(self) -> None:
        """Give the room back."""
        (self.disk / "ballast").unlink(missing_ok=True)

    def close(self) -> None:
        """End it."""
        self.crash()
        if self.cgroup:
            for _ in range(100):
                with contextlib.suppress(OSError):
                    self.cgroup.rmdir()
                    break
                time.sleep(0.05)


@contextlib.contextmanager
def a_board(folder: Path, **how) -> Iterator[tuple[Board, Chaos]]:
    """Give a running board on a small disk, and the proxy before it."""
    board = Board(folder, **how)
    with small_disk(board.disk, DISK):
        board.boot()
        try:
            with Chaos(board.port) as link:
                yield board, link
        finally:
            board.close()


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """Mount a file system of so many bytes over a folder."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def memory_cgroup() -> Path | None:
    """Return a new memory cgroup of 256 MB, version 1 or 2; None where none can be made."""
    root = Path("/sys/fs/cgroup")
    second = (root / "cgroup.controllers").exists()
    group = (root if second else root / "memory") / f"argus-edge-faults-{uuid.uuid4().hex[:12]}"
    try:
        group.mkdir()
        (group / ("memory.max" if second else "memory.limit_in_bytes")).write_text(str(MEMORY_BYTES))
    except OSError:
        return None
    return group


def _processes() -> Iterator[int]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            yield int(name)


def _cmdline(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return [""]


def _space(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0
