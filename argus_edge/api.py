"""The verbs of the command line as functions; what they need is imported when they are called."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from argus_edge.bench.request import How
    from argus_edge.bench.watching import Listener
    from argus_edge.schema.bench import BenchReport

__all__ = ["bench"]


def bench(
    model: str | Path | None = None,
    *,
    device: str = "local",
    meter: str | Path | None = None,
    listener: Listener | None = None,
    **how: Unpack[How],
) -> BenchReport:
    """Time a model on a device and return the report, which is recorded as well.

    Parameters
    ----------
    model
        A bundle's folder, a ``.onnx``, ``.tflite`` or torch file; None: ResNet-50 of the onnx package.
    device
        ``"local"``, an entry of the inventory, or ``user@host``.
    meter
        Path of a power meter's CSV.
    listener
        Told what happens; see :class:`argus_edge.bench.watching.Listener`.
    **how
        As the options of ``argus-edge bench``; see :class:`argus_edge.bench.request.How`.

    Raises
    ------
    ArgusError
        Each with what happened, where, and the next step; a run that failed raises after it was recorded.
    """
    from argus_edge.bench.drive import bench as bench_on
    from argus_edge.bench.drive import prepare
    from argus_edge.bench.request import make_request, meter_reader
    from argus_edge.devices.inventory import Inventory
    from argus_edge.store.records import Store

    request = make_request(str(model) if model is not None else None, **how)
    outcome = bench_on(prepare(request), Inventory().get(device), Store(), listener=listener, meter=meter_reader(meter))
    if outcome.error is not None:
        raise outcome.error
    return outcome.report
