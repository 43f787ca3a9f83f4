"""Boards that fail again and again are left out until somebody has looked at them."""

from __future__ import annotations

from typing import Any

from argus_edge.devices.inventory import Inventory
from argus_edge.errors import ArgusError, BoardFailedError, DeviceError, DeviceUnreachableError
from argus_edge.schema.device import DeviceEntry

LIMIT = 3
"""Benches in a row that the board itself let fail."""


class Quarantine:
    """Counts the failures of an inventory's boards in the inventory's file; a board that is not saved is not counted.

    Parameters
    ----------
    inventory
        Read anew before it is changed, so that several commands count together.
    """

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory

    def check(self, entry: DeviceEntry) -> None:
        """Raise where a board is in quarantine.

        Raises
        ------
        DeviceError
            The next step is what releases it.
        """
        known = self._inventory.entries.get(entry.name)
        if known is not None and known.quarantined:
            raise DeviceError(
                f"{entry.name} is in quarantine: it failed {known.failures} times in a row.",
                where=entry.host,
                next_step=f"argus-edge device doctor {entry.name}{self._inventory.option}   "
                "(releases it when all is well)",
            )

    def count(self, entry: DeviceEntry, error: ArgusError | None) -> str | None:
        """Take it how a bench ended; return what to tell of it.

        Parameters
        ----------
        entry
            The board.
        error
            Why it failed: only what is the board's own fault counts, that it is not reached or breaks down. None: it
            did its work, and what was counted before is forgotten.
        """
        known = self._inventory.entries.get(entry.name)
        if known is None or known.host != entry.host:
            return None
        bad = isinstance(error, DeviceUnreachableError | BoardFailedError)
        if not bad and (error is not None or not known.failures):
            return None
        try:
            now = self._inventory.update(entry.name, _one_more if bad else _forgotten)
        except ArgusError as fault:  # costs the count, not the bench
            return f"the failures of {entry.name} are not counted: {fault.what}"
        if not now.quarantined:
            return None
        return f"{entry.name} failed {now.failures} times in a row and is left out from now on (quarantine)"


def _one_more(known: DeviceEntry) -> dict[str, Any]:
    return {"failures": known.failures + 1, "quarantined": known.failures + 1 >= LIMIT}


def _forgotten(known: DeviceEntry) -> dict[str, Any]:
    return {"failures": 0, "quarantined": False}
