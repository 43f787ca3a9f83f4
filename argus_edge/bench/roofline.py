"""The floor that arithmetic and memory traffic put under a latency (S. Williams et al., Roofline, CACM 52, 2009)."""

from __future__ import annotations

from typing import Literal

from argus_edge.bench.model_types import GPU_PROVIDERS
from argus_edge.devices import profiles
from argus_edge.schema.bench import Roofline
from argus_edge.schema.device import Peak, Profile

# Peaks that hold for a precision; the floor is made of the first that the profile knows. Weights of 4 bits are
# multiplied as int8 at best.
DTYPES = {
    "fp32": ("fp32",),
    "fp16": ("fp16",),
    "bf16": ("bf16", "fp16"),
    "int8": ("int8",),
    "int8-static": ("int8",),
    "int4": ("int4", "int8"),
}
EXPLANATIONS = (
    "fewer products than counted (Winograd convolutions, work that the runtime optimised away), "
    "a lower precision than the file's (fp16 kernels), a clock above the one assumed, or a wrong count of MACs"
)


def roofline(
    *,
    profile: Profile,
    macs: float | None,
    traffic_bytes: float | None,
    precision: str | None,
    provider: str,
    threads: int | None,
    clock_khz: float | None,
    mode: str | None,
    p50_s: float | None,
) -> Roofline:
    """Compare a latency with the least that the board's peaks allow.

    Parameters
    ----------
    profile
        With peaks in 1e9 MAC/s and bandwidth in bytes/s.
    macs, traffic_bytes
        Of one call: multiply-accumulates; bytes of weights, inputs and outputs.
    precision, provider, threads
        What ran; threads None: all cores.
    clock_khz
        Measured during the window; None: the peak's own clock is assumed.
    mode
        Power mode as the device reports it.
    p50_s
        Measured median, seconds.

    Returns
    -------
    Roofline
        With a reason in place of a floor where no peak is known.
    """
    if macs is None:
        return Roofline(reason="the MACs of this model are not known")
    unit = "gpu" if provider in GPU_PROVIDERS else "cpu"
    wanted = DTYPES.get(precision or "fp32", ())
    peak = next(
        (peak for dtype in wanted for peak in profiles.peaks(profile, unit=unit, dtype=dtype, mode=mode)),
        None,
    )
    if peak is None:
        reason = f"no known {precision or 'fp32'} peak of the {unit} in the profile {profile.name}"
        return Roofline(macs=macs, bytes=traffic_bytes, reason=reason)
    rate, said = _scaled(peak, threads, clock_khz)
    compute_s = macs / rate
    bandwidth = profiles.bandwidth_bytes_s(profile, mode)
    memory_s = traffic_bytes / bandwidth if traffic_bytes and bandwidth else None
    floor_s = max(compute_s, memory_s or 0.0)
    share = floor_s / p50_s if p50_s else None
    bound: Literal["compute", "memory"] = "memory" if memory_s is not None and memory_s > compute_s else "compute"
    warning = None
    if share is not None and share > 1:
        cached = "weights that stay in the cache between calls, " if bound == "memory" else ""
        warning = f"faster than the {bound} floor of {floor_s * 1e3:.3g} ms; possible causes: {cached}{EXPLANATIONS}"
    return Roofline(
        floor_s=floor_s,
        compute_s=compute_s,
        memory_s=memory_s,
        bound=bound,
        share=share,
        macs=macs,
        bytes=traffic_bytes,
        peak=said,
        warning=warning,
    )


def _scaled(peak: Peak, threads: int | None, clock_khz: float | None) -> tuple[float, str]:
    """Return the peak in MAC/s at the threads and clock that ran, and how it came about in words."""
    rate = peak.gmacs * 1e9
    said = f"{peak.gmacs:g} GMAC/s {peak.dtype} on the {peak.unit}"
    if peak.unit == "cpu" and threads and peak.cores and threads < peak.cores:
        rate *= threads / peak.cores
        said += f" x {threads}/{peak.cores} cores"
    if peak.unit == "cpu" and clock_khz and peak.max_clock_khz:
        rate *= clock_khz / peak.max_clock_khz
        said += f" x {clock_khz / 1e6:.2f}/{peak.max_clock_khz / 1e6:.2f} GHz"
    if peak.mode:
        said += f", mode {peak.mode}"
    return rate, f"{said} ({peak.source})"
