"""`probe`: facts, runtimes, sensors. Each runtime is imported in a process of its own: a crash is an answer."""

import json
import subprocess
import sys

from . import wire
from .facts import facts
from .runtimes import trtexec
from .sensors import MODULES, open_sensors
from .sensors.files import find, read, under

IMPORT_S = 180.0
MARK = "argus-edge-runtime "
# One RELU over eight floats, packed: only a model that runs shows whether an interpreter fits the numpy beside it.
RELU = (
    "eNqTYGBgCHHzMWZg4GMQYRBg4GHgAIqwAHkMQB4DgwwQKwAxMxAzAjFEFgQhfAMoDVLLA4TcDAxgFTxAUhjMZhDmgZ"
    "sMEQepFQFiCaj5IP06UBqGQYAJiGOgcgwMXGC9IDO4oO7gwaLnwf///0XALoDoh7kZRFdC3ciB5EZcaiuAGAC+ygl4"
)
LITERT = (
    """
import base64, zlib
try:
    from ai_edge_litert import interpreter as module
    package = "ai_edge_litert"
except ImportError:
    from tflite_runtime import interpreter as module
    package = "tflite_runtime"
from importlib import import_module
version = getattr(import_module(package), "__version__", None)
import numpy
try:
    model = module.Interpreter(model_content=zlib.decompress(base64.b64decode("%s")))
    model.allocate_tensors()
    model.set_tensor(model.get_input_details()[0]["index"], numpy.full((1, 8), -1, "float32"))
    model.invoke()
    wrong = model.get_tensor(model.get_output_details()[0]["index"]).any()
except Exception as error:
    sys.exit("%%s %%s fails beside numpy %%s: %%s" %% (package, version, numpy.__version__, error))
if wrong:
    sys.exit("%%s %%s computes wrongly" %% (package, version))
tell(version=version, package=package, providers=["cpu", "xnnpack"])
"""
    % RELU
)
PROGRAMS = {
    "onnxruntime": """
import onnxruntime
names = {"CPU": "cpu", "CUDA": "cuda", "Tensorrt": "tensorrt", "Xnnpack": "xnnpack"}
providers = [name[: -len("ExecutionProvider")] for name in onnxruntime.get_available_providers()]
# Azure calls a service: it is in every wheel, and computes nothing here.
tell(version=onnxruntime.__version__, providers=[names.get(name, name) for name in providers if name != "Azure"])
""",
    "litert": LITERT,
    "torch": """
import torch
tell(version=torch.__version__, providers=["cpu"] + (["cuda"] if torch.cuda.is_available() else []))
""",
    "tensorrt": """
import tensorrt
tell(version=tensorrt.__version__, providers=["tensorrt"])
""",
}
PREAMBLE = (
    """
import json, sys
def tell(**facts):
    try:
        from importlib.metadata import version
        facts["version"] = facts.get("version") or version(facts.get("package", "").replace("_", "-"))
    except Exception:
        pass
    sys.stdout.write("\\n%s%%s\\n" %% json.dumps(facts))
    sys.stdout.flush()
"""
    % MARK
)
MODULES_OF = {
    "onnxruntime": ("onnxruntime",),
    "litert": ("ai_edge_litert", "tflite_runtime"),
    "torch": ("torch",),
    "tensorrt": ("tensorrt",),
}


def probe(system_root, home, runtimes=None):
    """Return what ``argus_edge.schema.agent.DeviceFacts`` describes.

    Parameters
    ----------
    system_root
        Prefix of /sys, /proc, /etc and the vendors' tools: ``/``, or a recorded tree.
    home
        The agent's folder on the device; it need not exist.
    runtimes
        Names of the runtimes to import; None: every one.
    """
    from .start import agent_sha256

    document = facts(system_root, home)
    document.update(wire=wire.WIRE_VERSION, agent_sha256=agent_sha256())
    document["runtimes"] = [runtime(name) for name in PROGRAMS if runtimes is None or name in runtimes]
    sensors = open_sensors(list(MODULES), system_root)
    document["sensors"] = sensors.facts()
    document.update(gpu(system_root, sensors.vendor().get("nvml", {}), document["model"]))
    sensors.close()
    return document


def runtime(name, timeout=IMPORT_S):
    """Return what ``RuntimeFact`` describes: version and providers, or why the runtime cannot be used."""
    import importlib.util

    fact = {"name": name, "version": None, "providers": [], "package": None, "error": None}
    if not any(importlib.util.find_spec(module) for module in MODULES_OF[name]):
        if name == "tensorrt" and trtexec.locate():
            return dict(fact, package="trtexec", version=tensorrt_version("/"), providers=["tensorrt"])
        return dict(fact, error="not installed")
    argv = [sys.executable, "-c", PREAMBLE + PROGRAMS[name]]
    try:
        done = subprocess.run(
            argv, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        return dict(fact, error="did not import within %d s" % timeout)
    told = [line for line in done.stdout.decode("utf-8", "replace").splitlines() if line.startswith(MARK)]
    # What it said counts even if it crashed on the way out.
    if told:
        fact.update(json.loads(told[-1][len(MARK) :]))
        return fact
    if done.returncode < 0:
        return dict(fact, error="died with signal %d when imported" % -done.returncode)
    said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["status %d" % done.returncode]
    return dict(fact, error=said[-1][:1000])


def tensorrt_version(system_root):
    """Return the TensorRT version of the installed headers or library, or None."""
    import re

    for path in find(system_root, "/usr/include/*/NvInferVersion.h") + find(
        system_root, "/usr/include/NvInferVersion.h"
    ):
        numbers = dict(re.findall(r"#define NV_TENSORRT_(MAJOR|MINOR|PATCH) (\d+)", read(path)))
        if len(numbers) == 3:
            return "%(MAJOR)s.%(MINOR)s.%(PATCH)s" % numbers
    return None


def gpu(system_root, nvml, model):
    """Return ``gpu`` and ``cuda``: by NVML, by the driver's files, or a Jetson's by its board."""
    import re

    name, cuda = nvml.get("name"), nvml.get("cuda")
    if not name:
        for path in find(system_root, "/proc/driver/nvidia/gpus/*/information"):
            found = re.search(r"^Model:\s*(.+)$", read(path), re.MULTILINE)
            name = found.group(1).strip() if found else name
    if not name and read(under(system_root, "/etc/nv_tegra_release")):
        name = "integrated GPU of %s" % model
    if not cuda:
        found = re.search(r"\b(\d+\.\d+)", read(under(system_root, "/usr/local/cuda/version.txt")))
        try:
            text = json.loads(read(under(system_root, "/usr/local/cuda/version.json")) or "{}")
            cuda = str(text["cuda"]["version"])[:64]
        except (ValueError, KeyError, TypeError):
            cuda = found.group(1) if found else None
    return {"gpu": name[:256] if name else None, "cuda": cuda}
