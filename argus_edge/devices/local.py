"""The host itself as a device: the same seam as a board behind SSH, without a link."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from argus_edge.artifacts import atomic_open, sha256_file
from argus_edge.devices.streams import Capture, LineSplitter, silent
from argus_edge.devices.transport import Completed, Progress
from argus_edge.errors import DeviceUnreachableError, HostError, InputError, RunFailedError

_CHUNK = 1 << 16
_PIPES_S = 3.0


class LocalTransport:
    """Commands and files on this machine; see :class:`~argus_edge.devices.transport.Transport`."""

    description = "this machine"

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False
        self._lock = threading.Lock()

    def run(
        self, argv: Sequence[str], *, timeout: float, stdin: bytes | None = None, limit: int = 1 << 20
    ) -> Completed:
        """Run a command to its end; see the seam."""
        try:
            process = self._start(argv, stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL)
        except OSError as error:
            return _not_started(argv, error)
        outputs = (Capture(limit), Capture(limit))
        threads = [
            threading.Thread(target=_drain, args=(pipe, capture), daemon=True)
            for pipe, capture in zip((process.stdout, process.stderr), outputs, strict=True)
        ]
        if stdin is not None:
            threads.append(threading.Thread(target=_feed, args=(process.stdin, stdin), daemon=True))
        for thread in threads:
            thread.start()
        try:
            status = process.wait(timeout)
            # A child that was left in the background may hold the pipes open: what has come by then is the answer.
            patience = time.monotonic() + _PIPES_S
            for thread in threads:
                thread.join(max(0.0, patience - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise DeviceUnreachableError(
                f"A command did not end within {timeout:g} s.", where=f"{self.description}: {argv[0]}"
            ) from None
        finally:
            self._end(process)
        return Completed(status, outputs[0].text(), outputs[1].text())

    @contextlib.contextmanager
    def lines(self, argv: Sequence[str], *, silence: float, first: float | None = None) -> Iterator[Iterator[str]]:
        """Run a command and iterate over its output lines; see the seam."""
        try:
            process = self._start(argv, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except OSError:
            yield iter(())
            return
        chunks: queue.Queue[bytes] = queue.Queue(64)
        ended = threading.Event()
        threading.Thread(target=_pump, args=(process.stdout, chunks, ended), daemon=True).start()
        try:
            yield self._split(chunks, silence, first or silence)
        finally:
            ended.set()
            self._end(process)

    def _split(self, chunks: queue.Queue[bytes], silence: float, first: float) -> Iterator[str]:
        splitter = LineSplitter()
        allowed = first
        deadline = time.monotonic() + allowed
        while True:
            # Where we were stopped ourselves the time is up, and yet there may be lines: they are read first.
            late = time.monotonic() >= deadline
            try:
                chunk = chunks.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                raise silent(allowed, self.description) from None
            if not chunk:
                yield from splitter.end()
                return
            for line in splitter.feed(chunk):
                yield line
                late = False
                allowed = silence
                deadline = time.monotonic() + allowed
            if late:
                raise silent(allowed, self.description)

    def put(self, local: Path, remote: str, *, sha256: str, progress: Progress | None = None) -> int:
        """Copy a file unless it is there with that hash; see the seam."""
        target = Path(remote).expanduser()
        if target.is_file() and sha256_file(target) == sha256:
            return 0
        try:
            size = local.stat().st_size
            with open(local, "rb") as source, atomic_open(target, private=True) as copy:
                done = 0
                while chunk := source.read(1 << 20):
                    copy.write(chunk)
                    done += len(chunk)
                    if progress:
                        progress(done, size)
        except OSError as error:
            raise InputError(f"Cannot read the file: {error.strerror}.", where=str(local)) from error
        if sha256_file(target) != sha256:
            target.unlink()
            raise RunFailedError(
                "The copy has a wrong hash.", where=str(target), next_step="has the file changed? try again"
            )
        return size

    def get(self, remote: str, local: Path, *, limit: int, progress: Progress | None = None) -> None:
        """Copy a file of at most ``limit`` bytes here; see the seam."""
        source = Path(remote).expanduser()
        try:
            size = source.stat().st_size
            if size > limit:
                raise RunFailedError(f"The file has {size} bytes, more than {limit}.", where=str(source))
            with open(source, "rb") as file, atomic_open(local, private=True) as copy:
                shutil.copyfileobj(file, copy)
        except HostError:
            raise
        except OSError as error:
            raise RunFailedError(f"Cannot fetch the file: {error.strerror}.", where=str(source)) from error
        if progress:
            progress(size, size)

    def close(self) -> None:
        """End the commands that still run."""
        with self._lock:
            self._closed = True
            for process in self._running:
                _signal(process, signal.SIGTERM)

    def _start(self, argv: Sequence[str], *, stdin: int, stderr: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
        expanded = [os.path.expanduser(argument) if argument.startswith("~/") else argument for argument in argv]
        with self._lock:
            if self._closed:
                raise DeviceUnreachableError("The link was closed.", where=self.description)
            # A session of its own: Ctrl-C in the terminal is for the host's command, which then stops the device's.
            process = subprocess.Popen(
                expanded, stdin=stdin, stdout=subprocess.PIPE, stderr=stderr, start_new_session=True
            )
            self._running.add(process)
        return process

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        _end(process)
        with self._lock:
            self._running.discard(process)


def _not_started(argv: Sequence[str], error: OSError) -> Completed:
    # The statuses with which a shell tells the same.
    return Completed(127 if isinstance(error, FileNotFoundError) else 126, "", f"{argv[0]}: {error.strerror}")


def _drain(pipe: IO[bytes] | None, capture: Capture) -> None:
    with contextlib.suppress(OSError, ValueError):
        while pipe and (chunk := os.read(pipe.fileno(), _CHUNK)):
            capture.add(chunk)


def _feed(pipe: IO[bytes] | None, data: bytes) -> None:
    with contextlib.suppress(OSError, ValueError):
        if pipe:
            pipe.write(data)
            pipe.close()


def _pump(pipe: IO[bytes] | None, chunks: queue.Queue[bytes], ended: threading.Event) -> None:
    chunk = b"-"
    while pipe and chunk and not ended.is_set():
        try:
            chunk = os.read(pipe.fileno(), _CHUNK)
        except (OSError, ValueError):
            chunk = b""
        while not ended.is_set():
            with contextlib.suppress(queue.Full):
                chunks.put(chunk, timeout=0.2)
                break


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the command (not what it has detached into a session of its own) and give its pipes back."""
    if process.poll() is None:
        for signum, patience in ((signal.SIGTERM, 2.0), (signal.SIGKILL, 2.0)):
            _signal(process, signum)
            deadline = time.monotonic() + patience
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
                break
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe:
            with contextlib.suppress(OSError):
                pipe.close()


def _signal(process: subprocess.Popen[bytes], signum: signal.Signals) -> None:
    """Signal a command and what it has started in its own session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signum)
