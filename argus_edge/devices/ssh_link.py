"""One authenticated SSH connection: opened through jump hosts, its host key judged, watched for a dead link."""

from __future__ import annotations

import contextlib
import errno
import logging
import shlex
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import paramiko

from argus_edge.devices import known_hosts
from argus_edge.devices.ssh_config import Target, resolve
from argus_edge.errors import ArgusError, DeviceUnreachableError, DeviceUntrustedError, UsageError
from argus_edge.text import clean

CONNECT_S = 8.0
"""For each of: the TCP connection, the server's banner, the key exchange."""
AUTH_S = 20.0
"""For authentication; an agent may ask its user to confirm."""
PROBE_AFTER_S = 3.0
DEAD_AFTER_S = 7.0
"""Silence after which the far side is asked for a sign of life, and after which the link is given up."""
ASLEEP_S = 2.0
"""The watch looks every half second; where that took so long, it was not the far side that was silent."""
MAX_HOPS = 8
TOO_MANY_KEYS = 3
"""From so many refused keys on, a server that closes the connection means that."""

# AES-GCM first: one pass over the data where CTR and HMAC take two, which is what a large upload is bound by.
_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr", "aes192-ctr", "aes256-ctr")
_WINDOW_BYTES = 1 << 22

# Paramiko logs what it also raises; the user is told once.
logging.getLogger("paramiko").addHandler(logging.NullHandler())
logging.getLogger("paramiko").propagate = False


class Link:
    """An open connection. ``broken`` says why, once it has failed."""

    def __init__(self, target: Target, transport: paramiko.Transport, heard: _Heard, beneath: Link | None) -> None:
        self.target = target
        self.transport = transport
        self.broken = ""
        self._heard = heard
        self._beneath = beneath
        self._closed = threading.Event()
        threading.Thread(target=self._watch, name=f"watch {target}", daemon=True).start()

    @property
    def alive(self) -> bool:
        """Whether commands can still be sent."""
        return not self.broken and self.transport.is_active()

    def _watch(self) -> None:
        """Ask for a sign of life when nothing was heard; close the link when none comes.

        Kernel keepalive sees only the first hop: behind a jump host or a proxy, only the far sshd's answer proves the
        way.
        """
        asked: threading.Thread | None = None
        woke = time.monotonic()
        while not self._closed.wait(0.5) and self.transport.is_active():
            now = time.monotonic()
            if now - woke > ASLEEP_S:
                # We were stopped ourselves, or starved: what came meanwhile has not been read yet.
                self._heard.at = now
            woke = now
            silent = now - self._heard.at
            if silent >= DEAD_AFTER_S:
                self.broken = f"nothing was heard for {silent:.0f} s"
                self._shut()
            elif silent >= PROBE_AFTER_S and not (asked and asked.is_alive()):
                asked = threading.Thread(target=self._ask, daemon=True)
                asked.start()

    def _ask(self) -> None:
        with contextlib.suppress(paramiko.SSHException, OSError, EOFError):
            self.transport.global_request("keepalive@openssh.com", wait=True)

    def _shut(self) -> None:
        with contextlib.suppress(paramiko.SSHException, OSError, EOFError):
            self.transport.close()

    def close(self) -> None:
        """Close the connection and those beneath it."""
        self._closed.set()
        self._shut()
        if self._beneath:
            self._beneath.close()


class _Heard:
    """A socket (or a jump host's channel) that remembers when it last gave a byte."""

    def __init__(self, sock: Any) -> None:
        self._sock = sock
        self.at = time.monotonic()

    def recv(self, size: int) -> bytes:
        data: bytes = self._sock.recv(size)
        self.at = time.monotonic()
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)


