"""ONNX Runtime, from 1.10 (the last for Python 3.6) on."""

import glob
import json
import os

from ..home import Fault
from .base import BaseRuntime

PROVIDERS = {
    "cpu": ["CPUExecutionProvider"],
    "cuda": ["CUDAExecutionProvider", "CPUExecutionProvider"],
    "tensorrt": ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"],
    "xnnpack": ["XnnpackExecutionProvider", "CPUExecutionProvider"],
}
MAX_OPS = 200
MAX_PROFILE_BYTES = 256 << 20


def short_name(provider):
    """Return a provider's name as the command line spells it: CUDAExecutionProvider -> cuda."""
    return provider.replace("ExecutionProvider", "").lower()


def node_events(profile):
    """Return (op, name, provider, seconds) of each operator's run in a profile: trace events as ORT writes them."""
    rows = []
    for event in profile:
        args = event.get("args") or {}
        if event.get("cat") == "Node" and str(event.get("name", "")).endswith("_kernel_time"):
            name = str(event["name"])[: -len("_kernel_time")]
            rows.append((str(args.get("op_name", "")), name, str(args.get("provider", "")), event.get("dur", 0) / 1e6))
    return rows


def op_rows(events, limit=MAX_OPS):
    """Return operators by total time, the slowest first; what is beyond ``limit`` is summed up in a last row."""
    totals = {}
    for op, name, provider, seconds in events:
        row = totals.setdefault((op, name, provider), [0, 0.0])
        row[0] += 1
        row[1] += seconds
    rows = [
        {"op": op[:128], "name": name[:256], "provider": short_name(provider)[:128], "calls": calls, "total_s": total}
        for (op, name, provider), (calls, total) in totals.items()
    ]
    rows.sort(key=lambda row: -row["total_s"])
    if len(rows) > limit:
        rest = rows[limit:]
        calls, total = sum(row["calls"] for row in rest), sum(row["total_s"] for row in rest)
        rows[limit:] = [{"op": "(others)", "name": "%d more" % len(rest), "calls": calls, "total_s": total}]
    return rows


def placement(events):
    """Return {provider: number of nodes} from a profile's events."""
    nodes = {}
    for _, name, provider, _ in events:
        nodes.setdefault(short_name(provider), set()).add(name)
    return {provider: len(names) for provider, names in nodes.items()}


class Runtime(BaseRuntime):
    """An inference session."""

    formats = ("onnx",)
    providers = tuple(PROVIDERS)

    def import_library(self):
        """Import onnxruntime."""
        import onnxruntime

        self._library = onnxruntime
        return onnxruntime.__version__

    def load(self):
        """Make the session; where an accelerator was asked for, the first call is profiled to see what it got."""
        self._session = self._open(profiled=self.provider != "cpu")
        registered = self._session.get_providers()
        self.figures["providers_used"] = [short_name(name) for name in registered]
        if PROVIDERS[self.provider][0] not in registered:
            self._fell_back("this onnxruntime offers " + ", ".join(self._library.get_available_providers()))
            read_profile(self._session.end_profiling())

    def _fell_back(self, why):
        self.figures["provider_fell_back"] = True
        self.figures["provider_detail"] = ("%s was asked for; %s" % (self.provider, why))[:2000]

    def _open(self, profiled=False):
        library = self._library
        options = library.SessionOptions()
        # What the runtime would print is the supervisor's to drain; errors are raised anyway.
        options.log_severity_level = 3
        if self.threads:
            options.intra_op_num_threads = self.threads
            options.inter_op_num_threads = 1
        if profiled:
            options.enable_profiling = True
            options.profile_file_prefix = os.path.join(self.folder, ".ort-profile-%d" % os.getpid())
        wanted = PROVIDERS[self.provider]
        available = library.get_available_providers()
        providers = [name for name in wanted if name in available]
        settings = [self._settings(name) for name in providers]
        return library.InferenceSession(self.model, options, providers=providers, provider_options=settings)

    def _settings(self, provider):
        if provider == "XnnpackExecutionProvider" and self.threads:
            return {"intra_op_num_threads": str(self.threads)}
        if provider == "TensorrtExecutionProvider" and self.options.get("fp16"):
            return {"trt_fp16_enable": "True"}
        return {}

    def bind(self, inputs):
        """Return ``session.run`` on the inputs, all outputs."""
        run, feed = self._session.run, self._feed(self._session, inputs)
        return lambda: run(None, feed)

    def after_first(self):
        """Read which nodes the accelerator took, from the profile of the first call."""
        if self.provider == "cpu" or self.figures.get("provider_fell_back"):
            return
        nodes = placement(node_events(read_profile(self._session.end_profiling())))
        self.figures["providers_used"] = sorted(nodes, key=lambda name: -nodes[name]) or [self.provider]
        detail = ", ".join("%s: %d nodes" % (name, count) for name, count in sorted(nodes.items()))
        self.figures["provider_detail"] = detail[:2000]
        if nodes and self.provider not in nodes:
            self._fell_back("it took no node; " + detail)

    def _feed(self, session, inputs):
        names = [value.name for value in session.get_inputs()]
        missing = [name for name in names if name not in inputs]
        if missing:
            raise Fault("input-rejected", "no array was given for the input(s) %s" % ", ".join(missing))
        return {name: inputs[name] for name in names}

    def function(self):
        """Return ``session.run`` by names: arrays in, arrays out."""
        run = self._session.run
        wanted = [value.name for value in self._session.get_inputs()]
        names = [value.name for value in self._session.get_outputs()]

        def call(inputs):
            try:
                feed = {name: inputs[name] for name in wanted}
            except KeyError:
                feed = self._feed(self._session, inputs)
            return dict(zip(names, run(names, feed)))

        return call

    def profile(self, inputs, calls):
        """Run under ONNX Runtime's own profiler, in a session of its own."""
        session = self._open(profiled=True)
        feed = self._feed(session, inputs)
        for _ in range(calls):
            session.run(None, feed)
        return op_rows(node_events(read_profile(session.end_profiling())))


def read_profile(path):
    """Return the trace events of a profile file, and remove it and its siblings."""
    try:
        with open(path) as file:
            text = file.read(MAX_PROFILE_BYTES)
    finally:
        for name in glob.glob(glob.escape(path) + "*"):
            os.unlink(name)
    return json.loads(text)
