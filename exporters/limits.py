"""What a device's runtime can load: looked up before any work starts."""

from __future__ import annotations

from argus_edge.errors import MisfitError, UsageError
from argus_edge.schema.bundle import Precision
from argus_edge.schema.device import Profile, RuntimeLimit

RUNTIME_OF_FORMAT = {"onnx": "onnxruntime", "tflite": "litert", "torch": "torch"}
# What is written for a device without a limit: every onnxruntime since 1.14 (2023) loads it, and torch's newer exporter
# translates to it.
DEFAULT_OPSET = 18
# What torch's exporters write.
OLDEST_OPSET, NEWEST_OPSET = 9, 23


def runtime_limit(profile: Profile, file_format: str, precision: Precision) -> RuntimeLimit:
    """Return the limits of the runtime that a format needs, after checking that the device has it.

    Raises
    ------
    MisfitError
        The device has no runtime for the format, or the runtime lacks the precision.
    """
    runtime = RUNTIME_OF_FORMAT[file_format]
    limits = {limit.runtime: limit for limit in profile.runtimes}
    if runtime not in limits:
        formats = [name for name, needs in RUNTIME_OF_FORMAT.items() if needs in limits]
        raise MisfitError(
            f"{profile.title} has no {runtime}, which {file_format} files need.",
            where=profile.name,
            next_step=f"choose --format {' or '.join(formats)}" if formats else "choose another device",
        )
    limit = limits[runtime]
    if precision in limit.missing_precisions:
        raise MisfitError(
            f"{runtime} {limit.version or ''} on {profile.title} has no kernels for {precision}.",
            where=profile.name,
            next_step="choose another --precision, or another device",
        )
    return limit


def choose_opset(device: str | None, file_format: str, precision: Precision, opset: int | None) -> int:
    """Return the ONNX opset to write for a device.

    Raises
    ------
    MisfitError
        As from :func:`runtime_limit`, or the runtime loads no such opset.
    UsageError
        An opset that no exporter writes, or 4-bit weights in an old one.
    """
    if opset is not None and not OLDEST_OPSET <= opset <= NEWEST_OPSET:
        raise UsageError(f"No exporter writes opset {opset}.", next_step=f"choose {OLDEST_OPSET} to {NEWEST_OPSET}")
    if file_format == "onnx" and precision == "int4" and opset is not None and opset < DEFAULT_OPSET:
        raise UsageError(
            f"4-bit weights are not written in opset {opset}.",
            next_step=f"leave out --opset, or give --opset {DEFAULT_OPSET} or higher",
        )
    if device is None:
        return opset or DEFAULT_OPSET
    from argus_edge.devices import profiles

    profile = profiles.load_for(device)
    limit = runtime_limit(profile, file_format, precision)
    highest = limit.max_opset
    if opset is not None and highest is not None and opset > highest:
        raise MisfitError(
            f"{limit.runtime} {limit.version or ''} on {profile.title} loads opsets up to {highest}, not {opset}.",
            where=profile.name,
            next_step=f"leave out --opset, or give --opset {highest}",
        )
    return opset or min(DEFAULT_OPSET, highest or DEFAULT_OPSET)