def open_link(target: Target, config: paramiko.SSHConfig, *, accept: Accept | None = None, hops: int = 0) -> Link:
    """Connect to a host, through its jump hosts, and authenticate.

    Parameters
    ----------
    target, config
        See :func:`argus_edge.devices.ssh_config.resolve`.
    accept
        Called with the judged key of the last host; returns whether to go on although it is not trusted. None refuses.
    hops
        Jump hosts gone through already.

    Raises
    ------
    DeviceUnreachableError
        No route, no answer, no SSH, or no common algorithm.
    DeviceUntrustedError
        The host's key is unknown, changed, revoked or wrongly certified; or the host refused our keys.
    UsageError
        The jump hosts form a circle.
    """
    beneath: Link | None = None
    if target.jumps:
        if hops >= MAX_HOPS:
            raise UsageError(
                "The jump hosts form a circle.", where=target.address, next_step="mend ProxyJump in ssh_config"
            )
        *rest, last = target.jumps
        beneath = open_link(resolve(last, config, jumps=tuple(rest) or None), config, hops=hops + 1)
    transport: paramiko.Transport | None = None
    try:
        heard = _Heard(_channel_to(target, beneath) if beneath else _connect(target))
        transport = _handshake(target, heard)
        _check_host_key(target, transport, accept)
        _authenticate(target, transport)
        return Link(target, transport, heard, beneath)
    except BaseException:
        if transport:
            transport.close()
        if beneath:
            beneath.close()
        raise


Accept = Callable[[Target, known_hosts.Verdict, bytes], bool]


