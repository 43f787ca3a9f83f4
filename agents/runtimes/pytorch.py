"""PyTorch: TorchScript files and exported programs, on the CPU or on CUDA (each call ends synchronised)."""

from ..home import Fault
from .base import BaseRuntime

MAX_OPS = 200


def flatten(value, name="output"):
    """Return {name: tensor} of a model's result: a tensor, or tuples and dicts of them."""
    if isinstance(value, dict):
        return {key: item for name, entry in value.items() for key, item in flatten(entry, str(name)).items()}
    if isinstance(value, (tuple, list)):
        return {key: item for k, entry in enumerate(value) for key, item in flatten(entry, "%s_%d" % (name, k)).items()}
    return {name: value} if hasattr(value, "detach") else {}


class Runtime(BaseRuntime):
    """A loaded module."""

    formats = ("torchscript", "exported")
    providers = ("cpu", "cuda")

    def import_library(self):
        """Import torch; no gradients in this process from here on."""
        import torch

        self._torch = torch
        if self.threads:
            torch.set_num_threads(self.threads)
        self._inference = torch.inference_mode() if hasattr(torch, "inference_mode") else torch.no_grad()
        self._inference.__enter__()
        return torch.__version__

    def load(self):
        """Load the module onto its device; without CUDA it is the CPU, and that is said."""
        torch = self._torch
        self._device = "cpu"
        if self.provider == "cuda":
            if torch.cuda.is_available():
                self._device = "cuda"
            else:
                self.figures["provider_fell_back"] = True
                self.figures["provider_detail"] = "cuda was asked for; torch %s sees no CUDA device" % torch.__version__
        self.figures["providers_used"] = [self._device]
        if self.part["format"] == "torchscript":
            self._module = torch.jit.load(self.model, map_location=self._device).eval()
            names = [value.debugName().split(".")[0] for value in self._module.graph.inputs()]
            self._positional, self._keywords = names[1:], []
        else:
            program = torch.export.load(self.model)
            if self._device == "cuda":
                from torch.export.passes import move_to_device_pass

                program = move_to_device_pass(program, self._device)
            keywords = (program.example_inputs or ((), {}))[1]
            names = [name for name in program.graph_signature.user_inputs if isinstance(name, str)]
            self._keywords = list(keywords)
            self._positional = names[: len(names) - len(self._keywords)] if keywords else names
            try:
                # A guard says which branch the tracer took ("not 1"), and would refuse a decoder's empty past; the
                # axes' ranges stay checked, and parity finds what differs.
                self._module = program.module(check_guards=False)
            except TypeError:  # torch before 2.9 has none
                self._module = program.module()
        self._synchronise()

    def _synchronise(self):
        if self._device == "cuda":
            self._torch.cuda.synchronize()

    def _tensor(self, value):
        """Return an array, or an output of an earlier call, as a tensor on the device."""
        return (value if hasattr(value, "detach") else self._torch.from_numpy(value)).to(self._device)

    def _arguments(self, inputs):
        """Return (positional, keyword) tensors on the device: by the bundle's names in their order, else the module's.

        Arrays that are named after neither are taken in the order in which they are given.
        """
        tensors = {name: self._tensor(value) for name, value in inputs.items()}
        names = self._positional + self._keywords
        known = self.part.get("input_names") or []
        if len(known) == len(names) and set(known) == set(tensors):
            values = [tensors[name] for name in known]
        elif set(names) <= set(tensors):
            values = [tensors[name] for name in names]
        elif len(tensors) == len(names):
            values = list(tensors.values())
        else:
            raise Fault("input-rejected", "the model takes %s, given were %s" % (known or names, sorted(tensors)))
        count = len(self._positional)
        return values[:count], dict(zip(self._keywords, values[count:]))

    def bind(self, inputs):
        """Return the call; on CUDA it waits until the device has finished."""
        module = self._module
        positional, keywords = self._arguments(inputs)
        if self._device == "cuda":
            synchronise = self._torch.cuda.synchronize

            def call():
                module(*positional, **keywords)
                synchronise()

            return call
        if keywords:
            return lambda: module(*positional, **keywords)
        return lambda: module(*positional)

    def function(self):
        """Return the module by names; its outputs stay on the device, under the names that the part has for them."""
        names = self.part.get("outputs") or []

        def call(inputs):
            positional, keywords = self._arguments(inputs)
            found = flatten(self._module(*positional, **keywords))
            return dict(zip(names, found.values())) if len(names) == len(found) else found

        return call

    def array(self, value):
        """Return a tensor as an array; waits for the device."""
        return value.cpu().numpy()

    def profile(self, inputs, calls):
        """Run under torch's profiler; self times, the device's where there is one."""
        from torch import profiler

        call = self.bind(inputs)
        activities = [profiler.ProfilerActivity.CPU]
        if self._device == "cuda":
            activities.append(profiler.ProfilerActivity.CUDA)
        with profiler.profile(activities=activities) as profile:
            for _ in range(calls):
                call()
        rows = []
        for event in profile.key_averages():
            micros = event.self_cpu_time_total
            if self._device == "cuda":
                # Named self_cuda_time_total before torch 2.4.
                micros = getattr(event, "self_device_time_total", None) or getattr(event, "self_cuda_time_total", 0)
            rows.append(
                {"op": event.key[:128], "provider": self._device, "calls": event.count, "total_s": micros / 1e6}
            )
        rows.sort(key=lambda row: -row["total_s"])
        return rows[:MAX_OPS]

    def device_peak(self):
        """Return the most that torch's allocator held on the device."""
        return int(self._torch.cuda.max_memory_reserved()) if self._device == "cuda" else None
