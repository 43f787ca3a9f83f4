"""Queueing for a device that another run holds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from argus_edge.bench.watching import RETRY_S, Listener
from argus_edge.errors import DeviceBusyError, DeviceUnreachableError

T = TypeVar("T")

POLL_S = 2.0


class Queue:
    """Waits for busy devices.

    Parameters
    ----------
    patience
        Seconds to wait for a run of somebody else; 0: not at all, infinity: as long as it takes.
    clock
        Seconds that go on evenly.

    Attributes
    ----------
    ours
        Ids of runs that this process started: those are always waited for. Two entries of the inventory may be one
        machine.
    """

    def __init__(self, patience: float = 0.0, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.patience = patience
        self.ours: set[str] = set()
        self._clock = clock

    def when_free(self, action: Callable[[], T], told: Listener) -> T:
        """Do what needs the device, again and again until no other run holds it; return what it gives.

        Once it has been found busy, a link that fails is made anew as when a run is followed: a wait may be long.

        Raises
        ------
        DeviceBusyError
            It still is when the patience is at its end.
        """
        begun = self._clock()
        waits_for: str | None = None
        lost = 0
        while True:
            try:
                return action()
            except DeviceBusyError as error:
                lost = 0
                waited = self._clock() - begun
                if error.run not in self.ours and waited >= self.patience:
                    if waits_for is None:
                        raise
                    raise DeviceBusyError(
                        f"{error.what} Waited for {waited:.0f} s.",
                        where=error.where,
                        next_step="wait longer, as in --wait 2h",
                        run=error.run,
                    ) from error
                if waits_for != (error.run or ""):
                    waits_for = error.run or ""
                    told.say(f"{error.what} Waiting for it to be free.")
            except DeviceUnreachableError as error:
                if waits_for is None or lost == len(RETRY_S):
                    raise
                lost += 1
                told.say(f"{error.what} Trying again.")
            told.pause(POLL_S)
