"""How a device's address is to be reached: the user's ssh_config read as ssh reads it."""

from __future__ import annotations

import getpass
import glob
import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import paramiko

from argus_edge.devices.address import parse_address
from argus_edge.errors import UsageError
from argus_edge.text import clean

SYSTEM_CONFIG = Path("/etc/ssh/ssh_config")
DEFAULT_IDENTITIES = ("id_ed25519", "id_ecdsa", "id_rsa")
DEFAULT_USER_KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
DEFAULT_SYSTEM_KNOWN_HOSTS = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
_MAX_INCLUDE_DEPTH = 16


@dataclass(frozen=True)
class Target:
    """Everything needed to open an SSH connection to one host."""

    address: str
    host: str
    port: int
    user: str
    identity_files: tuple[Path, ...] = ()
    identities_configured: bool = False
    identities_only: bool = False
    agent: Path | None = None
    jumps: tuple[str, ...] = ()
    host_key_alias: str | None = None
    known_hosts_files: tuple[Path, ...] = ()
    hash_known_hosts: bool = False

    @property
    def known_as(self) -> str:
        """The name under which known_hosts lists the host's key."""
        if self.host_key_alias:
            return self.host_key_alias
        return self.host if self.port == paramiko.config.SSH_PORT else f"[{self.host}]:{self.port}"

    def __str__(self) -> str:
        port = "" if self.port == paramiko.config.SSH_PORT else f":{self.port}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.user}@{host}{port}"


def load_config(path: Path | None = None, system: Path = SYSTEM_CONFIG) -> paramiko.SSHConfig:
    """Read the user's ssh_config and then the system's, ``Include`` lines followed.

    Raises
    ------
    UsageError
        A line cannot be read.
    """
    user = path or Path("~/.ssh/config").expanduser()
    text = _expand(user, user.parent) + "\nHost *\n" + _expand(system, system.parent)
    try:
        return paramiko.SSHConfig.from_text(text)
    except Exception as error:  # paramiko raises plain Exception from some of its parsers
        raise UsageError(f"Cannot read the ssh_config: {error}.", where=str(user)) from error


def _expand(path: Path, base: Path, depth: int = 0) -> str:
    """Return a config file's text with included files in place of their ``Include`` lines."""
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:  # none, not ours to read, a folder: as ssh does, gone on without it
        return ""
    block, out = "Host *", []
    for line in lines:
        words = line.strip().replace("=", " ", 1).split()
        keyword = words[0].lower() if words else ""
        if keyword in ("host", "match"):
            block = line
        if keyword != "include":
            out.append(line)
        elif depth < _MAX_INCLUDE_DEPTH:
            for pattern in words[1:]:
                full = os.path.join(base, os.path.expanduser(pattern.strip('"')))
                out += [_expand(Path(name), base, depth + 1) for name in sorted(glob.glob(full))]
            # What the included file ended in must not swallow the lines that follow here.
            out.append(block)
    return "\n".join(out)


def resolve(address: str, config: paramiko.SSHConfig, *, jumps: tuple[str, ...] | None = None) -> Target:
    """Return how an address is reached under a config.

    Parameters
    ----------
    address
        ``[user@]host[:port]``; the host may be an alias of the config.
    config
        See :func:`load_config`.
    jumps
        The hosts to go through, for a hop of a chain; None asks the config.

    Raises
    ------
    UsageError
        The address or an option of the config for it cannot be used.
    """
    user, alias, port = parse_address(address)
    try:
        options = config.lookup(alias)
        configured_port = int(options.get("port", paramiko.config.SSH_PORT))
    except (
        Exception
    ) as error:  # paramiko: ConfigParseError, CouldNotCanonicalize, ImportError for Match exec, ValueError
        raise UsageError(f"Cannot apply the ssh_config: {error}.", where=alias) from error
    if jumps is None:
        jumps = _jumps(options.get("proxyjump"))
        if options.get("proxycommand") and not jumps:
            raise UsageError(
                "The ssh_config reaches this host through a ProxyCommand, which is not supported.",
                where=alias,
                next_step="use ProxyJump for it",
            )
    identities = cast(list[str], options.get("identityfile") or [])
    configured = [Path(name).expanduser() for name in identities if name.lower() != "none"]
    return Target(
        address=address,
        host=options.get("hostname", alias),
        port=port or configured_port,
        user=user or options.get("user") or getpass.getuser(),
        identity_files=tuple(
            configured if identities else [Path("~/.ssh", name).expanduser() for name in DEFAULT_IDENTITIES]
        ),
        identities_configured=bool(identities),
        identities_only=options.get("identitiesonly", "no").lower() == "yes",
        agent=_agent(options.get("identityagent")),
        jumps=jumps,
        host_key_alias=options.get("hostkeyalias"),
        hash_known_hosts=options.get("hashknownhosts", "no").lower() == "yes",
        known_hosts_files=(
            *_files(options.get("userknownhostsfile"), DEFAULT_USER_KNOWN_HOSTS),
            *_files(options.get("globalknownhostsfile"), DEFAULT_SYSTEM_KNOWN_HOSTS),
        ),
    )


def _agent(value: str | None) -> Path | None:
    """Return the socket of the agent that the config names, the environment's by default; None for no agent."""
    name = (value or "SSH_AUTH_SOCK").strip('"')
    if name.lower() == "none":
        return None
    if name == "SSH_AUTH_SOCK" or name.startswith("$"):
        name = os.environ.get(name.strip("${}"), "")
    return Path(name).expanduser() if name else None


def _jumps(value: str | None) -> tuple[str, ...]:
    if not value or value.lower() == "none":
        return ()
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _files(value: str | None, default: tuple[str, ...]) -> list[Path]:
    try:
        names = shlex.split(value) if value else list(default)
    except ValueError as error:
        raise UsageError(
            f"Cannot read a list of files in the ssh_config: {clean(value or '', limit=100)!r}."
        ) from error
    return [Path(name).expanduser() for name in names if name.lower() != "none"]
