"""From a device's entry to its transport."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from argus_edge.devices.transport import Transport
from argus_edge.schema.device import DeviceEntry


def connect(entry: DeviceEntry) -> Transport:
    """Return the transport of a device; an SSH connection is opened on first use.

    Raises
    ------
    UsageError
        The entry's address or the user's ssh_config cannot be used.
    """
    if entry.host is None:
        from argus_edge.devices.local import LocalTransport

        return LocalTransport()
    from argus_edge.devices.ssh import SshTransport

    return SshTransport(entry.host)


@contextlib.contextmanager
def connected(entry: DeviceEntry) -> Iterator[Transport]:
    """Give a device's transport and close it at the end."""
    transport = connect(entry)
    try:
        yield transport
    finally:
        transport.close()
