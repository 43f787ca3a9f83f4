"""Runtimes: what executes a model. A new one is a new module with a class ``Runtime`` and one line here."""

from importlib import import_module

MODULES = {
    "onnxruntime": "onnx_runtime",
    "litert": "litert",
    "torch": "pytorch",
    "tensorrt": "tensor_rt",
    "server": "server",
    "null": "null",
}


def load(part, folder):
    """Return the runtime that a part asks for; its library is not imported yet."""
    module = "pipeline" if part.get("pipeline") else MODULES[part["runtime"]]
    return import_module("." + module, __name__).Runtime(part, folder)
