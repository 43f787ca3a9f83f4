"""What a device's output is held in: bytes up to a limit, and lines that cannot grow without end."""

from __future__ import annotations

from collections.abc import Iterator

from argus_edge.agents.wire import MAX_LINE_BYTES
from argus_edge.errors import DeviceUnreachableError


def silent(seconds: float, device: str) -> DeviceUnreachableError:
    """Return the error for a device from which no line came in so long."""
    return DeviceUnreachableError(
        f"Nothing was heard for {seconds:g} s.",
        where=device,
        next_step="check its power and network; what runs on the device goes on without us",
    )


class Capture:
    """The first ``limit`` bytes of a stream; the rest is counted and dropped."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.total = 0
        self._data = bytearray()

    def add(self, chunk: bytes) -> None:
        """Take what came."""
        self.total += len(chunk)
        if len(self._data) < self.limit:
            self._data += chunk[: self.limit - len(self._data)]

    def text(self) -> str:
        """Return it as text; bytes that are not UTF-8 are replaced."""
        return self._data.decode("utf-8", "replace")


class LineSplitter:
    """Chunks of bytes into lines of text.

    A line longer than the protocol allows comes out cut, one byte over the limit, so that its reader can tell; the
    rest of it is dropped.
    """

    def __init__(self, limit: int = MAX_LINE_BYTES + 1) -> None:
        self._limit = limit
        self._line = bytearray()

    def feed(self, chunk: bytes) -> Iterator[str]:
        """Take a chunk and give the lines that it completes, without their line ends."""
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            self._take(piece)
            yield self._give()
        self._take(rest)

    def end(self) -> Iterator[str]:
        """Give what was left without a line end."""
        if self._line:
            yield self._give()

    def _take(self, piece: bytes) -> None:
        room = self._limit - len(self._line)
        self._line += piece[:room]

    def _give(self) -> str:
        text = self._line.decode("utf-8", "replace").rstrip("\r")
        self._line.clear()
        return text
