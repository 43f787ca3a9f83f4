"""The verbs of the command line as functions; what they need is imported when they are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argus_edge.bench.watching import Listener
    from argus_edge.schema.bench import BenchReport

__all__ = ["bench"]


def bench(
    model: str | Path | None = None,
    *,
    device: str = "local",
    runtime: str = "auto",
    provider: str | None = None,
    scenario: str = "single-stream",
    duration: float | None = None,
    runs: int = 1,
    warmup: int | None = None,
    batch: int | None = None,
    threads: int | None = None,
    fps: float | None = None,
    latency_bound: float | None = None,
    qps: float | None = None,
    streams: int | None = None,
    shapes: Sequence[str] = (),
    input_file: str | Path | None = None,
    profile_ops: bool = False,
    energy: bool = False,
    labels: Mapping[str, str] | None = None,
    background: Sequence[str] = (),
    meter: str | Path | None = None,
    listener: Listener | None = None,
) -> BenchReport:
    """Time a model on a device and return the report, which is recorded as well.

    Parameters
    ----------
    model
        A bundle's folder, a ``.onnx``, ``.tflite`` or torch file; None: ResNet-50 of the onnx package.
    device
        ``"local"``, an entry of the inventory, or ``user@host``.
    runtime, provider, scenario, runs, warmup, batch, threads, fps, qps, streams
        As the options of ``argus-edge bench``.
    profile_ops, energy, background, labels
        As the options of ``argus-edge bench``.
    duration, latency_bound
        Seconds.
    shapes
        ``"image=1x3x224x224"`` or ``"batch=1"``.
    input_file, meter
        Paths of an ``.npz`` with inputs and of a power meter's CSV.
    listener
        Told what happens; see :class:`argus_edge.bench.watching.Listener`.

    Raises
    ------
    ArgusError
        Each with what happened, where, and the next step; a run that failed raises after it was recorded.
    """
    from argus_edge.bench.drive import Request, prepare
    from argus_edge.bench.drive import bench as bench_on
    from argus_edge.bench.energy import Meter, read_meter
    from argus_edge.bench.inputs import parse_shapes
    from argus_edge.bench.plan import Options, scenario_of
    from argus_edge.devices.inventory import Inventory
    from argus_edge.schema.agent import Warmup
    from argus_edge.store.records import Store

    options = Options(
        runtime=runtime,
        provider=provider,
        scenario=scenario_of(
            scenario,
            duration=duration,
            batch=batch,
            fps=fps,
            latency_bound_s=latency_bound,
            qps=qps,
            streams=streams,
        ),
        warmup=Warmup(fixed_calls=warmup),
        threads=threads,
        runs=runs,
        batch=batch,
        profile_ops=profile_ops,
        energy=energy,
        background=tuple(background),
        labels=dict(labels or {}),
    )
    request = Request(
        model=str(model) if model is not None else None,
        options=options,
        shapes=parse_shapes(shapes),
        input_file=Path(input_file) if input_file is not None else None,
    )
    log = Path(meter) if meter is not None else None
    read: Any = None
    if log is not None:
        read_meter(log)

        def read() -> Meter:
            return read_meter(log)

    outcome = bench_on(prepare(request), Inventory().get(device), Store(), listener=listener, meter=read)
    if outcome.error is not None:
        raise outcome.error
    return outcome.report
