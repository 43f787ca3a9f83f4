"""An SSH server on a loopback port, with its own keys and folders: OpenSSH's sshd where there is one, else asyncssh."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

SSHD = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
KEYGEN = shutil.which("ssh-keygen")


@dataclass
class Sshd:
    """A running server, and what a client needs to reach it."""

    folder: Path
    port: int
    user: str
    home: Path
    host_key: Path
    user_key: Path
    stop: object = field(repr=False, default=None)

    @property
    def address(self) -> str:
        return f"{self.user}@127.0.0.1:{self.port}"

    @property
    def host_key_line(self) -> str:
        """The server's key as a known_hosts line."""
        return f"[127.0.0.1]:{self.port} " + " ".join(public_key(self.host_key).split()[:2])

    def config(
        self, *, name: str = "config", known_hosts: str | None = None, extra: str = "", port: int | None = None
    ) -> Path:
        """Write an ssh_config that reaches this server as ``board`` and by its address, trusting its key."""
        known = self.folder / f"{name}.known_hosts"
        line = self.host_key_line if port is None else self.host_key_line.replace(str(self.port), str(port), 1)
        known.write_text(line + "\n" if known_hosts is None else known_hosts)
        path = self.folder / name
        path.write_text(
            f"{extra}\n"
            f"Host board\n  HostName 127.0.0.1\n  Port {port or self.port}\n  User {self.user}\n"
            f"Host *\n  IdentityFile {self.user_key}\n  IdentitiesOnly yes\n  IdentityAgent none\n"
            f"  UserKnownHostsFile {known}\n  GlobalKnownHostsFile none\n"
        )
        return path


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def make_key(path: Path, *, kind: str = "ed25519", passphrase: str = "") -> Path:
    """Make a key pair with ssh-keygen; where there is none, in the same format with the library that paramiko uses."""
    if KEYGEN:
        size = ["-b", "2048"] if kind == "rsa" else []
        command = [KEYGEN, "-q", "-t", kind, *size, "-N", passphrase, "-C", "test", "-f", str(path)]
        subprocess.run(command, check=True)
        return path
    key = {
        "ed25519": ed25519.Ed25519PrivateKey.generate,
        "rsa": lambda: rsa.generate_private_key(65537, 2048),
        "ecdsa": lambda: ec.generate_private_key(ec.SECP256R1()),
    }[kind]()
    locked = BestAvailableEncryption(passphrase.encode()) if passphrase else NoEncryption()
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, locked))
    path.chmod(0o600)
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    path.with_name(path.name + ".pub").write_bytes(public + b" test\n")
    return path


def public_key(path: Path) -> str:
    return path.with_name(path.name + ".pub").read_text().strip()


@contextlib.contextmanager
def serve(
    folder: Path,
    *,
    force_command: str | None = None,
    host_certificate: Path | None = None,
    host_key: Path | None = None,
    more_host_keys: tuple[Path, ...] = (),
    options: str = "",
    user_key: Path | None = None,
    port: int | None = None,
    in_process: bool = False,
    within: tuple[str, ...] = (),
):
    """Run a server for the length of a context.

    ``force_command`` runs instead of what the client asks, which it finds in $SSH_ORIGINAL_COMMAND: a login shell that
    is not POSIX, or one that talks. ``options`` are lines of sshd_config for OpenSSH's alone. ``in_process`` takes
    asyncssh even where there is an sshd. ``within`` are the words before the server's command: name spaces of its own.
    """
    folder.mkdir(parents=True, exist_ok=True)
    home = folder / "home"
    home.mkdir(exist_ok=True)
    host_key = host_key or make_key(folder / "host_key")
    user_key = user_key or make_key(folder / "user_key")
    server = Sshd(folder, port or free_port(), getpass.getuser(), home, host_key, user_key)
    run = _serve_asyncssh if in_process or not SSHD else _serve_openssh
    with run(server, force_command, host_certificate, more_host_keys, options, within):
        yield server


