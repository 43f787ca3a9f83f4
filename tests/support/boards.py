"""Several boards on this machine: an SSH server each, with a home folder of its own, and a user who knows them all."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import yaml

from tests.support.sshd import Sshd, make_key, serve

# A loaded machine is slow; what hangs is ended.
PATIENCE_S = 280
PROGRAM = "from argus_edge.__main__ import main; main()"


@dataclass
class Boards:
    """Running boards, and the home of the user who benches on them."""

    home: Path
    servers: dict[str, Sshd]
    extra: dict[str, str] = field(default_factory=dict)
    started: list[subprocess.Popen] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "ARGUS_EDGE_"))}
        kept.pop("SSH_AUTH_SOCK", None)
        return {**kept, "HOME": str(self.home), "PYTHONUNBUFFERED": "1", **self.extra}

    @property
    def inventory(self) -> Path:
        return self.home / ".config" / "argus-edge" / "devices.yaml"

    def start(self, *argv: str, **options) -> subprocess.Popen:
        """Start argus-edge in a session of its own, as the user."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *argv],
            cwd=self.home,
            env=self.environment,
            text=True,
            start_new_session=True,
            **pipes,
        )
        self.started.append(process)
        return process

    def end_all(self) -> None:
        """End what was started here and has not ended, on the user's side and on the boards."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.communicate()
        marks = [str(server.home) for server in self.servers.values()]
        for process in psutil.process_iter(["cmdline"]):
            if any(mark in word for word in process.info["cmdline"] or [] for mark in marks):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()

    def run(self, *argv: str, code: int | None = 0) -> subprocess.CompletedProcess:
        """Run argus-edge to its end, as the user."""
        process = self.start(*argv)
        try:
            out, err = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        assert code is None or process.returncode == code, (process.returncode, out, err)
        return subprocess.CompletedProcess(argv, process.returncode, out, err)

    def agent_home(self, name: str) -> Path:
        return self.servers[name].home / ".cache" / "argus-edge"

    def runs_on(self, name: str) -> list[str]:
        """What runs have left on a board."""
        folder = self.agent_home(name) / "runs"
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


@contextlib.contextmanager
def boards(folder: Path, names: Sequence[str], *, python: str = sys.executable):
    """Run boards for the length of a context; all take one user's key, and are in the user's inventory, tag ``lab``."""
    home = folder / "user"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh").chmod(0o700)
    key = make_key(home / ".ssh" / "id_ed25519")
    with contextlib.ExitStack() as stack:
        servers = {name: stack.enter_context(serve(folder / name, user_key=key)) for name in names}
        known = "".join(server.host_key_line + "\n" for server in servers.values())
        (home / ".ssh" / "known_hosts").write_text(known)
        entries = {
            name: {"host": server.address, "python": python, "tags": ["lab"]} for name, server in servers.items()
        }
        running = Boards(home, servers)
        running.inventory.parent.mkdir(parents=True)
        running.inventory.write_text(yaml.safe_dump({"devices": entries}))
        try:
            yield running
        finally:
            running.end_all()
