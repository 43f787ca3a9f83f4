"""From plain options to what is benched: the one list of a bench's options that the command line and Python share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from argus_edge.bench.energy import Meter, read_meter
from argus_edge.bench.inputs import Shapes, parse_shapes
from argus_edge.bench.options import Options, scenario_of
from argus_edge.schema.agent import Warmup

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True)
class Request:
    """What to bench, as the user asked for it.

    Attributes
    ----------
    model
        As typed; None: ResNet-50 of the onnx package.
    options
        How.
    shapes, input_file
        What binds the inputs.
    command
        The command line, for the report.
    """

    model: str | None = None
    options: Options = field(default_factory=Options)
    shapes: Shapes = field(default_factory=Shapes)
    input_file: Path | None = None
    command: str = ""


class How(TypedDict, total=False):
    """How to bench. What is left out has the default of ``argus-edge bench``.

    Attributes
    ----------
    runtime, provider, scenario, runs, warmup, batch, threads, fps, qps, streams, profile_ops, energy
        As the options of the command.
    duration, latency_bound
        Seconds.
    prompt_tokens, output_tokens
        Of a model that writes text; the image's placeholders are part of a bundle's prompt.
    url, images
        Of a server that is driven (runtime ``"server"``): its address on the device, and picture files or ``"WxH"``.
    shapes
        ``"image=1x3x224x224"`` or ``"batch=1"``.
    input_file
        An ``.npz`` with inputs by name.
    labels
        Kept in the report.
    background
        Loads that are part of the set-up.
    """

    runtime: str
    provider: str | None
    scenario: str
    duration: float | None
    runs: int
    warmup: int | None
    batch: int | None
    threads: int | None
    fps: float | None
    latency_bound: float | None
    qps: float | None
    streams: int | None
    prompt_tokens: int | None
    output_tokens: int | None
    url: str | None
    images: Sequence[str]
    shapes: Sequence[str]
    input_file: str | Path | None
    profile_ops: bool
    energy: bool
    labels: Mapping[str, str] | None
    background: Sequence[str]


def make_request(model: str | None, *, command: str = "", **how: Unpack[How]) -> Request:
    """Return what to bench.

    Parameters
    ----------
    model
        As typed; None: ResNet-50 of the onnx package.
    command
        The command line, for the report.
    **how
        See :class:`How`.

    Raises
    ------
    UsageError
        Options that do not go together.
    """
    batch = how.get("batch")
    options = Options(
        runtime=how.get("runtime", "auto"),
        provider=how.get("provider"),
        scenario=scenario_of(
            how.get("scenario", "single-stream"),
            duration=how.get("duration"),
            batch=batch,
            fps=how.get("fps"),
            latency_bound_s=how.get("latency_bound"),
            qps=how.get("qps"),
            streams=how.get("streams"),
        ),
        warmup=Warmup(fixed_calls=how.get("warmup")),
        threads=how.get("threads"),
        runs=how.get("runs", 1),
        batch=batch,
        profile_ops=how.get("profile_ops", False),
        energy=how.get("energy", False),
        background=tuple(how.get("background", ())),
        prompt_tokens=how.get("prompt_tokens"),
        output_tokens=how.get("output_tokens"),
        url=how.get("url"),
        images=tuple(how.get("images", ())),
        labels=dict(how.get("labels") or {}),
    )
    input_file = how.get("input_file")
    return Request(
        model=model,
        options=options,
        shapes=parse_shapes(how.get("shapes", ())),
        input_file=Path(input_file) if input_file is not None else None,
        command=command,
    )


def meter_reader(log: str | Path | None) -> Callable[[], Meter] | None:
    """Return what reads an external meter's log once a run has ended; the log is read now as well, to fail early."""
    if log is None:
        return None
    path = Path(log)
    read_meter(path)
    return lambda: read_meter(path)
