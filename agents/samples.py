"""The samples file: a shared mapping that the worker fills and that outlives it; layout in ``wire``.

It lies in /dev/shm, where writing never waits for a disk, or else in the run's folder. Its room is reserved when it
is made (a mapping that outgrows its file system dies of SIGBUS), and every page is touched (an untouched one costs 2
us when timed).
"""

import binascii
import contextlib
import os
import struct

from . import wire

SHARED_MEMORY = "/dev/shm"  # noqa: S108 - opened with O_EXCL | O_NOFOLLOW, the owner is checked
MAX_BYTES = wire.MAX_RESULT_BYTES
ITEM_BYTES = 8
COPY_BYTES = 1 << 20


def candidates(folder, index):
    """Return the paths at which a part's samples may lie while it runs, the preferred one first."""
    name = "argus-edge-%d-%08x-%d" % (os.getuid(), binascii.crc32(os.path.abspath(folder).encode("utf-8")), index)
    return [os.path.join(SHARED_MEMORY, name), os.path.join(folder, ".samples-%d" % index)]


def max_capacity(columns):
    """Return how many calls fit into the largest samples file."""
    return (MAX_BYTES - wire.SAMPLE_HEADER_BYTES) // (ITEM_BYTES * columns)


class SampleWriter:
    """The worker's end: ``columns`` views of float64, one element a call.

    Parameters
    ----------
    folder, index
        The run's folder and the part's number.
    capacity
        Calls that it can hold, at most ``max_capacity(columns + marks)``.
    columns
        2, or 3 with scheduled times.
    batch
        Samples that one call stands for.
    marks
        Moments within a call that are kept beside.

    Raises
    ------
    OSError
        ENOSPC where neither place has room.
    """

    def __init__(self, folder, index, capacity, columns, batch, marks=0):
        import mmap

        width = columns + marks
        self.size = size = wire.SAMPLE_HEADER_BYTES + capacity * width * ITEM_BYTES
        file = self._reserve(candidates(folder, index), size)
        try:
            self._map = mmap.mmap(file, size)
        finally:
            os.close(file)
        for offset in range(0, size, 4096):
            self._map[offset] = 0
        struct.pack_into(wire.SAMPLE_HEADER, self._map, 0, 0.0, capacity, width, batch, marks)
        values = memoryview(self._map)[wire.SAMPLE_HEADER_BYTES :].cast("d")
        self.capacity = capacity
        views = [values[k * capacity : (k + 1) * capacity] for k in range(width)]
        self.columns, self.marks = views[:columns], views[columns:]
        self.starts, self.ends = self.columns[:2]

    def _reserve(self, paths, size):
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        for path in paths:
            with contextlib.suppress(OSError):
                os.unlink(path)  # what an earlier run of the same name left behind
            try:
                file = os.open(path, flags, 0o600)
            except OSError as error:
                failure = error
                continue
            try:
                os.posix_fallocate(file, 0, size)
            except OSError as error:
                failure = error
                os.close(file)
                os.unlink(path)
                continue
            self.path = path
            return file
        raise failure


class SampleReader:
    """The supervisor's end, and that of ``collect``: reads a samples file that may still be growing."""

    def __init__(self, path):
        self._file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        state = os.fstat(self._file)
        header = os.pread(self._file, wire.SAMPLE_HEADER_BYTES, 0)
        if state.st_uid != os.getuid() or len(header) < wire.SAMPLE_HEADER_BYTES:
            self.close()
            raise ValueError("%s is not a samples file of ours" % path)
        fields = struct.unpack_from(wire.SAMPLE_HEADER, header)
        self.capacity, self.columns, self.batch, self.marks = (int(value) for value in fields[1:])
        expected = wire.SAMPLE_HEADER_BYTES + self.capacity * self.columns * ITEM_BYTES
        if not 2 <= self.columns - self.marks <= 3 or state.st_size != expected or state.st_size > MAX_BYTES:
            self.close()
            raise ValueError("%s is not a whole samples file" % path)

    @classmethod
    def find(cls, folder, index):
        """Return a reader of a part's samples where they lie now (kept, or still shared), or None."""
        for path in [os.path.join(folder, wire.SAMPLES_FILE % index), *candidates(folder, index)]:
            with contextlib.suppress(OSError, ValueError):
                return cls(path)
        return None

    def value(self, column, index):
        """Return one element, seconds."""
        offset = wire.SAMPLE_HEADER_BYTES + (column * self.capacity + index) * ITEM_BYTES
        return struct.unpack("<d", os.pread(self._file, ITEM_BYTES, offset))[0]

    def count(self):
        """Return how many calls are done: calls end in order, so the first end time of 0 is found by bisection."""
        low, high = 0, self.capacity
        while low < high:
            middle = (low + high) // 2
            if self.value(1, middle):
                low = middle + 1
            else:
                high = middle
        return low

    def keep(self, target):
        """Write the calls that are done to a file that appears whole, columns cut to their count; return the count."""
        count = self.count()
        temporary = "%s.%d.part" % (target, os.getpid())
        try:
            with open(temporary, "wb") as out:
                header = struct.pack(wire.SAMPLE_HEADER, count, count, self.columns, self.batch, self.marks)
                out.write(header.ljust(wire.SAMPLE_HEADER_BYTES, b"\0"))
                for column in range(self.columns):
                    offset = wire.SAMPLE_HEADER_BYTES + column * self.capacity * ITEM_BYTES
                    end = offset + count * ITEM_BYTES
                    while offset < end:
                        chunk = os.pread(self._file, min(COPY_BYTES, end - offset), offset)
                        if not chunk:
                            raise ValueError("the samples file has shrunk")
                        out.write(chunk)
                        offset += len(chunk)
            os.rename(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        return count

    def close(self):
        """Give the file back."""
        os.close(self._file)


def keep(folder, index, reader=None):
    """Move a part's samples from where they were written into the run's folder; return the count, None without any.

    A ``reader`` that is open already has them even where their name is gone: logind clears a user's shared memory at
    logout (RemoveIPC), unless processes of the login remain. It is closed.
    """
    target = os.path.join(folder, wire.SAMPLES_FILE % index)
    reader = reader or SampleReader.find(folder, index)
    if reader is None:
        return None
    try:
        count = reader.count() if os.path.exists(target) else reader.keep(target)
    finally:
        reader.close()
    discard(folder, index)
    return count


def discard(folder, index):
    """Remove a part's shared mapping."""
    for path in candidates(folder, index):
        with contextlib.suppress(OSError):
            os.unlink(path)
