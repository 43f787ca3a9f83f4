"""A TCP proxy on the loopback that misbehaves on purpose, between a host and any server; in a thread of its own.

with Chaos(port_of_sshd) as link:
    connect to 127.0.0.1:link.port
    link.black_hole()         bytes stop, connections stay open
    link.cut_after(5_000_000) every connection is reset once so many bytes more have passed
    link.after(5_000_000, link.hang_up)   the same with another fault
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable
from types import TracebackType

CHUNK = 16_384
RESET = struct.pack("ii", 1, 0)  # SO_LINGER on, 0 seconds: close() sends RST


class Chaos:
    """The proxy; every attribute may be changed while it runs.

    Attributes
    ----------
    port
        Where it listens.
    delay
        Seconds that each chunk takes longer.
    rate
        Bytes a second in each direction; None: as fast as it goes.
    passed
        Bytes passed so far, both directions.
    connections
        Connections accepted so far.
    refusing
        Reset each new connection at once.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.delay = 0.0
        self.rate: float | None = None
        self.passed = 0
        self.connections = 0
        self._flowing = threading.Event()
        self._flowing.set()
        self.refusing = False
        self._then: tuple[int, Callable[[], None]] | None = None
        self._sockets: set[socket.socket] = set()
        self._guard = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Chaos:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        self._flowing.set()
        self.reset()

    def black_hole(self) -> None:
        """Let no more bytes through; nothing is closed."""
        self._flowing.clear()

    def restore(self) -> None:
        """Be a good link again."""
        self.refusing = False
        self.delay, self.rate, self._then = 0.0, None, None
        self._flowing.set()

    def refuse(self) -> None:
        """Reset every connection, and each new one at once."""
        self.refusing = True
        self.reset()

    def cut_after(self, count: int) -> None:
        """Reset every connection once so many bytes more have passed; then be a good link again."""
        self.after(count, self.reset)

    def after(self, count: int, action: Callable[[], None]) -> None:
        """Do something once so many bytes more have passed."""
        self._then = (self.passed + count, action)

    def reset(self) -> None:
        """Reset every connection now."""
        self._end_all(RESET)

    def hang_up(self) -> None:
        """End every connection in an orderly way now, as a server that is shut down does."""
        self._end_all(None)

    def _end_all(self, linger: bytes | None) -> None:
        with self._guard:
            doomed, self._sockets = self._sockets, set()
        for end in doomed:
            with contextlib.suppress(OSError):  # the far end may be faster
                if linger:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                # Wakes a thread that waits in recv; close alone would not.
                end.shutdown(socket.SHUT_RD)
            end.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            if self.refusing:
                near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                near.close()
                continue
            try:
                far = socket.create_connection(("127.0.0.1", self.target), timeout=10)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            with self._guard:
                self._sockets |= {near, far}
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(CHUNK):
                self._flowing.wait()
                if self.delay or self.rate:
                    time.sleep(self.delay + (len(data) / self.rate if self.rate else 0.0))
                sink.sendall(data)
                with self._guard:
                    self.passed += len(data)
                    due = self._then is not None and self.passed >= self._then[0]
                    action = self._then[1] if due and self._then else None
                    self._then = None if due else self._then
                if action:
                    action()
            self._flowing.wait()
            with self._guard:
                ended = source in self._sockets  # by its peer; what we end ourselves is reset without a word before
            if ended:
                sink.shutdown(socket.SHUT_WR)
        except OSError:
            return  # reset, by us or by an end
