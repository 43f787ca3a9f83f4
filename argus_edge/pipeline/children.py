"""A plan's command as a process of its own, which is given time to end well and never outlives the plan."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import IO

# A bench stops the job on its board within 5 s of Ctrl-C.
PATIENCE_S = 7.0
_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of linux/prctl.h


def _stop_signal() -> signal.Signals:
    """Return what asks a command to stop: Ctrl-C's signal, unless it is ignored here and so in every child."""
    return signal.SIGTERM if signal.getsignal(signal.SIGINT) is signal.SIG_IGN else signal.SIGINT


def _dies_with_parent() -> Callable[[], None] | None:
    """Return what a child does before it begins: even if the plan is killed outright, it is told to stop."""
    if sys.platform != "linux":
        return None
    prctl, number = ctypes.CDLL(None).prctl, int(_stop_signal())

    def ask() -> None:
        prctl(_SET_DEATH_SIGNAL, number)

    return ask


def call_and_wait(command: Sequence[str], output: IO[str] | None = None) -> int:
    """Run a command and return its exit code.

    Ctrl-C reaches a terminal's command directly; whatever else ends the wait is passed on to it. Either way it is
    waited for, since one that is killed at once would leave its job running on the board.
    """
    process = subprocess.Popen(command, stdout=output, preexec_fn=_dies_with_parent())
    try:
        return process.wait()
    except KeyboardInterrupt:
        _end(process, None)
        raise
    except BaseException:
        _end(process, _stop_signal())
        raise


def _end(process: subprocess.Popen[bytes], first: signal.Signals | None) -> None:
    for number in (first, _stop_signal(), signal.SIGTERM, signal.SIGKILL):
        if number is not None:
            process.send_signal(number)
        # Another Ctrl-C, which the command has heard as well, cuts the waiting short.
        with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            process.wait(PATIENCE_S)
            return
