"""The worker: one part in a process of its own. It times and does nothing else; the rest is the supervisor's.

It speaks to the supervisor through two pipes, and only between timed windows: upwards one JSON document a line
(``{"phase": …}``, ``{"figures": …}``, ``{"window": …}``, ``{"error": …}``, ``{"end": true}``), downwards a byte: "go
on".
"""

import gc
import os
import resource
import signal
import time

from . import memory, scenarios, system, warmup, wire
from .home import Fault, no_space, read_json

PR_SET_PDEATHSIG = 1
PR_SET_TIMERSLACK = 29
# Calls between the supervisor's "go" and the window: while the worker waited, caches and clocks cooled. No further one
# is begun after so many seconds.
REWARM_CALLS = 3
REWARM_S = 1.0
# The samples file has room for this many times the calls that warm-up lets us expect.
CAPACITY_MARGIN = 4
MIN_CAPACITY = 4096
PROFILED_CALLS = 20
# A runtime that times itself: how long it warms up, and the shortest call that it is given room for.
SELF_WARMUP_S = 2.0
SHORTEST_CALL_S = 20e-6

# What an exception means that a runtime raises in a phase.
KINDS = {"import": "runtime-error", "load": "model-rejected", "first": "input-rejected"}


def die_with(parent):
    """Have the kernel kill this process when its parent dies; leave at once if it is dead already."""
    import ctypes

    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # Sleeps until a scheduled call end on time, not up to 50 us later.
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def volunteer_for_oom():
    """Ask the kernel to kill this process before the supervisor when memory runs out."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("800")
    except OSError:
        return  # not let: then the kernel judges by size, which points here as well


class Control:
    """The worker's ends of the two pipes."""

    def __init__(self, out, back):
        self._out, self._back = out, back
        self.phase = None

    def tell(self, **document):
        """Send a document to the supervisor."""
        import json

        line = memoryview((json.dumps(document) + "\n").encode("utf-8"))
        while line:
            line = line[os.write(self._out, line) :]

    def enter(self, phase, **more):
        """Say that a phase begins."""
        self.phase = phase
        self.tell(phase=phase, **more)

    def wait(self):
        """Wait for the supervisor's "go on"."""
        if not os.read(self._back, 1):
            os._exit(1)


def load_inputs(path):
    """Return the arrays of an .npz, each contiguous and in memory; {} without a path. Raises Fault input-rejected."""
    if not path:
        return {}
    import numpy

    try:
        with numpy.load(path, allow_pickle=False) as archive:
            return {name: numpy.ascontiguousarray(archive[name]) for name in archive.files}
    except MemoryError:
        raise
    except Exception as error:  # numpy, zipfile and zlib each raise their own
        raise Fault("input-rejected", "%s cannot be read: %s" % (os.path.basename(path), error)) from error


def timed(function, *arguments):
    """Return (seconds, result)."""
    start = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - start, result


def usage():
    """Return what the kernel counts of this process: CPU seconds, major faults, involuntary switches."""
    counts = resource.getrusage(resource.RUSAGE_SELF)
    return counts.ru_utime + counts.ru_stime, counts.ru_majflt, counts.ru_nivcsw


def run_window(call, spec, scenario, latencies, control, place, runtime):
    """Time the window and tell its figures; return the peak RSS before it, and the bytes of samples that it held."""
    from .samples import SampleWriter, max_capacity

    if hasattr(scenario, "prepare"):
        scenario.prepare(call, spec, latencies, control.tell)
    expected = scenario.calls_expected(spec, max(min(latencies), 1e-8) if latencies else 1e-3)
    capacity = max(MIN_CAPACITY, CAPACITY_MARGIN * expected)
    if spec["max_calls"]:
        capacity = min(capacity, spec["max_calls"])
    # Moments within a call say nothing of a query that is several calls.
    marks = runtime.marks if scenarios.calls_per_record(scenario, spec) == 1 else 0
    capacity = min(capacity, max_capacity(scenario.COLUMNS + marks))
    batch = scenario.samples_per_call(spec)
    peak = memory.peak()
    writer = SampleWriter(place[0], place[1], capacity, scenario.COLUMNS, batch, marks)
    control.tell(ready=True, ours=runtime.processes())
    control.wait()
    control.enter("steady", total_s=spec["duration_s"])
    begin = time.perf_counter()
    for _ in range(REWARM_CALLS):
        call()
        if time.perf_counter() - begin > REWARM_S:
            break
    if marks:
        runtime.record(writer.marks)
    before = usage()
    figures = scenario.run(call, spec, writer)
    after = usage()
    figures.update(batch=batch, cpu_time_s=after[0] - before[0])
    figures.update(major_faults=after[1] - before[1], involuntary_switches=after[2] - before[2])
    control.tell(window=figures, ours=runtime.processes())
    return peak, writer.size


