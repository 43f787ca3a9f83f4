"""TensorRT: engines are built on the board and kept; and run by its Python package, or by trtexec."""

import contextlib
import hashlib
import os
import signal
import subprocess
import time

from .. import system
from ..home import Fault
from . import trtexec
from .base import BaseRuntime

ENGINES = "engines"
FLAGS = ("fp16", "int8", "best", "noTF32")
BUILD_LIMIT_S = 7200
WATCH_S = 0.5
MAX_LOG_BYTES = 16 << 20


def file_sha256(path):
    """Return a file's hash."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for chunk in iter(lambda: file.read(1 << 20), b""):
            digest.update(chunk)
    return digest.hexdigest()


def gpu_name(root="/"):
    """Return what names the GPU: by NVIDIA's driver, or a Jetson's device tree; else "unknown"."""
    folder = os.path.join(root, "proc/driver/nvidia/gpus")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        for line in system.read_text(os.path.join(folder, name, "information")).splitlines():
            if line.startswith("Model:"):
                return line.partition(":")[2].strip()
    return system.read_text(os.path.join(root, "proc/device-tree/model")).strip("\0\n ") or "unknown"


def engine_key(model_sha256, version, gpu, flags, shapes):
    """Return the name of an engine in the cache: it holds for one model, TensorRT, GPU, set of flags and shapes."""
    parts = [model_sha256, version, gpu, ",".join(sorted(flags)), trtexec.shape_text(shapes)]
    return hashlib.sha256("\n".join(parts).encode("utf-8")).hexdigest()


def die_with_worker():
    """In a child: be killed when the worker is."""
    import ctypes

    from ..worker import PR_SET_PDEATHSIG

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class Runtime(BaseRuntime):
    """An engine.

    Options: ``fp16``, ``int8``, ``best``, ``noTF32`` (true to set trtexec's flag of that name; the Python package
    knows the first two); ``dynamic``, names of inputs with free dimensions, whose shapes are then those of the given
    arrays; ``backend``, "python" or "trtexec" to insist on one.
    """

    formats = ("onnx", "engine")
    providers = ("tensorrt", "cuda")

    def import_library(self):
        """Import the Python package, or find trtexec; return TensorRT's version."""
        wanted = self.options.get("backend")
        self._bindings = self._trtexec = None
        reason = "the job insists on trtexec"
        if wanted != "trtexec":
            try:
                from . import tensorrt_bindings

                self._bindings = tensorrt_bindings.load()
                self._version = self._bindings.version
                return self._version
            except ImportError as error:
                reason = str(error)
        self._trtexec = trtexec.locate() if wanted != "python" else None
        if not self._trtexec:
            raise ImportError("no TensorRT: %s; no trtexec on the PATH or in %s" % (reason, trtexec.PLACES[0]))
        self._usage = self._run([self._trtexec, "--help"], limit_s=60, check=False)[0]
        self._version = trtexec.version(self._usage) or "unknown"
        self.self_timed = True
        return self._version

    def take_inputs(self, inputs):
        """Take the arrays before the engine is built: free dimensions get their shapes from them."""
        self._inputs = inputs
        named = inputs if self._bindings else self.options.get("dynamic") or []
        self._shapes = {name: tuple(inputs[name].shape) for name in named if name in inputs}

    def load(self):
        """Build the engine unless it is in the cache, and load it."""
        flags = [flag for flag in FLAGS if self.options.get(flag)]
        self.figures["providers_used"] = ["tensorrt"]
        if self.part["format"] == "engine":
            self._engine = self.model
        else:
            home = os.path.dirname(os.path.dirname(self.folder))
            key = engine_key(file_sha256(self.model), self._version, gpu_name(), flags, self._shapes)
            self._engine = os.path.join(home, ENGINES, key + ".plan")
            if not os.path.exists(self._engine):
                start = time.perf_counter()
                self._build(flags)
                self.figures["build_s"] = time.perf_counter() - start
        if self._bindings:
            self._context = self._bindings.open_engine(self._engine)

    def _build(self, flags):
        os.makedirs(os.path.dirname(self._engine), mode=0o700, exist_ok=True)
        temporary = "%s.%d.part" % (self._engine, os.getpid())
        try:
            if self._bindings:
                self._bindings.build(self.model, temporary, flags, self._shapes)
            else:
                command = trtexec.build_command(self._trtexec, self._usage, self.model, temporary, flags, self._shapes)
                free = trtexec.unbound_inputs(self._run(command, limit_s=BUILD_LIMIT_S)[0])
                if free:
                    raise Fault("model-rejected", "nobody bound the free dimensions of input(s) %s" % ", ".join(free))
            os.rename(temporary, self._engine)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(temporary)

    def _run(self, command, limit_s, check=True):
        """Run trtexec to its end; return what it printed and its peak RSS. Raises Fault where it failed."""
        log = os.path.join(self.folder, ".trtexec.log")
        peak, end = 0, time.monotonic() + limit_s
        with open(log, "wb") as file:
            streams = {"stdin": subprocess.DEVNULL, "stdout": file, "stderr": subprocess.STDOUT}
            process = subprocess.Popen(command, preexec_fn=die_with_worker, **streams)
        while process.poll() is None:
            peak = max(peak, system.status_bytes(process.pid).get("VmHWM", 0))
            if time.monotonic() > end:
                process.kill()
                process.wait()
                raise Fault("timeout", "trtexec did not end in %d s" % limit_s)
            time.sleep(WATCH_S)
        output = system.read_text(log, MAX_LOG_BYTES)
        if check and process.returncode:
            kind = "out-of-memory" if "out of memory" in output.lower() else "model-rejected"
            raise Fault(kind, "trtexec: " + trtexec.errors(output), exit_status=process.returncode)
        return output, peak

    # ------------------------------------------------------------ under the Python package

    def bind(self, inputs):
        """Return the call: inputs to the device, execution, outputs back, synchronised."""
        return self._context.bind(inputs)

    def infer(self, inputs):
        """Run once."""
        if not self._bindings:
            raise Fault("bad-job", "trtexec gives no outputs: parity needs TensorRT's Python package")
        self._context.bind(inputs)()
        return self._context.outputs()

    def device_peak(self):
        """Return what the device's memory in use has grown by since the engine was loaded, bytes."""
        return self._context.device_bytes() if self._bindings else None

    # ------------------------------------------------------------ under trtexec

    def _command(self, spec, warmup_s, profile=None):
        files = {}
        for name, array in self._inputs.items():
            files[name] = os.path.join(self.folder, ".input-%d" % len(files))
            array.tofile(files[name])
        times = os.path.join(self.folder, ".times")
        arguments = (self._engine, spec, warmup_s, files, self._shapes, times, profile)
        return trtexec.run_command(self._trtexec, self._usage, *arguments), times

    def drive(self, spec, writer, warmup_s):
        """Have trtexec time the engine back to back and fill in its samples; return figures and its peak RSS.

        Its times count from a zero of its own: the last call is taken to have ended when trtexec did.
        """
        command, times = self._command(spec, warmup_s)
        _, peak = self._run(command, limit_s=spec["duration_s"] * 10 + warmup_s + 600)
        calls = trtexec.times(system.read_text(times, 256 << 20))[: writer.capacity]
        if not calls:
            raise Fault("runtime-error", "trtexec recorded no call")
        zero = time.perf_counter() - (calls[-1][0] + calls[-1][1])
        for index, (start, latency) in enumerate(calls):
            writer.starts[index] = zero + start
            writer.ends[index] = zero + start + latency
        note = "timed by trtexec: latency is data in, compute and data out as the GPU's events tell"
        return {"stopped_by": "duration", "notes": [note]}, peak or None

    def profile(self, inputs, calls):
        """List the layers by time."""
        if self._bindings:
            return self._context.profile(inputs, calls)
        profile = os.path.join(self.folder, ".profile")
        self._run(self._command({"duration_s": 1, "min_calls": calls}, 0.2, profile)[0], limit_s=600)
        return trtexec.profile_rows(system.read_text(profile, 64 << 20))
