"""The bench report: device, set-up, every raw sample, figures with intervals, memory, energy, validity, roofline."""

from __future__ import annotations

import base64
import binascii
from typing import Any, ClassVar, Literal

from pydantic import Field, FiniteFloat, model_validator

from argus_edge.schema.agent import (
    AgentFault,
    DeviceFacts,
    MemoryFigures,
    OpRow,
    ParityFigures,
    Scenario,
    SeriesPoint,
    State,
    Warmup,
)
from argus_edge.schema.base import Artifact, Model

MAX_SAMPLES = 16_000_000
ITEM_BYTES = {"<u4": 4, "<u8": 8, "<f8": 8}


class EncodedArray(Model):
    """A one-dimensional array as base64 of its little-endian bytes; see :func:`argus_edge.bench.samples.decode`."""

    dtype: Literal["<u4", "<u8", "<f8"]
    unit: Literal["ns", "us", "s", "tokens"]
    count: int = Field(ge=0, le=MAX_SAMPLES)
    data: str = Field(repr=False, max_length=MAX_SAMPLES * 11)

    @model_validator(mode="after")
    def _length_holds(self) -> EncodedArray:
        try:
            size = len(base64.b64decode(self.data, validate=True))
        except (binascii.Error, ValueError) as error:
            raise ValueError("data is not base64") from error
        if size != self.count * ITEM_BYTES[self.dtype]:
            raise ValueError(f"data holds {size} bytes, not {self.count} x {ITEM_BYTES[self.dtype]}")
        return self


class Estimate(Model):
    """A figure with its interval. ``value`` is None where it is withheld, and ``reason`` says why."""

    value: FiniteFloat | None
    low: FiniteFloat | None = None
    high: FiniteFloat | None = None
    level: float = 0.95
    n: int = Field(default=0, description="Samples.")
    n_eff: float | None = Field(default=None, description="Effective samples under autocorrelation.")
    method: str = ""
    reason: str | None = None
    needed_s: float | None = Field(
        default=None, description="How long a run would be needed to show a withheld figure."
    )


class Figures(Model):
    """Figures of one timed window. Times in seconds."""

    count: int
    window_s: float
    p50: Estimate
    p90: Estimate
    p95: Estimate
    p99: Estimate
    mean_s: float | None
    min_s: float | None
    max_s: float | None
    throughput: Estimate = Field(description="Samples (not calls) a second.")
    drift: float | None = Field(
        default=None, description="Median of the last quarter over the median of the first, minus 1."
    )
    hot_p50_s: float | None = Field(default=None, description="Median of the last quarter of the window.")
    cold_p50_s: float | None = Field(default=None, description="Median of the first quarter of the window.")
    touched_by_sensors: int = Field(
        default=0, description="Calls that a sensor reading overlapped; counted, never removed."
    )
    on_time_share: float | None = Field(
        default=None, description="paced: share of frames done before the next was due."
    )
    held_qps: float | None = Field(default=None, description="server: highest arrival rate that held the bound.")


class StepFigures(Model):
    """One step of a unit of work, timed within it: a tower, the vision, reading the prompt, writing after it."""

    name: str
    p50: Estimate = Field(description="Seconds.")
    samples: EncodedArray = Field(description="One for each call, in order.")


class Preprocessing(Model):
    """From a picture to the model's input, timed apart from the unit of work."""

    p50: Estimate = Field(description="Seconds a picture.")
    samples: EncodedArray
    description: str = Field(description="What was done, with what, and where.")


class Generation(Model):
    """Figures of writing text. Times in seconds."""

    prompt_tokens: int | None = Field(description="Image placeholders included; None where a server does not tell.")
    image_tokens: int | None = None
    output_tokens: int | None = Field(description="Written in each call; of a server the median.")
    ttft: Estimate = Field(description="From the call's start to the first token: vision and prefill are in it.")
    inter_token: Estimate = Field(description="Between two tokens, after the first.")
    tokens_per_s: Estimate = Field(description="After the first token.")
    prefill_tokens_per_s: Estimate | None = Field(default=None, description="Tokens of the prompt a second of prefill.")
    kv_cache_bytes: int | None = Field(default=None, description="Keys and values at the end of a call, measured.")
    ttft_samples: EncodedArray
    inter_token_samples: EncodedArray
    notes: list[str] = Field(default_factory=list)


class Energy(Model):
    """Energy of the timed window."""

    source: str
    coverage: str = Field(
        description="What the source covers; energies of different coverage are never ranked together."
    )
    mean_w: float | None = None
    idle_w: float | None = None
    joules_per_inference: float | None = None
    reason: str | None = None


