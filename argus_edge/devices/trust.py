"""Accepting a host key: the only way by which a key gets into known_hosts, and only when asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from argus_edge.devices import known_hosts
from argus_edge.devices.ssh import SshTransport
from argus_edge.devices.ssh_config import Target
from argus_edge.errors import DeviceUntrustedError, UsageError
from argus_edge.text import clean

REPLACEABLE = ("changed", "unknown", "certificate")


def trust(
    address: str,
    *,
    fingerprint: str | None,
    replace: bool,
    confirm: Callable[[str], bool],
    config: Path | None = None,
) -> tuple[Path | None, str]:
    """Connect, hold the key that is shown against the expected one, and list it in the user's known_hosts.

    Parameters
    ----------
    address
        ``[user@]host[:port]`` or an alias of the ssh_config; jump hosts on the way must be trusted already.
    fingerprint
        ``SHA256:…`` that the key must have; None asks ``confirm``.
    replace
        The host's old key is dropped; without it a changed key is refused.
    confirm
        Called with the shown fingerprint.
    config
        The ssh_config; None: the user's.

    Returns
    -------
    tuple
        The file that was written (None: the key was trusted already) and the key's fingerprint.

    Raises
    ------
    DeviceUntrustedError
        It is another key than expected, has changed, or is revoked.
    DeviceUnreachableError
        The host does not answer.
    UsageError
        Not confirmed, or known_hosts is switched off in the ssh_config.
    """
    written: list[Path] = []
    shown: list[str] = []

    def judge(target: Target, verdict: known_hosts.Verdict, key: bytes) -> bool:
        found = known_hosts.fingerprint(key)
        shown.append(found)
        if verdict.kind not in ("trusted", *REPLACEABLE) or (verdict.kind == "changed" and not replace):
            return False
        if fingerprint is not None and found != fingerprint:
            known = ", which known_hosts has already" if verdict.kind == "trusted" else ""
            raise DeviceUntrustedError(
                f"The device shows another key: {found}{known}, not {clean(fingerprint, limit=100)}.",
                where=str(target),
                next_step="compare the fingerprint on the device itself; do not go on if it differs",
            )
        if verdict.kind == "trusted":
            return True
        if fingerprint is None and not confirm(found):
            raise UsageError("The key was not accepted; nothing was changed.", where=str(target))
        if not target.known_hosts_files:
            raise UsageError("The ssh_config names no known_hosts file to write.", where=str(target))
        known_hosts.accept(
            target.known_hosts_files[0], target.known_as, key, replace=replace, hashed=target.hash_known_hosts
        )
        written.append(target.known_hosts_files[0])
        return True

    transport = SshTransport(address, config=config, accept=judge)
    try:
        transport.connect()
    except DeviceUntrustedError:
        # The key stands, and only the login failed: that is the next problem, and doctor's.
        if not written:
            raise
    finally:
        transport.close()
    return (written[0] if written else None), shown[0]