def keep_alive(sock: socket.socket) -> None:
    """Let the kernel notice a dead peer within 8 s, idle or in the middle of sending."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # The names differ between systems; what one lacks, the SSH-level question makes up for.
    for name, value in (("TCP_KEEPIDLE", 4), ("TCP_KEEPALIVE", 4), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 2)):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(DEAD_AFTER_S * 1000))


def _connect(target: Target) -> socket.socket:
    where = str(target)
    try:
        sock = socket.create_connection((target.host, target.port), timeout=CONNECT_S)
    except socket.gaierror as error:
        raise DeviceUnreachableError(
            f"The name {clean(target.host, limit=100)} cannot be resolved ({error.strerror}).",
            where=where,
            next_step="check the spelling, or use the address",
        ) from error
    except TimeoutError as error:
        raise DeviceUnreachableError(
            f"No answer within {CONNECT_S:g} s.",
            where=where,
            next_step="is the device switched on and on this network?",
        ) from error
    except OSError as error:
        refused = error.errno == errno.ECONNREFUSED
        raise DeviceUnreachableError(
            "The device refused the connection." if refused else f"Cannot connect: {error.strerror or error}.",
            where=where,
            next_step="is sshd running there? (sudo systemctl enable --now ssh), and is the port right?"
            if refused
            else "is the device switched on and on this network?",
        ) from error
    keep_alive(sock)
    return sock


def _channel_to(target: Target, beneath: Link) -> paramiko.Channel:
    try:
        return beneath.transport.open_channel(
            "direct-tcpip", (target.host, target.port), ("127.0.0.1", 0), timeout=CONNECT_S
        )
    except (paramiko.SSHException, OSError, EOFError) as error:
        raise DeviceUnreachableError(
            f"The jump host {beneath.target} cannot reach it ({clean(str(error), limit=120) or type(error).__name__}).",
            where=str(target),
            next_step="is the device switched on, and does the jump host allow TCP forwarding?",
        ) from error


def _handshake(target: Target, sock: _Heard) -> paramiko.Transport:
    transport = paramiko.Transport(sock, default_window_size=_WINDOW_BYTES)  # type: ignore[arg-type]
    transport.banner_timeout = transport.handshake_timeout = CONNECT_S
    transport.auth_timeout = AUTH_S
    options = transport.get_security_options()
    options.ciphers = _CIPHERS
    listed = known_hosts.lines_for(known_hosts.read(target.known_hosts_files), target.known_as)
    options.key_types = known_hosts.algorithms(listed)
    reason = ""
    try:
        transport.start_client(timeout=CONNECT_S)
        if not transport.initial_kex_done:
            # It returns without a word when the time is up.
            reason = f"no key exchange within {CONNECT_S:g} s"
    except (paramiko.SSHException, OSError, EOFError) as error:
        reason = clean(str(error), limit=200) or type(error).__name__
    if reason:
        transport.close()
        raise DeviceUnreachableError(
            f"What answers there speaks no SSH we can use: {reason}.",
            where=str(target),
            next_step="is this the right port? does `ssh` itself connect?",
        )
    return transport


def _check_host_key(target: Target, transport: paramiko.Transport, accept: Accept | None) -> None:
    key = transport.get_remote_server_key()
    certificate = key.public_blob.key_blob if key.public_blob else None
    plain = key.asbytes()
    listed = known_hosts.lines_for(known_hosts.read(target.known_hosts_files), target.known_as)
    verdict = known_hosts.judge(listed, target.host_key_alias or target.host, plain, certificate)
    if (accept and accept(target, verdict, plain)) or verdict.kind == "trusted":
        return
    shown = known_hosts.fingerprint(plain)
    command = f"argus-edge device trust {shlex.quote(target.address)} {shown}"
    compare = "compare the fingerprint on the device (ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub), then: "
    listed_at = f"; {verdict.line.file}:{verdict.line.number}" if verdict.line else ""
    where = f"{target}{listed_at}"
    if verdict.kind == "changed":
        raise DeviceUntrustedError(
            f"The device's host key has CHANGED. It shows {shown}. "
            "The device was reinstalled, another one has its address, or somebody is in between.",
            where=where,
            next_step=f"if you know why, {compare}{command} --replace",
        )
    if verdict.kind == "revoked":
        raise DeviceUntrustedError(
            f"The device's host key {shown} is revoked.",
            where=where,
            next_step="do not connect; ask whoever revoked it",
        )
    if verdict.kind == "certificate":
        raise DeviceUntrustedError(
            f"The device's host certificate does not hold: {clean(verdict.reason, limit=200)}. Its key is {shown}.",
            where=where,
            next_step=f"have it signed anew, or {compare}{command}",
        )
    raise DeviceUntrustedError(
        f"The device's host key is not known. It shows {shown}.", where=where, next_step=compare + command
    )


def _authenticate(target: Target, transport: paramiko.Transport) -> None:
    tried = 0
    notes: list[str] = []
    allowed: list[str] = []
    with _agent_keys(target, notes) as keys:
        for key in _keys(target, keys, notes):
            tried += 1
            try:
                missing = transport.auth_publickey(target.user, key)
            except paramiko.BadAuthenticationType as error:
                allowed = list(error.allowed_types)
                break
            except (paramiko.SSHException, OSError, EOFError) as error:
                # A refusal is an AuthenticationException, and so is what paramiko makes of silence or of a cut link.
                cut = isinstance(error, EOFError)  # the transport may not have noticed yet that its link is gone
                if transport.is_active() and not cut and "timeout" not in str(error).lower():
                    if not isinstance(error, paramiko.AuthenticationException):
                        notes.append(clean(str(error), limit=120) or type(error).__name__)
                    continue
                if tried < TOO_MANY_KEYS:
                    raise DeviceUnreachableError(
                        f"The link was lost in the login ({clean(str(error), limit=120) or type(error).__name__}).",
                        where=str(target),
                        next_step="check the device's power and network; does `ssh` itself connect?",
                    ) from error
                notes.append("the device closed the connection after too many keys (set IdentitiesOnly in ssh_config)")
                break
            if not missing:
                return
            notes.append(f"it asks for {clean(', '.join(missing), limit=100)} besides a key, which is not supported")
            break
    if transport.is_active() and not allowed and _let_in_without_key(target, transport, allowed):
        return
    if allowed and "publickey" not in allowed:
        notes.append(f"it allows only {clean(', '.join(allowed), limit=100)}")
    port = "" if target.port == paramiko.config.SSH_PORT else f"-p {target.port} "
    shown = {0: "us: there was no key to show", 1: "our key"}.get(tried, f"our {tried} keys")
    raise DeviceUntrustedError(
        f"The device refused {shown}" + (f" ({'; '.join(notes)})." if notes else "."),
        where=str(target),
        next_step=f"ssh-copy-id {port}{shlex.quote(f'{target.user}@{target.host}')}",
    )


def _let_in_without_key(target: Target, transport: paramiko.Transport, allowed: list[str]) -> bool:
    """Ask to be let in without a key (some networks vouch for their users); else learn which methods are allowed."""
    try:
        return not transport.auth_none(target.user)
    except paramiko.BadAuthenticationType as error:
        allowed += error.allowed_types
    except (paramiko.SSHException, OSError, EOFError):
        # The server closed the door: what the keys met is the account to give.
        return False
    return False


class _Agent(paramiko.agent.AgentSSH):
    """The user's SSH agent behind a given socket, every answer of which is waited for with a time-out."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        with contextlib.ExitStack() as undo:
            sock = undo.enter_context(socket.socket(socket.AF_UNIX))
            sock.settimeout(AUTH_S)
            sock.connect(str(path))
            self._connect(sock)  # type: ignore[attr-defined]
            undo.pop_all()

    def close(self) -> None:
        """Give the socket back."""
        self._close()  # type: ignore[attr-defined]