class ValidityCause(Model):
    """One reason for which a run is not valid, or cannot be told to be."""

    code: Literal[
        "throttled",
        "throttle-unknown",
        "under-voltage",
        "clock-limited",
        "drifting",
        "contended",
        "swapping",
        "provider-fell-back",
        "emulated",
        "not-steady",
        "parity",
        "incomplete",
        "overheated",
    ]
    detail: str
    remedy: str | None = None
    from_s: float | None = Field(default=None, description="Where in the window it began, seconds.")


class Validity(Model):
    """Whether a measurement may pass a gate. ``valid`` is None for "cannot tell"."""

    valid: bool | None
    causes: list[ValidityCause] = Field(default_factory=list)


class Roofline(Model):
    """The floor that arithmetic and memory traffic put under the latency."""

    floor_s: float | None = None
    compute_s: float | None = None
    memory_s: float | None = None
    bound: Literal["compute", "memory"] | None = None
    share: float | None = Field(default=None, description="floor / measured p50; above 1 the warning explains.")
    macs: float | None = None
    bytes: float | None = None
    peak: str | None = Field(default=None, description="Which peak, scaled to which threads and clock, and its source.")
    warning: str | None = None
    reason: str | None = Field(default=None, description="Why there is none.")


class MemoryHeadline(Model):
    """The memory figure that enters E and budgets, and its kind."""

    bytes: int | None
    memory_kind: Literal["peak-rss", "system-delta", "device-peak", "server-tree"] | None = None


class Measurement(Model):
    """One part: a component (or the whole, end to end), one repeat."""

    component: str
    repeat: int = 0
    state: State
    error: AgentFault | None = None
    unit_of_work: str = Field(description="What one sample is, e.g. 'one call, batch 1'; equal across a comparison.")
    runtime: str
    runtime_version: str | None = None
    provider_requested: str | None = None
    providers_used: list[str] = Field(default_factory=list)
    provider_fell_back: bool = False
    threads: int | None = None
    batch: int = 1
    import_s: float | None = None
    build_s: float | None = None
    load_s: float | None = None
    first_s: float | None = None
    warmup_calls: int = 0
    warmup_s: float = 0.0
    warmup_steady: bool | None = None
    window_wall: float | None = None
    stopped_by: str | None = None
    latency: EncodedArray | None = None
    start: EncodedArray | None = Field(default=None, description="Start of each call after the window's start.")
    figures: Figures | None = None
    steps: list[StepFigures] = Field(default_factory=list, description="Of a whole unit of work, in order.")
    generation: Generation | None = None
    preprocessing: Preprocessing | None = None
    memory: MemoryFigures = Field(default_factory=MemoryFigures)
    memory_headline: MemoryHeadline
    energy: Energy | None = None
    series: list[SeriesPoint] = Field(
        default_factory=list, description="t is after the window's start, seconds; before it negative."
    )
    vendor_before: dict[str, Any] = Field(default_factory=dict)
    vendor_after: dict[str, Any] = Field(default_factory=dict)
    other_load: list[str] = Field(default_factory=list)
    parity: ParityFigures | None = None
    roofline: Roofline | None = None
    ops: list[OpRow] = Field(default_factory=list)
    validity: Validity
    notes: list[str] = Field(default_factory=list)


class BenchedModel(Model):
    """What was timed."""

    name: str
    sha256: str | None = Field(description="Of the file, or of the bundle's manifest; None for the null runtime.")
    format: str
    precision: str | None = None
    bytes: int | None = None
    is_bundle: bool = False
    family: str | None = None
    task: str | None = None
    random_weights: bool = False
    constant_weights: bool = False
    source_id: str | None = None
    params: int | None = None
    macs: float | None = Field(default=None, description="Of one unit of work.")


class BenchedDevice(Model):
    """Where it was timed."""

    name: str
    profile: str
    facts: DeviceFacts
    labels: dict[str, str] = Field(default_factory=dict)


class Setup(Model):
    """How it was timed."""

    scenario: Scenario
    warmup: Warmup
    runtime: str
    provider: str
    threads: int | None
    repeats: int = 1
    background: list[str] = Field(default_factory=list)
    inputs: str = Field(description="Where the inputs came from: golden, file, generated (with the seed).")
    shapes: dict[str, list[int]] = Field(default_factory=dict)
    command: str = Field(default="", description="The command line, without paths' folders.")


class BenchReport(Artifact):
    """What `argus-edge bench` writes."""

    KIND: ClassVar[str] = "bench"
    VERSION: ClassVar[int] = 1

    run: str
    device: BenchedDevice
    model: BenchedModel
    setup: Setup
    measurements: list[Measurement]
    validity: Validity
    summary: dict[str, Estimate] = Field(
        default_factory=dict,
        description="Run-to-run figures over repeats of the headline component: p50, p90, p95, p99, throughput; "
        "where it writes text ttft, inter_token, tokens_per_s.",
    )
    headline: str = Field(description="Component that stands for the model: 'end-to-end' or the only component.")
    labels: dict[str, str] = Field(default_factory=dict)
    notes: list[str] = Field(default_factory=list)
