"""Addresses as a user writes them: ``[user@]host[:port]``."""

from __future__ import annotations

import re

from argus_edge.errors import UsageError
from argus_edge.text import clean

_ADDRESS = re.compile(
    r"(?:(?P<user>[^@\s]+)@)?(?:\[(?P<bracketed>[^\]\s]+)\]|(?P<host>[^:@\s\[\]]+))(?::(?P<port>\d{1,5}))?"
)
_BARE_IPV6 = re.compile(r"(?:(?P<user>[^@\s]+)@)?(?P<host>[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.%\w]*)")


def parse_address(address: str) -> tuple[str | None, str, int | None]:
    """Split ``[user@]host[:port]`` or ``ssh://…`` into its parts.

    Raises
    ------
    UsageError
        It is none, or begins with a dash (which other programs would take for an option).
    """
    text = address.removeprefix("ssh://").rstrip("/")
    match = _BARE_IPV6.fullmatch(text) or _ADDRESS.fullmatch(text)
    parts = match.groupdict() if match else {}
    host = parts.get("bracketed") or parts.get("host") or ""
    port = int(parts["port"]) if parts.get("port") else None
    if (
        not host
        or host.startswith("-")
        or (parts.get("user") or "").startswith("-")
        or port == 0
        or (port or 0) > 65535
    ):
        raise UsageError(
            f"Not an address: {clean(address, limit=100)!r}.", next_step="write it as user@host or user@host:port"
        )
    return parts.get("user"), host, port