def run_part(part, place, control):
    """Take a part through its phases."""
    from . import runtimes

    spec = scenarios.complete(part["scenario"])
    runtime = runtimes.load(part, place[0])
    runtime.check()
    memories = {"baseline_rss": system.status_bytes().get("VmRSS")}

    control.enter("import")
    import_s, version = timed(runtime.import_library)
    control.tell(figures={"import_s": import_s, "runtime_version": str(version)[:128]})
    inputs = load_inputs(part.get("inputs"))
    runtime.take_inputs(inputs)
    control.enter("load")
    load_s, _ = timed(runtime.load)
    control.tell(figures=dict(runtime.figures, load_s=load_s - (runtime.figures.get("build_s") or 0)))
    if runtime.self_timed:
        run_self_timed(runtime, part, spec, control, place)
        return
    control.enter("first")
    call = runtime.bind(inputs)
    first_s, _ = timed(call)
    runtime.after_first()
    memories["peak_rss_load"] = memory.peak()
    memories["peak_rss_reset"] = memory.reset_peak()
    control.tell(figures=dict(runtime.figures, first_s=first_s, memory=memories))

    if part.get("profile_ops"):
        control.enter("ops")
        control.tell(figures={"ops": runtime.profile(inputs, PROFILED_CALLS)})
        return
    warm = dict(warmup.DEFAULTS, **(part.get("warmup") or {}))
    control.enter("warmup", total_s=warm["max_s"])
    figures, latencies = warmup.warm_up(call, warm)
    control.tell(figures=figures)
    scenario = scenarios.load(spec["name"])
    peak, samples_bytes = run_window(call, spec, scenario, latencies, control, place, runtime)
    control.enter("memory")
    memories.update(memory.steady_figures(peak, samples_bytes), device_peak=runtime.device_peak())
    memories.update(runtime.memory())
    control.tell(figures={"memory": memories, "notes": runtime.notes})
    if part.get("preprocess"):
        from .preprocess import measure

        control.enter("preprocess")
        control.tell(figures=measure(part["preprocess"]))
    if part.get("golden"):
        from .parity import compare_golden

        control.enter("parity")
        control.tell(figures={"parity": compare_golden(runtime.infer, load_inputs(part["golden"]))})


def run_self_timed(runtime, part, spec, control, place):
    """Let a runtime time itself that does; back to back only, and without outputs."""
    from .samples import SampleWriter, max_capacity

    if part.get("profile_ops"):
        control.enter("ops")
        control.tell(figures={"ops": runtime.profile({}, PROFILED_CALLS)})
        return
    if scenarios.MODULES[spec["name"]] != "closed_loop":
        raise Fault("bad-job", "trtexec cannot issue calls as the scenario %s does" % spec["name"])
    capacity = min(max_capacity(2), max(MIN_CAPACITY, int(spec["duration_s"] / SHORTEST_CALL_S)))
    writer = SampleWriter(place[0], place[1], capacity, 2, spec["batch"])
    control.tell(ready=True)
    control.wait()
    control.enter("steady", total_s=spec["duration_s"])
    warmup_s = min(SELF_WARMUP_S, (part.get("warmup") or {}).get("max_s", SELF_WARMUP_S))
    figures, peak = runtime.drive(spec, writer, warmup_s)
    control.tell(window=dict(figures, batch=spec["batch"]))
    control.tell(figures={"memory": {"peak_rss_steady": peak}})


def fault_of(error, phase):
    """Return the Fault that an exception in a phase means."""
    if isinstance(error, Fault):
        return error
    message = "%s: %s" % (type(error).__name__, error)
    if isinstance(error, ImportError) and phase == "import":
        return Fault("runtime-missing", message)
    if isinstance(error, MemoryError):
        return Fault("out-of-memory", message)
    if isinstance(error, OSError) and no_space(error):
        return Fault("no-space", message)
    return Fault(KINDS.get(phase, "runtime-error"), message, phase=phase)


def main(folder, index, parent, out, back):
    """Run a part; never returns."""
    die_with(int(parent))
    volunteer_for_oom()
    gc.disable()
    control = Control(int(out), int(back))
    part = read_json(os.path.join(folder, wire.JOB_FILE))["parts"][int(index)]
    import site

    site.main()  # the interpreter was started with -S, which is leaner
    try:
        run_part(part, (folder, int(index)), control)
    except Exception as error:
        control.tell(error=fault_of(error, control.phase).document())
    control.tell(end=True)
    # No interpreter shutdown: a runtime's teardown cannot turn a finished part into a crash.
    os._exit(0)
