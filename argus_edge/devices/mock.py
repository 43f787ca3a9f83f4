"""A scripted device for tests: answers commands from a script, keeps files in memory, records what it was asked."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from argus_edge.agents import wire
from argus_edge.artifacts import atomic_open
from argus_edge.devices.transport import Completed, Progress
from argus_edge.errors import DeviceUnreachableError, RunFailedError

Answer = Completed | BaseException | Callable[[list[str]], "Completed"]


@dataclass
class MockTransport:
    r"""A device that does what a test says.

    Rules are tried in the order in which they were added; a command that no rule covers is a mistake of the test.

    Examples
    --------
    >>> device = MockTransport()
    >>> device.on("uname", Completed(0, "aarch64\n", ""))
    >>> device.run(["uname", "-m"], timeout=1).stdout
    'aarch64\n'
    >>> device.commands
    [['uname', '-m']]
    """

    description: str = "mock device"
    files: dict[str, bytes] = field(default_factory=dict)
    free_bytes: int = 1 << 40
    commands: list[list[str]] = field(default_factory=list)
    closed: bool = False
    unreachable: str = ""
    _rules: list[tuple[str, Answer | Iterable[str]]] = field(default_factory=list)

    def on(self, word: str, answer: Answer | Iterable[str]) -> None:
        """Answer commands that hold this word: lines for :meth:`lines`, else a result, a function or an error."""
        self._rules.append((word, answer))

    def on_agent(self, command: str, document: dict[str, Any], *, status: int = 0, noise: str = "") -> None:
        """Answer an agent's command with a framed document, after some chatter."""
        self.on(command, Completed(status, noise + wire.frame(document), ""))

    def run(
        self, argv: Sequence[str], *, timeout: float, stdin: bytes | None = None, limit: int = 1 << 20
    ) -> Completed:
        """Answer from the script."""
        answer = self._answer(argv)
        if isinstance(answer, BaseException):
            raise answer
        if callable(answer):
            answer = answer(list(argv))
        if not isinstance(answer, Completed):
            raise AssertionError(f"{argv} is scripted as lines")  # noqa: TRY004
        return Completed(answer.status, answer.stdout[:limit], answer.stderr[:limit])

    @contextlib.contextmanager
    def lines(self, argv: Sequence[str], *, silence: float, first: float | None = None) -> Iterator[Iterator[str]]:
        """Give the scripted lines."""
        answer = self._answer(argv)
        if isinstance(answer, BaseException):
            raise answer
        yield iter(answer.stdout.splitlines() if isinstance(answer, Completed) else answer)  # type: ignore[arg-type]

    def _answer(self, argv: Sequence[str]) -> Answer | Iterable[str]:
        self._reach()
        self.commands.append(list(argv))
        for word, answer in self._rules:
            if word in argv:
                return answer
        if argv[0] == "/bin/sh":
            return self._script(list(argv))
        raise AssertionError(f"the test's script has no answer for {list(argv)}")

    def _script(self, argv: list[str]) -> Completed:
        """Answer the few scripts that deployment runs."""
        text, mark, path = argv[2], argv[4], argv[5]
        if "df -Pk" in text:
            return Completed(0, f"{mark} free {self.free_bytes // 1024}\n", "")
        return Completed(0, f"{mark} size {len(self.files.get(path, b''))}\n", "")

    def put(self, local: Path, remote: str, *, sha256: str, progress: Progress | None = None) -> int:
        """Keep a file's bytes."""
        self._reach()
        data = local.read_bytes()
        if hashlib.sha256(data).hexdigest() != sha256:
            raise RunFailedError("The file that arrived on the device has a wrong hash.", where=remote)
        if self.files.get(remote) == data:
            return 0
        self.files[remote] = data
        if progress:
            progress(len(data), len(data))
        return len(data)

    def get(self, remote: str, local: Path, *, limit: int, progress: Progress | None = None) -> None:
        """Write a kept file's bytes."""
        self._reach()
        if remote not in self.files:
            raise RunFailedError("There is no such file on the device.", where=remote)
        data = self.files[remote]
        if len(data) > limit:
            raise RunFailedError(f"The file has {len(data)} bytes, more than the {limit} allowed.", where=remote)
        with atomic_open(local, private=True) as file:
            file.write(data)

    def close(self) -> None:
        """Remember that it was given back."""
        self.closed = True

    def _reach(self) -> None:
        if self.unreachable:
            raise DeviceUnreachableError(self.unreachable, where=self.description)
