"""What a device's runtime can load: chosen before any work starts."""

from __future__ import annotations

from argus_edge.errors import MisfitError, UsageError
from argus_edge.schema.bundle import Precision
from argus_edge.schema.device import RuntimeLimit

RUNTIME_OF_FORMAT = {"onnx": "onnxruntime", "tflite": "litert", "torch": "torch"}
# What is written for a device without a limit: every onnxruntime since 1.14 (2023) loads it.
DEFAULT_OPSET = 18

_ONNXRUNTIME_1_10 = RuntimeLimit(
    runtime="onnxruntime", version="1.10.0", max_opset=15, max_ir=8, missing_precisions=["int4"], source="onnxruntime"
)
_LIMITS: dict[str, list[RuntimeLimit]] = {
    "pi5": [RuntimeLimit(runtime="onnxruntime", version="1.32.0", max_opset=23, max_ir=11)],
    "jetson-nano": [_ONNXRUNTIME_1_10],
}


def device_limits(device: str) -> list[RuntimeLimit]:
    """Return what the runtimes of a device (an inventory entry or a profile) can load."""
    if device not in _LIMITS:
        raise UsageError(f"Unknown device {device!r}.", next_step=f"choose one of: {', '.join(_LIMITS)}")
    return _LIMITS[device]


def choose_opset(device: str | None, file_format: str, precision: Precision, opset: int | None) -> int:
    """Return the ONNX opset to write, after checking that the device can run format and precision at all.

    Raises
    ------
    MisfitError
        The device has no runtime for the format, its runtime lacks the precision, or it loads no such opset.
    """
    if device is None:
        return opset or DEFAULT_OPSET
    runtime = RUNTIME_OF_FORMAT[file_format]
    limits = {limit.runtime: limit for limit in device_limits(device)}
    if runtime not in limits:
        formats = [name for name, needs in RUNTIME_OF_FORMAT.items() if needs in limits]
        raise MisfitError(
            f"{device} has no {runtime}, which {file_format} files need.",
            next_step=f"choose --format {' or '.join(formats)}",
        )
    limit = limits[runtime]
    if precision in limit.missing_precisions:
        raise MisfitError(
            f"{runtime} {limit.version} on {device} has no kernels for {precision}.",
            next_step="choose another --precision, or another device",
        )
    highest = limit.max_opset
    if opset is not None and highest is not None and opset > highest:
        raise MisfitError(
            f"{runtime} {limit.version} on {device} loads opsets up to {highest}, not {opset}.",
            next_step=f"leave out --opset, or give --opset {highest}",
        )
    return opset or min(DEFAULT_OPSET, highest or DEFAULT_OPSET)
