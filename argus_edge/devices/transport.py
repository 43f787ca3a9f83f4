"""The transport seam: what the host needs of a device, and nothing more. `local`, `ssh` and a mock stand behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

Progress = Callable[[int, int], None]
"""Called with bytes done and bytes in all."""


@dataclass(frozen=True)
class Completed:
    """A command that has ended on the device.

    Attributes
    ----------
    status
        Exit status; negative for a signal.
    stdout, stderr
        What it wrote, at most ``limit`` bytes each (the rest is dropped).
    """

    status: int
    stdout: str
    stderr: str


class Transport(Protocol):
    """Commands and files on one device.

    Every wait has a time-out. A link that is dead raises :class:`~argus_edge.errors.DeviceUnreachableError` within 10
    s. Remote paths may begin with ``~/``; they are passed as arguments, never pasted into a shell string.
    """

    description: str
    """How a person names the device: ``this machine`` or ``pi@192.168.1.20``."""

    def run(
        self, argv: Sequence[str], *, timeout: float, stdin: bytes | None = None, limit: int = 1 << 20
    ) -> Completed:
        """Run a command to its end.

        Raises
        ------
        DeviceUnreachableError
            The link failed, or the command did not end in ``timeout`` seconds.
        """
        ...

    def lines(
        self, argv: Sequence[str], *, silence: float, first: float | None = None
    ) -> AbstractContextManager[Iterator[str]]:
        """Run a command and iterate over its output lines as they come; leaving the context ends the command's channel.

        Raises
        ------
        DeviceUnreachableError
            Nothing came for ``silence`` seconds (``first`` seconds before the first line: a program must start), or
            the link failed.
        """
        ...

    def put(self, local: Path, remote: str, *, sha256: str, progress: Progress | None = None) -> int:
        """Send a file: nothing if it is there with that hash, else to a temporary name, resumed, checked, renamed.

        Returns
        -------
        int
            Bytes that went over the link.
        """
        ...

    def get(self, remote: str, local: Path, *, limit: int, progress: Progress | None = None) -> None:
        """Fetch a file of at most ``limit`` bytes whole to ``local``."""
        ...

    def close(self) -> None:
        """Give the link back, for good; never raises. A command that another thread waits for ends."""
        ...
