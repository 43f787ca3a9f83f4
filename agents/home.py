"""The agent's folder on the device: where things are, files that appear whole, the journal, the lock on the device."""

import contextlib
import errno
import fcntl
import json
import os
import re
import time

from . import system, wire

DEFAULT = "~/.cache/argus-edge"
# Room that a full disk cannot take from us: given back so that the last events and the result can still be written.
RESERVE_FILE = ".reserve"
RESERVE_BYTES = 256 << 10
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
MAX_JOURNAL_BYTES = 256 << 20
# Several events travel in one frame, which wire.MAX_LINE_BYTES limits.
MAX_EVENT_BYTES = wire.MAX_LINE_BYTES // 2


class Fault(Exception):
    """A failure that the host shall read: one of ``wire.ERROR_KINDS``, a message, details."""

    def __init__(self, kind, message, **detail):
        super().__init__(message)
        self.kind = kind
        self.message = str(message)[:2000]
        self.detail = detail

    def document(self):
        """Return the fault as it travels."""
        return {"kind": self.kind, "message": self.message, "detail": self.detail}


def no_space(error):
    """Return whether an OSError says that the disk, or the user's share of it, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def path(home, *names):
    """Return a path below the agent's home."""
    return os.path.join(os.path.expanduser(home), *names)


def run_folder(home, run):
    """Return a run's folder. Raises Fault bad-job where the id is none, or there is no such run."""
    if not RUN_ID.fullmatch(run):
        raise Fault("bad-job", "%r is not a run's id" % run[:100])
    folder = path(home, wire.RUNS_FOLDER, run)
    if not os.path.isdir(folder):
        raise Fault("bad-job", "this device has no run %s" % run, run=run)
    return folder


def write_json(target, document):
    """Write a JSON file that appears under its name only when it is whole."""
    temporary = "%s.%d.part" % (target, os.getpid())
    try:
        with open(temporary, "w") as file:
            json.dump(document, file)
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def read_json(source, limit=wire.MAX_RESULT_BYTES):
    """Return a JSON file's document, or None where it is missing, too long or not JSON."""
    try:
        return json.loads(system.read_text(source, limit))
    except ValueError:
        return None


def is_number(value):
    """Return whether a value of a JSON document is a number that can be computed with."""
    return isinstance(value, (int, float)) and abs(value) < 1e300  # neither NaN nor infinity is


class Journal:
    """A run's journal, opened for appending: each event is one line, written by one call."""

    def __init__(self, folder):
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._folder = folder
        self._file = os.open(os.path.join(folder, wire.JOURNAL_FILE), flags, 0o600)
        self.bytes = os.fstat(self._file).st_size

    def write(self, event, **fields):
        """Append an event with both clocks' times.

        Raises
        ------
        OSError
            The disk is full. The journal then ends at its last whole line, and the reserve has been given back.
        """
        self.write_all([dict(fields, event=event)])

    def write_all(self, events):
        """Append several events at once, so that a follower wakes once for them; otherwise as ``write``."""
        clocks = {"t": time.perf_counter(), "wall": time.time()}
        lines = b"".join(event_line(dict(event, **clocks)) for event in events)
        try:
            self._append(lines)
        except OSError as error:
            if not no_space(error):
                raise
            release_reserve(self._folder)
            self._append(lines)
            raise

    def _append(self, lines):
        try:
            if os.write(self._file, lines) != len(lines):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            os.ftruncate(self._file, self.bytes)
            raise
        self.bytes += len(lines)


def event_line(event):
    """Return an event as a line of the journal; of one that is too long only what it was."""
    line = (json.dumps(event) + "\n").encode("utf-8")
    if len(line) <= MAX_EVENT_BYTES:
        return line
    told = {name: event[name] for name in ("event", "t", "wall", "part", "phase") if name in event}
    told["message"] = "an event of %d bytes was left out" % len(line)
    return (json.dumps(told) + "\n").encode("utf-8")


def take_reserve(folder):
    """Set room aside in a run's folder. Raises OSError where even that is not to be had."""
    reserve = os.open(os.path.join(folder, RESERVE_FILE), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(reserve, 0, RESERVE_BYTES)
    finally:
        os.close(reserve)


def release_reserve(folder):
    """Give the room back."""
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(folder, RESERVE_FILE))


def journal_events(folder, offset=0, limit=MAX_JOURNAL_BYTES):
    """Iterate over (offset after the line, event) of a journal's whole lines; what is no event is passed over."""
    name = os.path.join(folder, wire.JOURNAL_FILE)
    if not os.path.isfile(name):
        return
    with open(name, "rb") as file:
        file.seek(offset)
        while offset < limit:
            line = file.readline(wire.MAX_LINE_BYTES)
            if not line.endswith(b"\n"):
                return
            offset += len(line)
            try:
                event = json.loads(line.decode("utf-8"))
            except ValueError:
                continue
            # Both clocks' times are in every event of ours; what lacks them is none.
            if isinstance(event, dict) and is_number(event.get("t")) and is_number(event.get("wall")):
                yield offset, event


class DeviceLock:
    """The lock that a run holds on the device while it lives: an flock, and in the file who holds it since when.

    The kernel gives an flock back when its last holder dies, so a dead run locks nobody out. Where a process that the
    dead run left behind still has the file open, the lock is taken over. A second lock, held for a moment only, lets
    one look at a time.
    """

    def __init__(self, home):
        self._path = path(home, wire.LOCK_FILE)
        self.file = None

    def take(self):
        """Take the lock. Raises Fault busy, with the holder, where another has it and lives."""
        with self._alone():
            while not self._lock():
                holder = self.holder() or {}
                if not holder or system.alive(holder):
                    who = account(holder)
                    raise Fault("busy", "the device is in use by %s" % (who["holder"] or "another run"), **who)
                os.unlink(self._path)  # what the dead run left behind keeps the old file
            os.ftruncate(self.file, 0)

    def held(self):
        """Return who holds the device now, or None."""
        with self._alone():
            if self._lock():
                self.close()
                return None
            holder = self.holder() or {}
            return account(holder) if not holder or system.alive(holder) else None

    @contextlib.contextmanager
    def _alone(self):
        guard = os.open(self._path + ".guard", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(guard, fcntl.LOCK_EX)
            yield
        finally:
            os.close(guard)

    def _lock(self):
        """Open the file and lock it; return whether that was to be had."""
        self.file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.close()
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            return False
        return True

    def sign(self, document):
        """Write who holds the lock."""
        os.ftruncate(self.file, 0)
        os.pwrite(self.file, (json.dumps(document) + "\n").encode("utf-8"), 0)

    def holder(self):
        """Return what the last holder wrote, or None."""
        return read_json(self._path, 1 << 16)

    def close(self):
        """Let the file go, and with it the lock if we have it."""
        os.close(self.file)
        self.file = None


def account(holder):
    """Return what is told of a holder, itself told by the lock's file: who, which run, for how long."""
    who = {name: holder.get(name) for name in ("holder", "since", "run")}
    return dict(who, held_s=system.age(holder))
