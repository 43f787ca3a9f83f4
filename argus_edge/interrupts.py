"""Ctrl-C while threads do the work: counted, and told through a pipe that the main thread waits at."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from types import FrameType


class Interrupts:
    """Counts Ctrl-C, and wakes whoever waits; other threads wake it too.

    A handler of its own in place of KeyboardInterrupt, which may come between any two instructions: also between those
    that are about to tell the user how to come back. Outside the main thread, and where Ctrl-C is ignored (``nohup``, a
    background job), nothing is counted.

    Examples
    --------
    >>> with Interrupts() as interrupts:
    ...     interrupts.wake()
    ...     interrupts.wait(1.0)
    ...     interrupts.count
    0
    """

    def __init__(self) -> None:
        self.count = 0
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)

    def __enter__(self) -> Interrupts:
        self._before = signal.getsignal(signal.SIGINT)
        self._installed = threading.current_thread() is threading.main_thread() and self._before is not signal.SIG_IGN
        if self._installed:
            signal.signal(signal.SIGINT, self._interrupted)
            # The handler itself runs only when the main thread does; the signal must wake it, whichever thread it hits.
            self._fd_before = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        if self._installed:
            signal.set_wakeup_fd(self._fd_before)
            signal.signal(signal.SIGINT, self._before)

    def __del__(self) -> None:
        # Not at the end of the context: a thread that is late may still wake us.
        os.close(self._read)
        os.close(self._write)

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        self.count += 1

    def wake(self) -> None:
        """End a wait; from any thread."""
        # A full pipe wakes as well.
        with contextlib.suppress(BlockingIOError):
            os.write(self._write, b".")

    def wait(self, timeout: float | None = None) -> None:
        """Wait until woken, or for so many seconds at most."""
        select.select([self._read], [], [], timeout)
        with contextlib.suppress(BlockingIOError):
            os.read(self._read, 1 << 12)
