"""Switching a board off and on with the user's own command, and waiting until it answers again."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable

from argus_edge.devices.connect import connect
from argus_edge.devices.transport import Transport
from argus_edge.errors import DeviceError, DeviceUnreachableError, UsageError
from argus_edge.schema.device import DeviceEntry
from argus_edge.text import clean

COMMAND_S = 120.0
"""Longer than any relay or switch takes; a command that hangs ends here."""
BOOT_S = 180.0
POLL_S = 3.0
GOING_S = 5.0
"""A board that was told to go off may still answer for so long."""

Connect = Callable[[DeviceEntry], Transport]


def power_cycle(entry: DeviceEntry) -> None:
    """Run the entry's power-cycle command on this machine: its own words, without a shell, time-limited.

    Raises
    ------
    UsageError
        The entry has none.
    DeviceError
        It cannot be run, fails or does not end.
    """
    if not entry.power_cycle:
        raise UsageError(
            f"There is no command that switches {entry.name} off and on.",
            next_step=f"argus-edge device add {entry.name} --power-cycle 'COMMAND' --replace",
        )
    program = clean(entry.power_cycle[0], limit=100)
    try:
        done = subprocess.run(
            entry.power_cycle,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=COMMAND_S,
            check=False,
            # Ctrl-C is for us; half a power cycle would leave the board off.
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise DeviceError(f"The power-cycle command did not end within {COMMAND_S:g} s.", where=program) from None
    except OSError as error:
        raise DeviceError(f"The power-cycle command cannot be run: {error.strerror}.", where=program) from error
    if done.returncode != 0:
        said = clean(done.stdout.decode("utf-8", "replace"), limit=300) or "no message"
        raise DeviceError(f"The power-cycle command failed with status {done.returncode}: {said}.", where=program)


def answers(entry: DeviceEntry, connect: Connect = connect) -> bool:
    """Return whether a command can be run on the board.

    Raises
    ------
    DeviceUntrustedError
        Something answers that is not trusted: waiting does not mend that.
    """
    with contextlib.closing(connect(entry)) as transport:
        try:
            return transport.run(["true"], timeout=10.0).status == 0
        except DeviceUnreachableError:
            return False


def wait_until_up(
    entry: DeviceEntry,
    *,
    connect: Connect = connect,
    pause: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> float:
    """Wait until a board that was power-cycled answers; return the seconds that it took.

    Raises
    ------
    DeviceUnreachableError
        It does not within three minutes.
    """
    begun = clock()
    pause(GOING_S)
    while not answers(entry, connect):
        if clock() - begun >= BOOT_S:
            raise DeviceUnreachableError(
                f"It does not answer {BOOT_S:.0f} s after it was power-cycled.",
                where=entry.host or entry.name,
                next_step="look at the board, its supply and its card",
            )
        pause(POLL_S)
    return clock() - begun