@contextlib.contextmanager
def _serve_openssh(
    server: Sshd,
    force_command: str | None,
    host_certificate: Path | None,
    more_host_keys: tuple[Path, ...],
    options: str,
    within: tuple[str, ...],
):
    if os.geteuid() == 0:
        # Where sshd drops its privileges; the Debian package makes it only when the service starts.
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    config = server.folder / "sshd_config"
    config.write_text(
        f"ListenAddress 127.0.0.1\nPort {server.port}\nHostKey {server.host_key}\n"
        "PidFile none\nUsePAM no\nStrictModes no\n"
        f"AuthorizedKeysFile {server.user_key}.pub\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
        f"SetEnv HOME={server.home}\nUseDNS no\nPrintMotd no\nMaxStartups 200\nMaxSessions 200\n"
        # A shell of our own, so that the tests do not depend on the account's.
        f"ForceCommand {force_command or 'exec /bin/sh -c ' + chr(34) + '$SSH_ORIGINAL_COMMAND' + chr(34)}\n"
        + (f"HostCertificate {host_certificate}\n" if host_certificate else "")
        + "".join(f"HostKey {key}\n" for key in more_host_keys)
        + options
    )
    with open(server.folder / "sshd.log", "w") as log:
        command = [*within, str(SSHD), "-D", "-e", "-f", str(config)]
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        _wait_for(server.port, lambda: process.poll() is None, server.folder / "sshd.log")
        yield
    finally:
        process.terminate()
        process.wait(10)


def _wait_for(port: int, alive, log: Path) -> None:
    for _ in range(2000):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
            return
        if not alive():
            break
        threading.Event().wait(0.01)
    pytest.fail(f"the SSH server did not come up: {log.read_text() if log.exists() else ''}")


@contextlib.contextmanager
def _serve_asyncssh(
    server: Sshd,
    force_command: str | None,
    host_certificate: Path | None,
    more_host_keys: tuple[Path, ...],
    options: str,
    within: tuple[str, ...],
):
    asyncssh = pytest.importorskip("asyncssh", reason="neither sshd nor asyncssh is installed")
    loop = asyncio.new_event_loop()

    async def pump(source, target) -> None:
        with contextlib.suppress(OSError, asyncssh.Error):
            while data := await source.read(1 << 16):
                target.write(data)
                await target.drain()

    async def feed(source, target) -> None:
        await pump(source, target)
        target.close()

    async def handle(process) -> None:
        environment = {**os.environ, "HOME": str(server.home), "SSH_ORIGINAL_COMMAND": process.command or ""}
        command = ["/bin/sh", "-c", force_command or process.command or ""]
        pipe = asyncio.subprocess.PIPE
        child = await asyncio.create_subprocess_exec(
            *command, env=environment, cwd=server.home, stdin=pipe, stdout=pipe, stderr=pipe
        )
        tasks = [
            asyncio.create_task(pump(*ends))
            for ends in ((child.stdout, process.stdout), (child.stderr, process.stderr))
        ]
        feeding = asyncio.create_task(feed(process.stdin, child.stdin))
        try:
            # As sshd does, the answer does not wait for a grandchild that holds the pipes (Process.wait() may).
            while child.returncode is None:
                await asyncio.sleep(0.01)
            await asyncio.wait(tasks, timeout=1)
            process.exit(child.returncode)
        finally:
            for task in [*tasks, feeding]:
                task.cancel()
            child._transport.close()

    class Server(asyncssh.SSHServer):
        def connection_requested(self, *_):
            return True

    async def start():
        return await asyncssh.create_server(
            Server,
            "127.0.0.1",
            server.port,
            server_host_keys=[str(key) for key in (server.host_key, *more_host_keys)],
            encoding=None,
            server_host_certs=[str(host_certificate)] if host_certificate else (),
            authorized_client_keys=f"{server.user_key}.pub",
            process_factory=handle,
        )

    async def stop():
        listener.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0.05)  # the pipes of the children close in the loop's next rounds

    listener = loop.run_until_complete(start())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
