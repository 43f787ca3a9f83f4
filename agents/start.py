"""``start``: checks a job, takes the device, and leaves a supervisor behind in a session of its own."""

import contextlib
import hashlib
import os
import sys
import time

from . import entry, system, wire
from .home import RUN_ID, DeviceLock, Fault, Journal, no_space, path, read_json, take_reserve, write_json

MAX_JOB_BYTES = 8 << 20
ERRORS_FILE = "supervisor.txt"
AGENT_FILE = "agent.pyz"


def check_job(job):
    """Raise Fault bad-job where this agent does not understand a job; its shape in full is the host's to check."""
    if not isinstance(job, dict):
        raise Fault("bad-job", "the job is not a JSON object")
    if job.get("wire") != wire.WIRE_VERSION:
        raise Fault("bad-job", "the job speaks version %r, this agent %d" % (job.get("wire"), wire.WIRE_VERSION))
    if not isinstance(job.get("run"), str) or not RUN_ID.fullmatch(job["run"]):
        raise Fault("bad-job", "the job has no usable run id")
    parts = job.get("parts")
    if not isinstance(parts, list) or not parts:
        raise Fault("bad-job", "the job has no parts")
    for part in parts:
        if not isinstance(part, dict) or part.get("runtime") not in wire.RUNTIMES:
            raise Fault("bad-job", "a part has no runtime that this agent knows")
        scenario = part.get("scenario")
        if not isinstance(scenario, dict) or scenario.get("name", "single-stream") not in wire.SCENARIOS:
            raise Fault("bad-job", "a part has no scenario that this agent knows")
        check_files(part)


def check_files(part):
    """Make the paths of a part's files absolute; raise Fault bad-job where one is not there."""
    components = (part.get("pipeline") or {}).get("components") or []
    images = (part.get("server") or {}).get("images") or []
    places = [(part, "model"), (part, "inputs"), (part, "golden")]
    places += [(component, "model") for component in components]
    places += [(images, index) for index in range(len(images))]
    for holder, key in places:
        path = holder[key] if isinstance(holder, list) else holder.get(key)
        if path:
            holder[key] = path = os.path.abspath(os.path.expanduser(path))
            if not os.path.exists(path):
                raise Fault("bad-job", "there is no file %s on this device" % path)


def agent_sha256():
    """Return the hash of the archive that this agent runs from, or None where it runs from a folder."""
    content = archive()
    return None if content is None else hashlib.sha256(content).hexdigest()


def archive():
    """Return the bytes of the archive that this agent runs from, or None where it runs from a folder."""
    if not os.path.isfile(entry.ARCHIVE):
        return None
    with open(entry.ARCHIVE, "rb") as file:
        return file.read()


def keep_agent(folder):
    """Copy the archive that this agent runs from into a run's folder; return its hash, None where it is a folder.

    The run goes on from the copy: another agent may be put in the place of this one meanwhile, and never be mixed in.
    """
    content = archive()
    if content is None:
        return None
    copy = os.open(os.path.join(folder, AGENT_FILE), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(copy, "wb") as file:
        file.write(content)
    return hashlib.sha256(content).hexdigest()


def start(home, job_path):
    """Start a run and return {"run", "pid"}.

    Raises
    ------
    Fault
        bad-job, busy (with who holds the device since when), no-space.
    """
    job = read_json(os.path.expanduser(job_path), MAX_JOB_BYTES)
    check_job(job)
    try:
        os.makedirs(path(home, wire.RUNS_FOLDER), mode=0o700, exist_ok=True)
        lock = DeviceLock(home)
        lock.take()
        return launch(home, job, lock)
    except OSError as error:
        if no_space(error):
            raise Fault("no-space", "the device has no room for a run below %s" % path(home)) from error
        raise


def launch(home, job, lock):
    """Fork the supervisor, write down who it is, and let it go. The run's folder appears when all that is done."""
    final = path(home, wire.RUNS_FOLDER, job["run"])
    if os.path.exists(final):
        raise Fault("bad-job", "this device has a run %s already" % job["run"], run=job["run"])
    folder = path(home, wire.RUNS_FOLDER, ".new-" + job["run"])
    discard(folder)
    os.mkdir(folder, 0o700)
    try:
        write_json(os.path.join(folder, wire.JOB_FILE), job)
        take_reserve(folder)
        sha256 = keep_agent(folder)
        ready_in, ready_out = os.pipe()
        log = os.open(os.path.join(folder, ERRORS_FILE), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        pid = os.fork()
        if pid == 0:
            os.close(ready_out)
            become_supervisor(os.path.abspath(final), log, lock.file, ready_in)
        who = system.identity(pid)
        lock.sign(dict(who, run=job["run"], holder=job.get("holder", ""), since=time.time()))
        Journal(folder).write("started", agent_sha256=sha256, **who)
        os.rename(folder, final)
        os.write(ready_out, b"go")
    except BaseException:
        discard(folder)  # the supervisor, if there is one, reads the end of its pipe and leaves
        raise
    return {"run": job["run"], "pid": pid}


def become_supervisor(folder, log, lock, ready):
    """In the forked child: a session of its own, nothing of ours left open, a fresh and lean interpreter.

    It waits until the run's folder, from which its program comes, is in place.
    """
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for target, source in enumerate((nothing, nothing, log)):
            os.dup2(source, target)
        os.set_inheritable(lock, True)
        os.chdir("/")
        if os.read(ready, 2):
            copy = os.path.join(folder, AGENT_FILE)
            program = copy if os.path.exists(copy) else entry.ARCHIVE
            os.execv(sys.executable, [sys.executable, "-S", program, entry.SUPERVISE, folder, str(lock)])
    finally:
        os._exit(127)


def discard(folder):
    """Remove what an earlier start left half-made."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)
