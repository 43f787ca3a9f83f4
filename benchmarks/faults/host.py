"""The user's side: `argus-edge` in processes of its own, with a home of its own, its messages and when they came.

Run as a script it is the command itself, which tries a lost link again sooner than as shipped, so that two hundred
faults fit into an hour; what decides whether a link is lost is as shipped.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

RETRY_S = (0.5, 1.0, 2.0)
WAIT_S = 150.0


@dataclass
class Said:
    """One line of stderr."""

    at: float
    text: str


@dataclass
class Command:
    """A running `argus-edge`."""

    process: subprocess.Popen[str]
    said: list[Said] = field(default_factory=list)
    out: str = ""
    ended_at: float = 0.0

    def __post_init__(self) -> None:
        self._news = threading.Condition()
        self._readers = [
            threading.Thread(target=self._read_messages, daemon=True),
            threading.Thread(target=self._read_output, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read_messages(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            with self._news:
                self.said.append(Said(time.monotonic(), line.rstrip("\n")))
                self._news.notify_all()
        with self._news:
            self.ended_at = time.monotonic()
            self._news.notify_all()

    def _read_output(self) -> None:
        assert self.process.stdout
        self.out = self.process.stdout.read()

    def heard(self, pattern: str, seconds: float = WAIT_S) -> re.Match[str] | None:
        """Wait for a message; None where the command ended without it."""
        deadline = time.monotonic() + seconds
        with self._news:
            while True:
                for said in self.said:
                    if found := re.search(pattern, said.text):
                        return found
                if self.ended_at or time.monotonic() > deadline:
                    return None
                self._news.wait(0.5)

    @property
    def running(self) -> bool:
        """Whether it still runs."""
        return self.process.poll() is None

    def end(self, seconds: float = WAIT_S) -> int | None:
        """Wait for its end and return the exit code; None where it had to be killed."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            code = None
        for reader in self._readers:
            reader.join(10)
        return code

    def signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self.running:
            self.process.send_signal(number)

    @property
    def messages(self) -> str:
        """All that it said."""
        return "\n".join(said.text for said in self.said)


class Host:
    """A user with a home.

    Parameters
    ----------
    folder
        The home; the reports go to ``folder/work``.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir(parents=True)
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("ARGUS_EDGE", "XDG_"))},
            "HOME": str(folder),
            "PYTHONUNBUFFERED": "1",
        }

    def knows(self, board, port: int) -> None:
        """Write the ssh_config and the inventory for a board that is reached by a port."""
        ssh = self.folder / ".ssh"
        ssh.mkdir(exist_ok=True)
        (ssh / "config").write_text(board.server.config(name=f"config-{self.folder.name}", port=port).read_text())
        settings = self.folder / ".config" / "argus-edge"
        settings.mkdir(parents=True, exist_ok=True)
        (settings / "devices.yaml").write_text(
            f"devices:\n  board:\n    host: board\n    python: {board.python}\n    home: {board.home}\n"
        )

    def start(self, *argv: str, **environment: str) -> Command:
        """Start a command."""
        return Command(
            subprocess.Popen(
                [sys.executable, __file__, *argv],
                cwd=self.work,
                env={**self.environment, **environment},
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        )

    def run(self, *argv: str) -> tuple[int | None, Command]:
        """Run a command to its end."""
        command = self.start(*argv)
        return command.end(), command


def main() -> None:
    """Be `argus-edge`."""
    # A shell's background job, or nohup, would have us ignore them.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from argus_edge.bench import watching
    from argus_edge.cli.main import main as argus_edge

    watching.RETRY_S = RETRY_S
    sys.argv[0] = "argus-edge"
    argus_edge()


if __name__ == "__main__":
    main()
