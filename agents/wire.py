"""The wire format between host and agent: names, versions, framing. Both ends import this module, so they cannot drift.

Standard library only, Python 3.6. Shapes of the documents are checked on the host by ``argus_edge.schema.agent``.

The agent is called as ``python3 agent.pyz [--home DIR] COMMAND [ARGUMENT ...]``. It answers on stdout with framed
lines: a magic word, a space, one JSON document. Anything else on stdout (a login banner, a runtime's chatter) is not
the protocol and is ignored by the host. A command that fails answers {"error": {"kind", "message", "detail"}} and
exits with status 1.
"""

import json

WIRE_VERSION = 1
MAGIC = "ARGUS-EDGE/%d" % WIRE_VERSION

# No framed line is longer than this; results travel as files.
MAX_LINE_BYTES = 1 << 20
MAX_RESULT_BYTES = 64 << 20

# Commands, their arguments, and what they answer (models of argus_edge.schema.agent).
PROBE = (
    "probe"  # [--system-root DIR] [--runtimes NAME,NAME] -> DeviceFacts; without --runtimes every one is imported once
)
CHECK = "check"  # doctor's checks that need the device -> {"findings": [Finding, ...]}
START = "start"  # JOB.json -> {"run", "pid"}
FOLLOW = (
    "follow"  # RUN OFFSET -> {"offset", "events"} as they come, {} as a heartbeat every 2 s, until the run has ended
)
STATUS = "status"  # RUN -> RunStatus
LIST = "list"  # -> {"runs": [RunStatus, ...]}
STOP = "stop"  # RUN -> RunStatus, after at most 5 s
COLLECT = (
    "collect"  # RUN -> {"files": [{"name", "path", "size", "sha256"}]}; the result is made from what is left if need be
)
REMOVE = "remove"  # RUN -> {"removed": true}
HOLDER = "holder"  # who holds the device now -> {"holder": Holder}, or null where it is free
KEEP = (
    "keep"  # [SECONDS] -> {"kept": true} once nothing else has run beside it for so long: a container's first process
)

COMMANDS = (PROBE, CHECK, START, FOLLOW, STATUS, LIST, STOP, COLLECT, REMOVE, HOLDER, KEEP)

# Files below the agent's home (default ~/.cache/argus-edge on the device).
RUNS_FOLDER = "runs"  # runs/<run id>/
JOBS_FOLDER = "jobs"  # jobs/<run id>.json: a job as the host sends it
JOB_FILE = "job.json"
JOURNAL_FILE = "journal.jsonl"  # one event a line, appended; a reader takes only what ends in a newline
RESULT_FILE = "result.json"  # renamed into place when the run has ended
SAMPLES_FILE = "samples-%d.bin"  # part index; see SAMPLE_FORMAT
OUTPUT_FILE = "output-%d.txt"  # what the worker's runtime wrote to stdout and stderr, capped
LOCK_FILE = "device.lock"

# A samples file: a header, then `capacity` float64 start times, then `capacity` float64 end times, little endian,
# both in seconds of CLOCK_MONOTONIC (time.perf_counter). An end time of 0 is "not done". In scenarios with a schedule
# (server, paced) a third column holds each call's scheduled time; its latency counts from there. The last `marks` of
# the columns hold moments within each call: the end of each step of a unit of work, then the arrival of each token.
SAMPLE_HEADER_BYTES = 64
SAMPLE_HEADER = "<ddddd"  # count, capacity, columns, batch, marks

# Phases of a part, in order.
PHASES = ("import", "load", "first", "warmup", "steady", "memory", "preprocess", "parity", "ops")

SCENARIOS = ("single-stream", "multi-stream", "offline", "server", "paced", "soak")
RUNTIMES = ("onnxruntime", "litert", "torch", "tensorrt", "server", "null")
PROVIDERS = ("cpu", "cuda", "tensorrt", "xnnpack")
STATES = ("running", "done", "failed", "stopped", "timeout", "lost")

# Why a part or a run failed: the host turns these into errors with a next step.
ERROR_KINDS = (
    "busy",  # another run holds the device (detail: Holder)
    "runtime-missing",  # the runtime cannot be imported
    "runtime-error",  # it raised (message)
    "model-rejected",  # load failed
    "input-rejected",  # first call failed on the inputs
    "server-error",  # a server that was to be driven is off, refuses, hangs, or answers what nobody understands
    "crashed",  # the worker died of a signal (signal)
    "out-of-memory",  # killed for memory, by the kernel or by our limit
    "timeout",  # the wall-clock limit passed
    "no-space",  # disk full on the device
    "stopped",  # asked to
    "supervisor-died",  # found by status/collect
    "rebooted",  # the boot id changed
    "bad-job",  # the job document is not understood
    "internal",  # a fault of the agent's own (message, traceback tail)
)


def frame(document):
    """Return a framed line (text with its newline) for a JSON document."""
    return "%s %s\n" % (MAGIC, json.dumps(document, sort_keys=True))


def parse(line):
    """Return the document of a framed line, or None where the line is not the protocol's.

    Raises ValueError where the line begins as a frame but is not JSON, or is longer than MAX_LINE_BYTES.
    """
    if not line.startswith(MAGIC + " "):
        return None
    if len(line) > MAX_LINE_BYTES:
        raise ValueError("a line of %d bytes: longer than the protocol allows" % len(line))
    return json.loads(line[len(MAGIC) + 1 :])
