"""``follow``: passes a run's events on as they are written, without waking more often than they come."""

import contextlib
import fcntl
import os
import signal
import time

from .home import journal_events, run_folder
from .runs import supervisor_alive, verdict

HEARTBEAT_S = 2.0
# Without news from the kernel the journal is looked at this often; with it, only when it was written to.
POLL_S = 1.0
FRAME_BYTES = 64 << 10


class Watch:
    """Waits until something in a folder is written to, by dnotify: part of fcntl, so that nothing need be imported."""

    def __init__(self, folder):
        self._folder = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])
        # A file system or an emulator without it is polled.
        with contextlib.suppress(OSError):
            fcntl.fcntl(self._folder, fcntl.F_NOTIFY, fcntl.DN_MODIFY | fcntl.DN_RENAME | fcntl.DN_MULTISHOT)

    def wait(self, seconds):
        """Wait for a write, at most so long."""
        signal.sigtimedwait([signal.SIGIO], seconds)


def batches(folder, offset):
    """Iterate over (offset, events) of what the journal holds from an offset on, a frame's worth at a time."""
    start, events = offset, []
    for after, event in journal_events(folder, offset):
        events.append(event)
        offset = after
        if offset - start >= FRAME_BYTES:
            yield offset, events
            start, events = offset, []
    if events:
        yield offset, events


def follow(home, run, offset, emit):
    """Emit {"offset", "events"} as events come, {} as a heartbeat, until the run has ended.

    Where the supervisor died without a word, the last event is an "ended" that the journal does not hold.
    """
    folder = run_folder(home, run)
    watch = Watch(folder)
    spoke = time.monotonic()
    while True:
        running = supervisor_alive(
            folder
        )  # asked before the journal is read: what it wrote before it ended is in there
        for after, events in batches(folder, offset):
            offset = after
            emit({"offset": offset, "events": events})
            spoke = time.monotonic()
            if any(event.get("event") == "ended" for event in events):
                return
        if not running:
            state, fault = verdict(folder)
            now = {"t": time.perf_counter(), "wall": time.time()}
            emit({"offset": offset, "events": [dict(now, event="ended", state=state, error=fault)]})
            return
        if time.monotonic() - spoke >= HEARTBEAT_S:
            emit({})
            spoke = time.monotonic()
        watch.wait(POLL_S)