@contextlib.contextmanager
def _agent_keys(target: Target, notes: list[str]) -> Iterator[tuple[paramiko.PKey, ...]]:
    """Keys of the user's SSH agent; one that is not there or does not answer is passed over."""
    if target.agent is None:
        yield ()
        return
    try:
        agent = _Agent(target.agent)
    except (paramiko.SSHException, OSError, EOFError, struct.error) as error:
        notes.append(f"the SSH agent does not answer ({clean(str(error), limit=80) or type(error).__name__})")
        yield ()
        return
    try:
        yield agent.get_keys()
    finally:
        agent.close()


def _keys(target: Target, agent_keys: tuple[paramiko.PKey, ...], notes: list[str]) -> Iterator[paramiko.PKey]:
    """Keys to show, in ssh's order: the agent's that are configured, the other ones of the agent, then files."""
    wanted = [blob for path in target.identity_files if (blob := _public_blob(path))]
    held = [key.asbytes() for key in agent_keys]
    yield from (key for key in agent_keys if key.asbytes() in wanted)
    if not target.identities_only:
        yield from (key for key in agent_keys if key.asbytes() not in wanted)
    for path in target.identity_files:
        if path.suffix == ".pub" or _public_blob(path) in held:
            continue
        try:
            yield paramiko.PKey.from_path(path)
        except FileNotFoundError:
            if target.identities_configured:
                notes.append(f"{path} does not exist")
        except paramiko.PasswordRequiredException:
            notes.append(f"{path} has a passphrase: ssh-add {shlex.quote(str(path))}")
        except (paramiko.SSHException, paramiko.pkey.UnknownKeyType, OSError, ValueError, TypeError) as error:
            # cryptography says "Key is password-protected" as TypeError or ValueError, by its version.
            locked = "password" in str(error).lower()
            notes.append(
                f"{path} has a passphrase: ssh-add {shlex.quote(str(path))}"
                if locked
                else f"{path} cannot be read as a key ({clean(str(error), limit=80)})"
            )


def _public_blob(path: Path) -> bytes | None:
    """Return the public key that belongs to an identity file, from the .pub beside it."""
    public = path if path.suffix == ".pub" else path.with_name(path.name + ".pub")
    try:
        fields = public.read_text("ascii").split()
        return paramiko.pkey.PublicBlob.from_string(" ".join(fields[:2])).key_blob
    except (OSError, ValueError):
        return None


def lost(error: BaseException, link: Link) -> ArgusError:
    """Return the error for a link that failed in the middle of something."""
    reason = link.broken or clean(str(error), limit=120) or type(error).__name__
    return DeviceUnreachableError(
        f"The link to the device was lost ({reason}).",
        where=str(link.target),
        next_step="check its power and network; what runs on the device goes on without us",
    )
