"""The supervisor's view of its worker: spawns it, drains what it prints, takes its messages, says how it died."""

import contextlib
import json
import os
import select
import signal
import sys

from . import entry, system

OUTPUT_HEAD_BYTES = 64 << 10
OUTPUT_TAIL_BYTES = 16 << 10
MAX_MESSAGE_BYTES = 512 << 10
CHUNK_BYTES = 64 << 10


class OutputSink:
    """A file that keeps the beginning and the end of what is written to it, and counts what lay between."""

    def __init__(self, path):
        self._path = path
        self._head = 0
        self._tail = b""
        self.total = 0

    def write(self, data):
        """Take a chunk. A full disk loses the output, never the run."""
        self.total += len(data)
        head = data[: OUTPUT_HEAD_BYTES - self._head]
        if head:
            self._append(head)
            self._head += len(head)
        self._tail = (self._tail + data)[-OUTPUT_TAIL_BYTES:]

    def _append(self, data):
        with contextlib.suppress(OSError), open(self._path, "ab", buffering=0) as file:
            file.write(data)

    def close(self):
        """Append the end."""
        beyond = self.total - self._head
        if beyond > 0:
            left_out = beyond - len(self._tail)
            if left_out > 0:
                self._append(b"\n... %d bytes left out ...\n" % left_out)
            self._append(self._tail[-beyond:])

    def last_words(self, limit=1000):
        """Return the last bytes as text."""
        return self._tail[-limit:].decode("utf-8", "replace").strip()


class WorkerProcess:
    """A worker and the pipes to it."""

    def __init__(self, folder, index, output_path):
        control_in, control_out = os.pipe()
        go_in, go_out = os.pipe()
        output_in, output_out = os.pipe()
        parent = os.getpid()
        argv = [sys.executable, "-S", entry.ARCHIVE, entry.WORKER, folder, index, parent, control_out, go_in]
        self.pid = os.fork()
        if self.pid == 0:
            self._become([str(word) for word in argv], (control_out, go_in), output_out)
        for end in (control_out, go_in, output_out):
            os.close(end)
        self.identity = system.identity(self.pid)
        self._control, self._go, self._output = control_in, go_out, output_in
        for end in (control_in, output_in):
            os.set_blocking(end, False)
        self._sink = OutputSink(output_path)
        self._pending = b""
        self._statm = None
        self.status = None

    @staticmethod
    def _become(argv, keep, output):
        try:
            os.setpgid(0, 0)
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            nothing = os.open(os.devnull, os.O_RDONLY)
            for target, source in enumerate((nothing, output, output)):
                os.dup2(source, target)
            for end in keep:
                os.set_inheritable(end, True)
            os.execv(argv[0], argv)
        finally:
            os._exit(127)

    def descriptors(self):
        """Return the descriptors to wait on."""
        return [end for end in (self._control, self._output) if end is not None]

    def messages(self):
        """Drain both pipes; return the documents that came, each a dict. A line that is no message is passed over."""
        self._output = self._drain(self._output, self._sink.write)
        self._control = self._drain(self._control, self._take)
        lines = self._pending.split(b"\n")
        self._pending = lines.pop()
        documents = []
        for line in lines:
            with contextlib.suppress(ValueError):
                documents.append(json.loads(line.decode("utf-8")))
        return [document for document in documents if isinstance(document, dict)]

    def _take(self, data):
        self._pending += data
        if b"\n" not in data and len(self._pending) > MAX_MESSAGE_BYTES:
            self._pending = b""

    @staticmethod
    def _drain(end, take):
        """Read a bounded amount of what a pipe holds; return it, or None where it has been closed."""
        for _ in range(16):
            if end is None:
                return None
            try:
                data = os.read(end, CHUNK_BYTES)
            except BlockingIOError:
                return end
            if data:
                take(data)
            else:
                os.close(end)
                end = None
        return end

    def go_on(self):
        """Let the worker begin its window."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._go, b"g")

    def resident(self):
        """Return the worker's resident set in bytes and its part that no file stands behind, or None for both.

        A descriptor is kept so that this is cheap.
        """
        try:
            if self._statm is None:
                self._statm = os.open("/proc/%d/statm" % self.pid, os.O_RDONLY | os.O_CLOEXEC)
            resident, shared = (int(pages) for pages in os.pread(self._statm, 128, 0).split()[1:3])
        except (OSError, ValueError):
            return None, None
        return resident * system.PAGE_BYTES, (resident - shared) * system.PAGE_BYTES

    def ended(self):
        """Return whether the process has ended, and if so take its status."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = status
        return self.status is not None

    def kill(self):
        """Kill the worker with all that it has started, and wait for it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        if self.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self.status = os.waitpid(self.pid, 0)[1]

    def close(self):
        """End the worker's whole process group, take its last output, give everything back."""
        self.kill()
        documents = self.messages()
        self._sink.close()
        for end in (self._control, self._output, self._go, self._statm):
            if end is not None:
                os.close(end)
        return documents

    def fault(self, oom_kills):
        """Return how a worker died that did not say so itself: a fault's document.

        Parameters
        ----------
        oom_kills
            How many processes the kernel has killed for memory since the worker was started.
        """
        detail = {"output": self._sink.last_words()}
        if os.WIFSIGNALED(self.status):
            number = os.WTERMSIG(self.status)
            detail["signal"] = number
            if number == signal.SIGKILL and (oom_kills > 0 or system.killed_for_memory(self.pid)):
                message = "the kernel killed the worker because memory ran out"
                return {"kind": "out-of-memory", "message": message, "detail": detail}
            message = "the worker died of signal %d (%s)" % (number, signal_name(number))
            return {"kind": "crashed", "message": message, "detail": detail}
        detail["exit_status"] = os.WEXITSTATUS(self.status)
        message = "the worker left with exit status %d before it was done" % detail["exit_status"]
        return {"kind": "crashed", "message": message, "detail": detail}


def signal_name(number):
    """Return SIGSEGV for 11."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def wait(descriptors, seconds):
    """Wait until one of the descriptors can be read, at most so long."""
    poll = select.poll()
    for end in descriptors:
        poll.register(end, select.POLLIN | select.POLLHUP)
    return poll.poll(max(0.0, seconds) * 1000)
