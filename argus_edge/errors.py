"""The exception tree: every error says what happened, where, and the next step; each class has its exit code."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from argus_edge.text import printable

__all__ = [
    "ArgusError",
    "BoardFailedError",
    "DeviceBusyError",
    "DeviceError",
    "DeviceUnreachableError",
    "DeviceUntrustedError",
    "GateFailedError",
    "GateUndecidedError",
    "HostError",
    "InputError",
    "InterruptedRunError",
    "MisfitError",
    "MissingDependencyError",
    "ParityError",
    "RunFailedError",
    "UsageError",
    "located",
    "needing",
    "shipped_folder",
]


# A page or a folder of starters, as the next steps name it.
_SHIPPED = re.compile(r"(?<![\w./~-])(?:docs/[\w-]+\.md|profiles/(?:budgets|weights)/)")


def shipped_folder() -> Path:
    """Return the folder that holds ``docs/`` and ``profiles/``: the package's, or the checkout's."""
    package = Path(__file__).resolve().parent
    return package if (package / "docs").is_dir() else package.parent


def located(text: str) -> str:
    """Write a text's pages and starters with their folder, unless they are found from the current one."""
    folder = shipped_folder()

    def full(match: re.Match[str]) -> str:
        path = str(folder / match[0])
        # os.path: a folder that may not be looked into has nothing to find.
        return path if os.path.exists(path) and not os.path.exists(match[0]) else match[0]

    return _SHIPPED.sub(full, text)


class ArgusError(Exception):
    """Base of all errors that a user is meant to read.

    Parameters
    ----------
    what
        What happened, one sentence.
    where
        The file (and line), device, run or option concerned.
    next_step
        What to do now; a command where there is one.
    """

    exit_code: ClassVar[int] = 5

    def __init__(self, what: str, *, where: str | None = None, next_step: str | None = None) -> None:
        # A part of each may be a stranger's: a file's name, a column's, a board's last words.
        self.what = printable(what)
        self.where = printable(where) if where is not None else None
        self.next_step = located(printable(next_step)) if next_step is not None else None
        super().__init__(self.what)

    def __str__(self) -> str:
        lines = [self.what]
        if self.where:
            lines.append(f"  where: {self.where}")
        if self.next_step:
            lines.append(f"  next:  {self.next_step}")
        return "\n".join(lines)


class GateFailedError(ArgusError):
    """A budget was not met, or a run was not valid under ``--strict``."""

    exit_code = 1


class UsageError(ArgusError):
    """The command was called wrongly."""

    exit_code = 2


class InputError(ArgusError):
    """An input (model, report, dataset, budget) cannot be read or does not hold together."""

    exit_code = 2


class MissingDependencyError(UsageError):
    """An optional package is needed; the next step names the extra that brings it."""

    def __init__(self, package: str, extra: str, *, needed_for: str) -> None:
        super().__init__(
            f"{needed_for} needs the package {package}, which is not installed.",
            next_step=f'pip install "argus-edge[{extra}]"',
        )


@contextmanager
def needing(extra: str, needed_for: str) -> Iterator[None]:
    """Around imports: a package that is not installed becomes a :class:`MissingDependencyError`."""
    try:
        yield
    except ModuleNotFoundError as error:
        if str(error.name).startswith("argus_edge"):  # a fault of ours
            raise
        raise MissingDependencyError(str(error.name), extra, needed_for=needed_for) from error


class DeviceError(ArgusError):
    """A device is not reachable, not trusted or busy."""

    exit_code = 3


class DeviceUnreachableError(DeviceError):
    """The device did not answer, or the link to it was lost."""


class DeviceUntrustedError(DeviceError):
    """The device's host key is unknown or changed, or it refused our key."""


class DeviceBusyError(DeviceError):
    """Another run holds the device; ``run`` is its id, where it is told."""

    def __init__(
        self, what: str, *, where: str | None = None, next_step: str | None = None, run: str | None = None
    ) -> None:
        super().__init__(what, where=where, next_step=next_step)
        self.run = run


class MisfitError(ArgusError):
    """Model and device do not fit: opset, operators, memory, disk, runtime."""

    exit_code = 4


class RunFailedError(ArgusError):
    """The run failed on the device."""

    exit_code = 5


class BoardFailedError(RunFailedError):
    """The board itself failed under the run: it was rebooted, or something killed what supervises the run."""


class ParityError(ArgusError):
    """An exported model does not compute what the original computes."""

    exit_code = 6


class HostError(ArgusError):
    """No room or no permission on the host."""

    exit_code = 7


class GateUndecidedError(ArgusError):
    """The gate cannot decide yet: measure longer."""

    exit_code = 8


class InterruptedRunError(ArgusError):
    """The user interrupted the command."""

    exit_code = 130
