"""Runs a vendor's tool, bounded in time and output, without importing subprocess (2.5 MB of a supervisor's memory)."""

import os
import select
import signal
import time

FOLDERS = ("usr/bin", "usr/sbin", "bin", "sbin", "usr/local/bin", "opt/vc/bin")


def locate(system_root, name):
    """Return the path of a tool below the root, also where a plain user's PATH does not look (/usr/sbin), or None."""
    for folder in FOLDERS:
        path = os.path.join(system_root, folder, name)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return None


def run(argv, timeout=5.0, limit=1 << 16, first_line=False):
    """Return what a tool writes to stdout and stderr, or None where it cannot be run or was killed silent.

    Parameters
    ----------
    argv
        The tool's path and its arguments; no shell.
    timeout
        Seconds after which it is killed; what it has said by then counts.
    limit
        Bytes after which it is killed.
    first_line
        End it after its first whole line, for tools that never end by themselves (tegrastats).
    """
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(argv, theirs)
    os.close(theirs)
    try:
        return _collect(pid, ours, timeout, limit, first_line)
    finally:
        os.close(ours)


def _become(argv, output):
    """In the child: only exec or exit from here on."""
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        for number in (signal.SIGPIPE, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.execve(argv[0], argv, dict(os.environ, LC_ALL="C"))
    finally:
        os._exit(127)


def _collect(pid, source, timeout, limit, first_line):
    said, deadline, ended = b"", time.monotonic() + timeout, False
    while len(said) < limit and not (first_line and b"\n" in said):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([source], [], [], left)[0]:
            break
        chunk = os.read(source, 4096)
        if not chunk:
            ended = True
            break
        said += chunk
    if not ended:
        # The tool leads a session of its own: what it started ends with it.
        try:
            os.killpg(pid, signal.SIGKILL)
        except OSError:
            os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if not said and (not ended or status == 127 << 8):
        return None
    text = said[:limit].decode("utf-8", "replace")
    return text.split("\n", 1)[0] if first_line else text
