"""``keep``: a container's first process. It does nothing, and ends when nothing else has lived there for a while."""

import os
import time

IDLE_S = 120.0
LOOK_S = 5.0


def neighbours():
    """Return how many other processes see the same files as this one: those of the container."""
    own, count = os.readlink("/proc/self/ns/mnt"), 0
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                count += os.readlink("/proc/%s/ns/mnt" % name) == own
            except OSError:
                continue  # it has ended, or is another user's
    return count


def keep(home, idle=None):
    """Wait until nothing else has run here for ``idle`` seconds (text or number; by default two minutes)."""
    idle = IDLE_S if idle is None else float(idle)
    last = time.monotonic()
    while time.monotonic() - last < idle:
        time.sleep(min(LOOK_S, max(0.05, idle / 4)))
        if neighbours():
            last = time.monotonic()
    return {"kept": True}
