"""What can be asked about runs, and done to them, after they were started: status, list, stop, collect, remove."""

import contextlib
import os
import signal
import time

from . import assemble, samples, system, wire
from .home import Fault, journal_events, path, read_json, run_folder, write_json
from .start import ERRORS_FILE

# stop: so long for the supervisor to end the run itself; then it is killed, and the result is made here.
PATIENCE_S = 3.5
TAIL_BYTES = 128 << 10
MAX_LISTED = 1000


def started_event(folder):
    """Return the event that names the supervisor, or {}."""
    for _, event in journal_events(folder, limit=wire.MAX_LINE_BYTES):
        return event
    return {}


def last_events(folder):
    """Return the last events of a journal, oldest first."""
    size = journal_bytes(folder)
    offset = max(0, size - TAIL_BYTES)
    # After the offset the first line is most likely a torn one; it is passed over as no JSON.
    return [event for _, event in journal_events(folder, offset, limit=max(size, 1) + wire.MAX_LINE_BYTES)]


def journal_bytes(folder):
    """Return the journal's size."""
    try:
        return os.stat(os.path.join(folder, wire.JOURNAL_FILE)).st_size
    except OSError:
        return 0


def supervisor_alive(folder):
    """Return whether the run's supervisor still runs."""
    return system.alive(started_event(folder))


def verdict(folder):
    """Return (state, fault's document or None) of a run. "lost": its supervisor is gone and left no result."""
    # Asked first: a supervisor that ends between the two questions has then left its result.
    running = supervisor_alive(folder)
    for event in reversed(last_events(folder)):
        if event.get("event") == "ended":
            return event.get("state"), event.get("error")
    result = read_json(os.path.join(folder, wire.RESULT_FILE))
    if isinstance(result, dict):
        return result.get("state"), result.get("error")
    if running:
        return "running", None
    if started_event(folder).get("boot_id") != system.boot_id():
        return "lost", Fault("rebooted", "the device was rebooted, or lost its power, during the run").document()
    words = system.read_text(os.path.join(folder, ERRORS_FILE))[-1000:]
    return "lost", Fault("supervisor-died", "the run's supervisor was killed", output=words).document()


def status(home, run):
    """Return a run's ``RunStatus``."""
    folder = run_folder(home, run)
    state, fault = verdict(folder)
    started = started_event(folder)
    job = read_json(os.path.join(folder, wire.JOB_FILE)) or {}
    answer = {
        "run": run,
        "state": state,
        "error": fault,
        "pid": started.get("pid"),
        "started_wall": started.get("wall"),
        "parts": len(job.get("parts") or []),
        "journal_bytes": journal_bytes(folder),
    }
    for event in last_events(folder):
        for field in ("part", "phase"):
            if event.get(field) is not None:
                answer[field] = event[field]
    return answer


def list_runs(home):
    """Return {"runs": [RunStatus, …]}, the newest first."""
    root = path(home, wire.RUNS_FOLDER)
    names = [name for name in (os.listdir(root) if os.path.isdir(root) else []) if not name.startswith(".")]
    found = []
    for name in names:
        with contextlib.suppress(Fault, OSError):
            found.append(status(home, name))
    found.sort(key=lambda answer: -(answer["started_wall"] or 0))
    return {"runs": found[:MAX_LISTED]}


def stop(home, run):
    """Stop a run and return its ``RunStatus``; takes 5 s at most."""
    folder = run_folder(home, run)
    who = started_event(folder)
    if system.alive(who) and verdict(folder)[0] == "running":
        signal_to(who, signal.SIGTERM)
        end = time.monotonic() + PATIENCE_S
        while system.alive(who) and time.monotonic() < end:
            time.sleep(0.05)
        if system.alive(who):
            signal_to(who, signal.SIGKILL)
            while system.alive(who):
                time.sleep(0.02)
        if verdict(folder)[0] == "lost":
            fault = Fault("stopped", "the run was stopped; its supervisor had to be killed").document()
            write_json(os.path.join(folder, wire.RESULT_FILE), assemble.result(folder, "stopped", fault))
    return status(home, run)


def signal_to(who, number):
    """Signal a process that may just have ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(who["pid"], number)


def collect(home, run):
    """Return {"files": […]} of a run that has ended; where it ended without a result, make one from what is left."""
    folder = run_folder(home, run)
    state, fault = verdict(folder)
    if state == "running":
        raise Fault("busy", "the run %s is still going" % run, run=run)
    job = read_json(os.path.join(folder, wire.JOB_FILE)) or {}
    count = len(job.get("parts") or [])
    for index in range(count):
        with contextlib.suppress(OSError):
            samples.keep(folder, index)
    if not os.path.exists(os.path.join(folder, wire.RESULT_FILE)):
        write_json(os.path.join(folder, wire.RESULT_FILE), assemble.result(folder, state, fault))
    names = [wire.RESULT_FILE, *(wire.OUTPUT_FILE % index for index in range(count))]
    found = [(name, os.path.join(folder, name)) for name in names]
    for index in range(count):
        # With a full disk the samples are still where the worker wrote them, and are fetched from there.
        places = [os.path.join(folder, wire.SAMPLES_FILE % index), *samples.candidates(folder, index)]
        found += [(wire.SAMPLES_FILE % index, place) for place in places if os.path.exists(place)][:1]
    return {"files": [described(name, target) for name, target in found if os.path.exists(target)]}


def described(name, target):
    """Return a file's name, path, size and hash."""
    import hashlib

    digest = hashlib.sha256()
    with open(target, "rb") as file:
        for chunk in iter(lambda: file.read(1 << 20), b""):
            digest.update(chunk)
        size = file.tell()
    return {"name": name, "path": os.path.abspath(target), "size": size, "sha256": digest.hexdigest()}


def remove(home, run):
    """Remove a run that has ended, with all its files; return {"removed": true}."""
    import shutil

    folder = run_folder(home, run)
    if verdict(folder)[0] == "running":
        raise Fault("busy", "the run %s is still going" % run, run=run)
    job = read_json(os.path.join(folder, wire.JOB_FILE)) or {}
    for index in range(len(job.get("parts") or [])):
        samples.discard(folder, index)
    shutil.rmtree(folder)
    with contextlib.suppress(OSError):
        os.unlink(path(home, wire.JOBS_FOLDER, run + ".json"))
    return {"removed": True}
