"""NVIDIA's trtexec: command lines for it, and the reading of what it prints and exports.

Formats as of TensorRT 8 (JetPack 4.6 and 5) and 10 (JetPack 6 and 7); see trtexec's ``--exportTimes`` and
``--exportProfile``.
"""

import json
import os
import re

PLACES = ("/usr/src/tensorrt/bin/trtexec", "/usr/local/tensorrt/bin/trtexec")
BANNER = re.compile(r"TensorRT\.trtexec \[TensorRT v(\d+)\]")
# Start and end of a call, by version: data in, or the host's enqueueing.
STARTS = ("startInMs", "startH2dMs")
MAX_OPS = 200
ERROR_LINE = re.compile(r"^\[[^\]]*\] \[E\] (.*)$", re.MULTILINE)
OVERRIDDEN = re.compile(r"Dynamic dimensions required for input: (\S+?),? but no shapes were provided")


def locate():
    """Return the path of trtexec, or None. JetPack keeps it off the PATH."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    for candidate in [os.path.join(folder, "trtexec") for folder in folders if folder] + list(PLACES):
        if os.access(candidate, os.X_OK):
            return candidate
    return None


def version(output):
    """Return TensorRT's version from trtexec's banner: v8201 -> 8.2.1, v100300 -> 10.3.0; None without one."""
    found = BANNER.search(output)
    if not found:
        return None
    digits = found.group(1)
    if len(digits) >= 6:
        return "%d.%d.%d" % (int(digits[:-4]), int(digits[-4:-2]), int(digits[-2:]))
    return "%d.%d.%d" % (int(digits[0]), int(digits[1:-2]), int(digits[-2:]))


def shape_text(shapes):
    """Return shapes as trtexec wants them: {"x": (1, 3)} -> x:1x3."""
    return ",".join("%s:%s" % (name, "x".join(str(size) for size in shape)) for name, shape in shapes.items())


def build_command(trtexec, usage, model, engine, flags, shapes):
    """Return the command that builds an engine.

    Parameters
    ----------
    usage : str
        What ``trtexec --help`` printed: options differ between versions.
    flags : sequence of str
        Precisions: fp16, int8, best …
    shapes : dict
        Input name -> shape, for a model with free dimensions; {} for a static one, which takes none.
    """
    command = [trtexec, "--onnx=" + model, "--saveEngine=" + engine]
    command.append("--skipInference" if "--skipInference" in usage else "--buildOnly")
    command += ["--" + flag for flag in flags]
    if shapes:
        command += ["--%sShapes=%s" % (bound, shape_text(shapes)) for bound in ("min", "opt", "max")]
    return command


def run_command(trtexec, usage, engine, spec, warmup_s, inputs, shapes, times, profile=None):
    """Return the command that times an engine.

    Parameters
    ----------
    spec : dict
        The scenario: ``duration_s``, ``min_calls``.
    inputs : dict
        Input name -> file of raw bytes.
    times, profile : str
        Where to export; with a profile the calls are slower, so that is a pass of its own.
    """
    command = [
        trtexec,
        "--loadEngine=" + engine,
        "--duration=%d" % max(1, round(spec["duration_s"])),
        "--iterations=%d" % spec["min_calls"],
        "--warmUp=%d" % round(1000 * warmup_s),
        "--exportTimes=" + times,
    ]
    if "--useSpinWait" in usage:
        command.append("--useSpinWait")
    if inputs:
        command.append("--loadInputs=" + ",".join("'%s':'%s'" % pair for pair in inputs.items()))
    if shapes:
        command.append("--shapes=" + shape_text(shapes))
    if profile:
        command += ["--exportProfile=" + profile, "--dumpProfile"]
    return command


def times(text):
    """Return [(start, latency)] in seconds of each call, from an ``--exportTimes`` file.

    Starts count from a zero of trtexec's own. The latency is ``latencyMs``: data in, compute, data out. Raises
    ValueError where the file is not one.
    """
    rows = json.loads(text)
    if not isinstance(rows, list):
        raise ValueError("not a list of calls")
    calls = []
    for row in rows:
        starts = [row[name] for name in STARTS if name in row]
        if not starts or "latencyMs" not in row:
            raise ValueError("a call lacks its start or its latency: %s" % sorted(row))
        calls.append((starts[0] / 1e3, row["latencyMs"] / 1e3))
    calls.sort()
    return calls


def profile_rows(text, limit=MAX_OPS):
    """Return rows of ``OpRow`` from an ``--exportProfile`` file, the slowest layers first."""
    entries = json.loads(text)
    calls = next((int(entry["count"]) for entry in entries if "count" in entry), 0)
    rows = [
        {
            "op": "layer",
            "name": entry["name"][:2000],
            "provider": "tensorrt",
            "calls": calls,
            "total_s": entry["timeMs"] / 1e3,
        }
        for entry in entries
        if "name" in entry and "timeMs" in entry
    ]
    rows.sort(key=lambda row: -row["total_s"])
    return rows[:limit]


def errors(output, limit=1500):
    """Return the last lines that trtexec marked as errors, or else its last lines."""
    marked = ERROR_LINE.findall(output)
    text = "; ".join(marked[-5:]) if marked else output.strip()
    return text[-limit:]


def unbound_inputs(output):
    """Return the inputs whose free dimensions trtexec set to 1 of its own accord."""
    return OVERRIDDEN.findall(output)
