"""A board behind SSH: commands and files over one connection, reopened when it was lost; see `transport`."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

import paramiko

from argus_edge.artifacts import atomic_open
from argus_edge.devices import remote_files as files
from argus_edge.devices.shell import command_line
from argus_edge.devices.ssh_config import load_config, resolve
from argus_edge.devices.ssh_link import CONNECT_S, Accept, Link, lost, open_link
from argus_edge.devices.streams import Capture, LineSplitter, silent
from argus_edge.devices.transport import Completed, Progress
from argus_edge.errors import DeviceUnreachableError, InputError, RunFailedError
from argus_edge.text import clean

# As much as the window lets come: paramiko moves what is left in its buffer at each read.
_RECV_BYTES = 1 << 22
# Output beyond what is kept is passed over, but not for ever.
_FLOOD_BYTES = 1 << 27
_LOST = (paramiko.SSHException, OSError, EOFError)
# The board hashes at this rate at least (an old SD card); a transfer's last step may take so long.
_SLOWEST_HASH_BYTES_S = 4e6


class SshTransport:
    """Commands and files on a host behind SSH.

    Parameters
    ----------
    address
        ``[user@]host[:port]`` or an alias of the ssh_config.
    config
        The ssh_config; None: the user's.
    accept
        Judge of a host key that known_hosts does not vouch for; None refuses.
    """

    def __init__(self, address: str, *, config: Path | None = None, accept: Accept | None = None) -> None:
        self._config = load_config(config)
        self.target = resolve(address, self._config)
        self.description = str(self.target)
        self._accept = accept
        self._link: Link | None = None
        self._home: str | None = None
        self._lock = threading.RLock()
        self._closed = False

    def connect(self) -> Link:
        """Return the connection, opened if there is none or the last was lost."""
        with self._lock:
            if self._closed:
                raise DeviceUnreachableError("The link was closed.", where=self.description)
            if self._link is None or not self._link.alive:
                if self._link:
                    self._link.close()
                self._link = open_link(self.target, self._config, accept=self._accept)
            return self._link

    def close(self) -> None:
        """Give the connection back."""
        with self._lock:
            self._closed = True
            if self._link:
                self._link.close()
                self._link = None

    # ------------------------------------------------------------ commands

    def run(
        self, argv: Sequence[str], *, timeout: float, stdin: bytes | None = None, limit: int = 1 << 20
    ) -> Completed:
        """Run a command to its end; see the seam."""
        link = self.connect()
        out, err = Capture(limit), Capture(limit)
        deadline = time.monotonic() + timeout
        with self._channel(link, argv, deadline) as channel, _link_errors(link):
            reader = _in_background(_drain_stderr, channel, err)
            if stdin is not None:
                _in_background(_feed, channel, stdin)
            else:
                channel.shutdown_write()
            status = self._read(link, channel, out, deadline, argv[0])
            reader.join(1.0)
        return Completed(status, out.text(), err.text())

    def _read(self, link: Link, channel: paramiko.Channel, out: Capture, deadline: float, name: str) -> int:
        """Read a command's output to its end and return its exit status."""
        quiet = 0
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise DeviceUnreachableError(
                    "A command did not end in time.",
                    where=f"{self.description}: {clean(name, limit=60)}",
                    next_step="is the device overloaded? (`uptime` there)",
                )
            channel.settimeout(min(left, 1.0))
            try:
                chunk = channel.recv(_RECV_BYTES)
            except TimeoutError:
                # A child that was left in the background may hold the channel open after the command has ended. Once
                # is not enough: where we were stopped ourselves, the time was up although more is about to come.
                quiet += channel.exit_status_ready()
                if quiet > 1:
                    return channel.recv_exit_status()
                continue
            quiet = 0
            out.add(chunk)
            if out.total > out.limit + _FLOOD_BYTES:
                raise RunFailedError(
                    f"A command writes without end: {out.total / 1e6:.0f} MB so far.",
                    where=f"{self.description}: {clean(name, limit=60)}",
                )
            if not chunk:
                if not channel.status_event.wait(max(0.1, min(left, CONNECT_S))) or not link.alive:
                    raise lost(EOFError("the channel was closed"), link)
                return channel.recv_exit_status()

    @contextlib.contextmanager
    def lines(self, argv: Sequence[str], *, silence: float, first: float | None = None) -> Iterator[Iterator[str]]:
        """Run a command and iterate over its output lines; see the seam."""
        link = self.connect()
        with self._channel(link, argv, time.monotonic() + CONNECT_S) as channel:
            with _link_errors(link):
                channel.shutdown_write()
            _in_background(_drain_stderr, channel, Capture(0))
            yield self._lines(link, channel, silence, first or silence)

    def _lines(self, link: Link, channel: paramiko.Channel, silence: float, first: float) -> Iterator[str]:
        splitter = LineSplitter()
        # A line counts, not a byte: one without an end is no sign of life.
        allowed = first
        deadline = time.monotonic() + allowed
        while True:
            # Where we were stopped ourselves the time is up, and yet there may be lines: they are read first.
            late = time.monotonic() >= deadline
            with _link_errors(link):
                channel.settimeout(max(0.01, deadline - time.monotonic()))
                try:
                    chunk = channel.recv(_RECV_BYTES)
                except TimeoutError:
                    raise silent(allowed, self.description) from None
            if not chunk:
                if not link.alive:
                    raise lost(EOFError("the connection was closed"), link)
                yield from splitter.end()
                return
            for line in splitter.feed(chunk):
                yield line
                late = False
                allowed = silence
                deadline = time.monotonic() + allowed
            if late:
                raise silent(allowed, self.description)

    @contextlib.contextmanager
    def _channel(self, link: Link, argv: Sequence[str], deadline: float) -> Iterator[paramiko.Channel]:
        """Start a command and give its channel, closed at the end."""
        expanded = [self._expand(argument) for argument in argv]
        with _link_errors(link):
            channel = link.transport.open_session(timeout=CONNECT_S)
        try:
            # exec_command waits for the server's consent without a time-out of its own.
            timer = threading.Timer(max(0.1, min(CONNECT_S, deadline - time.monotonic())), _close, [channel])
            timer.daemon = True
            timer.start()
            try:
                with _link_errors(link):
                    channel.exec_command(command_line(expanded))
            finally:
                timer.cancel()
            yield channel
        finally:
            _in_background(_close, channel)

    def _expand(self, argument: str) -> str:
        """Put the user's home folder on the device in place of a leading ``~/``."""
        return self.home() + argument[1:] if argument.startswith("~/") else argument

    def home(self) -> str:
        """Return the login's home folder on the device."""
        if self._home is None:
            mark = files.new_mark()
            done = self.run(["/bin/sh", "-c", f'printf "\\n%s %s\\n" {mark} "$HOME"'], timeout=CONNECT_S)
            found = [line.partition(mark + " ")[2] for line in done.stdout.splitlines() if mark + " " in line]
            if not found or not found[0].startswith("/"):
                raise RunFailedError(
                    "The device does not run commands as expected: "
                    f"{clean(done.stdout + done.stderr, limit=200) or 'no answer'}.",
                    where=self.description,
                    next_step="does `ssh … /bin/sh -c 'echo hello'` print hello? is the login restricted?",
                )
            self._home = found[0].rstrip("/")
        return self._home

    # ------------------------------------------------------------ files

    def put(self, local: Path, remote: str, *, sha256: str, progress: Progress | None = None) -> int:
        """Send a file; see the seam."""
        final = self._expand(remote)
        part = files.part_name(final, sha256)
        try:
            size = local.stat().st_size
            with open(local, "rb"):
                pass
        except OSError as error:
            raise InputError(f"Cannot read the file: {error.strerror}.", where=str(local)) from error
        patience = 60 + size / _SLOWEST_HASH_BYTES_S
        sent = 0
        for attempt in (1, 2):
            mark = files.new_mark()
            done = self.run(
                files.script(files.LOOK, mark, final, part, sha256), timeout=patience, limit=files.MAX_ANSWER_BYTES
            )
            answer = files.find_answer(done.stdout, mark)
            if answer is None:
                raise files.failure(done.status, done.stderr, final, self.description)
            if answer.word == "there":
                return sent
            block = min(answer.number, size) // files.BLOCK_BYTES
            count, done = self._store(local, final, part, sha256, size, block, patience, progress)
            sent += count
            if done.status == 0:
                return sent
            # Only a part that an earlier connection left can be at fault without the storage being so.
            if done.status != files.CORRUPT or attempt == 2 or block == 0:
                break
        raise files.failure(done.status, done.stderr, final, self.description)

    def _store(
        self,
        local: Path,
        final: str,
        part: str,
        sha256: str,
        size: int,
        block: int,
        patience: float,
        progress: Progress | None,
    ) -> tuple[int, Completed]:
        """Stream a file from a block on into the board's part file; return the bytes sent and how the script ended."""
        link = self.connect()
        out, err = Capture(files.MAX_ANSWER_BYTES), Capture(files.MAX_ANSWER_BYTES)
        argv = files.script(files.STORE, files.new_mark(), final, part, sha256, str(size), str(block))
        with self._channel(link, argv, time.monotonic() + CONNECT_S) as channel, _link_errors(link):
            reader = _in_background(_drain_stderr, channel, err)
            start = done = block * files.BLOCK_BYTES
            channel.settimeout(patience)
            # What fits one SSH packet: paramiko would cut and copy larger pieces.
            chunk_bytes = channel.out_max_packet_size - 64
            with open(local, "rb") as file:
                file.seek(done)
                while chunk := _read_local(file, chunk_bytes, local):
                    try:
                        channel.sendall(chunk)
                    except TimeoutError:
                        raise
                    except OSError:
                        if not link.alive:
                            raise
                        break  # the script has ended before its input: its status and message say why
                    done += len(chunk)
                    if progress:
                        progress(done, size)
            with contextlib.suppress(OSError):
                channel.shutdown_write()
            status = self._read(link, channel, out, time.monotonic() + patience, "upload")
            reader.join(1.0)
        return done - start, Completed(status, out.text(), err.text())

    def get(self, remote: str, local: Path, *, limit: int, progress: Progress | None = None) -> None:
        """Fetch a file; see the seam."""
        link = self.connect()
        mark, err = files.new_mark(), Capture(files.MAX_ANSWER_BYTES)
        where = f"{self.description}:{clean(remote, limit=200)}"
        argv = files.script(files.SEND, mark, self._expand(remote))
        with self._channel(link, argv, time.monotonic() + CONNECT_S) as channel, _link_errors(link):
            channel.shutdown_write()
            _in_background(_drain_stderr, channel, err)
            channel.settimeout(60.0)
            head = bytearray()
            while (at := head.find(mark.encode() + b" ")) < 0 or b"\n" not in head[at:]:
                chunk = channel.recv(_RECV_BYTES)
                head += chunk
                if not chunk or len(head) > files.MAX_ANSWER_BYTES + _RECV_BYTES:
                    if not link.alive:
                        raise EOFError
                    raise files.failure(1, err.text(), remote, self.description)
            line, _, data = bytes(head[at:]).partition(b"\n")
            answer = files.find_answer(line.decode("utf-8", "replace"), mark)
            if answer is None or answer.word != "file":
                raise RunFailedError("There is no such file on the device.", where=where)
            if answer.number > limit:
                raise RunFailedError(f"The file has {answer.number} bytes, more than the {limit} allowed.", where=where)
            with atomic_open(local, private=True) as file:
                done = 0
                while done < answer.number:
                    data = data or channel.recv(_RECV_BYTES)
                    if not data:
                        raise EOFError("the file was cut off")
                    data = data[: answer.number - done]
                    file.write(data)
                    done += len(data)
                    data = b""
                    if progress:
                        progress(done, answer.number)


@contextlib.contextmanager
def _link_errors(link: Link) -> Iterator[None]:
    """Turn what paramiko raises into a lost link."""
    try:
        yield
    except _LOST as error:
        raise lost(error, link) from error


def _in_background(function: Callable[..., None], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=function, args=arguments, daemon=True)
    thread.start()
    return thread


def _close(channel: paramiko.Channel) -> None:
    with contextlib.suppress(*_LOST):
        channel.close()


def _read_local(file: IO[bytes], size: int, path: Path) -> bytes:
    try:
        return file.read(size)
    except OSError as error:
        raise InputError(f"Cannot read the file: {error.strerror}.", where=str(path)) from error


def _drain_stderr(channel: paramiko.Channel, capture: Capture) -> None:
    """Read stderr beside stdout: one that is left full stops the other after 2 MiB."""
    with contextlib.suppress(*_LOST):
        while True:
            try:
                chunk = channel.recv_stderr(_RECV_BYTES)
            except TimeoutError:
                continue
            if not chunk:
                return
            capture.add(chunk)


def _feed(channel: paramiko.Channel, data: bytes) -> None:
    with contextlib.suppress(*_LOST):
        channel.sendall(data)
        channel.shutdown_write()
