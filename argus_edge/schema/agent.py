"""What travels between host and agent: the job, the facts, the journal's events, the result.

The agent is plain Python 3.6 and cannot import this; the tests hold its output against these models. What comes from
a board is untrusted: every text has a length limit, and unknown fields are ignored rather than trusted.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from argus_edge.schema.pipeline import Format, Pipeline, Preparation, ServerTarget

Text = Annotated[str, StringConstraints(max_length=2048)]
Name = Annotated[str, StringConstraints(max_length=128)]
Hash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
RunId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")]
State = Literal["running", "done", "failed", "stopped", "timeout", "lost"]


class Wire(BaseModel):
    """Base of the models that a board fills in."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


# ---------------------------------------------------------------- host -> agent


class Job(BaseModel):
    """One run on one device: a list of parts, each timed in a worker process of its own, one after the other."""

    model_config = ConfigDict(extra="forbid")

    wire: int = 1
    run: RunId
    parts: list[Part] = Field(min_length=1, max_length=1000)
    sensors: list[Name] = Field(
        default_factory=list, description="Names of the agent's sensors that the profile says apply."
    )
    sample_period_s: float = Field(default=1.0, ge=0.1, description="Between sensor samples while timing.")
    wall_limit_s: float = Field(default=3600.0, gt=0, description="The supervisor ends the run after this.")
    memory_limit_bytes: int | None = Field(
        default=None, description="The supervisor ends a worker whose resident memory passes this, mapped files apart."
    )
    background: list[Name] = Field(
        default_factory=list, description="Declared loads (process or unit names) that are part of the set-up."
    )
    holder: Name = Field(default="", description="Who runs this, for the one who finds the device busy: user@host.")
    system_root: Text = Field(default="/", description="Prefix of /sys and /proc reads; a recorded tree in tests.")


class Part(BaseModel):
    """One thing to time: a component, or the whole unit of work; or one repeat of it."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    repeat: int = Field(default=0, ge=0)
    runtime: Literal["onnxruntime", "litert", "torch", "tensorrt", "server", "null"]
    provider: Literal["cpu", "cuda", "tensorrt", "xnnpack"] = "cpu"
    model: Text | None = Field(default=None, description="Path on the device; None for the null runtime.")
    format: Format = "none"
    input_names: list[str] = Field(
        default_factory=list, max_length=4096, description="In the file's order, for runtimes whose files do not tell."
    )
    outputs: list[str] = Field(
        default_factory=list, max_length=4096, description="Names of the outputs, for runtimes whose files do not tell."
    )
    pipeline: Pipeline | None = Field(
        default=None, description="In place of one model: the models of a unit of work; inputs are component/input."
    )
    server: ServerTarget | None = Field(default=None, description="For the runtime server.")
    preprocess: Preparation | None = Field(
        default=None, description="Prepare a picture so many times after the timed window, and time that apart."
    )
    threads: int | None = Field(default=None, ge=1, le=1024, description="None: the runtime's own default.")
    inputs: Text | None = Field(
        default=None, description="Path of an .npz on the device: one array per model input, already of the batch size."
    )
    golden: Text | None = Field(
        default=None,
        description="Path of an .npz with arrays in/<input>/<k> and out/<output>/<k>: run once, compared, not timed.",
    )
    scenario: Scenario
    warmup: Warmup = Field(default_factory=lambda: Warmup())
    profile_ops: bool = Field(
        default=False, description="A pass of its own that lists operators instead of timing calls."
    )
    options: dict[str, Any] = Field(
        default_factory=dict, description="Runtime-specific, e.g. {'fp16': true} for TensorRT, {'work_s': 0} for null."
    )


class Scenario(BaseModel):
    """How calls are issued, in MLPerf LoadGen's sense, with two of our own (paced, soak)."""

    model_config = ConfigDict(extra="forbid")

    name: Literal["single-stream", "multi-stream", "offline", "server", "paced", "soak"] = "single-stream"
    duration_s: float = Field(default=10.0, gt=0, le=86_400)
    min_calls: int = Field(default=64, ge=1, description="Go on past the duration until so many calls are done.")
    max_calls: int | None = Field(default=None, ge=1)
    max_duration_s: float | None = Field(
        default=None, gt=0, description="Ends the window even if min_calls is not reached."
    )
    batch: int = Field(default=1, ge=1)
    streams: int = Field(default=8, ge=1, description="multi-stream: samples per query.")
    fps: float = Field(default=30.0, gt=0, description="paced: frames a second.")
    latency_bound_s: float | None = Field(
        default=None, gt=0, description="server: the 99th percentile must stay within this."
    )
    qps: float | None = Field(
        default=None, gt=0, description="server: a fixed arrival rate; None searches the highest that holds the bound."
    )
    seed: int = 1


class Warmup(BaseModel):
    """Warm-up goes on until steady: the medians of the last three windows agree within 5 %."""

    model_config = ConfigDict(extra="forbid")

    min_calls: int = Field(default=5, ge=0)
    max_s: float = Field(default=30.0, ge=0)
    fixed_calls: int | None = Field(default=None, ge=0, description="--warmup N: exactly so many calls instead.")


# ---------------------------------------------------------------- agent -> host: facts


class RuntimeFact(Wire):
    """A runtime on the device."""

    name: Name
    version: Name | None = None
    providers: list[Name] = Field(default_factory=list, max_length=64)
    package: Name | None = Field(default=None, description="ai_edge_litert or tflite_runtime for litert.")
    error: Text | None = Field(
        default=None, description="Why it cannot be used, e.g. 'not installed', 'died with signal 11 when imported'."
    )


class SensorFact(Wire):
    """A sensor of the agent and whether it gives anything on this device."""

    name: Name
    available: bool
    detail: Text = ""


class DeviceFacts(Wire):
    """What `device probe` finds. Everything unknown is None, never guessed."""

    wire: int
    agent_sha256: Hash | None = None
    hostname: Name = ""
    model: Text | None = Field(default=None, description="Device tree model, DMI product name, or None.")
    arch: Name = Field(description="uname -m")
    emulated: bool = False
    emulation_detail: Text | None = None
    virtual_machine: bool | None = None
    os: Text | None = Field(default=None, description="PRETTY_NAME of os-release.")
    kernel: Text | None = None
    firmware: Text | None = Field(
        default=None, description="Pi: EEPROM or VideoCore firmware; Jetson: L4T release; else BIOS or None."
    )
    libc: Name | None = None
    python: Name = Field(description="Version of the interpreter that runs the agent.")
    python_executable: Text = ""
    externally_managed: bool = Field(default=False, description="PEP 668: a plain pip install is blocked.")
    boot_id: Name | None = None
    page_size: int | None = None
    cpu_model: Text | None = None
    cpu_features: list[Name] = Field(default_factory=list, max_length=1024)
    cores: int | None = None
    cores_usable: int | None = Field(default=None, description="sched_getaffinity and the cgroup's quota, rounded up.")
    governor: Name | None = None
    clock_khz: dict[str, int | None] = Field(
        default_factory=dict,
        description="min, max, current, floor and limit (scaling_min_freq, scaling_max_freq) of the fastest CPU.",
    )
    memory_total_bytes: int | None = None
    memory_available_bytes: int | None = None
    swap_total_bytes: int | None = None
    disk_free_bytes: int | None = Field(default=None, description="Where the agent's home is.")
    noexec_home: bool = False
    gpu: Text | None = None
    cuda: Name | None = None
    power_mode: Text | None = Field(default=None, description="nvpmodel's mode, or None.")
    throttle: Text | None = Field(default=None, description="Raw throttle word or reasons.")
    accelerators_unused: list[Name] = Field(default_factory=list, description="E.g. a Pi AI HAT: present, not used.")
    linger: bool | None = None
    kill_user_processes: bool | None = None
    load_1m: float | None = None
    runtimes: list[RuntimeFact] = Field(default_factory=list, max_length=32)
    sensors: list[SensorFact] = Field(default_factory=list, max_length=64)


class Finding(Wire):
    """One thing that `device doctor` found."""

    check: Name
    ok: bool
    severity: Literal["error", "warning", "info"] = "error"
    detail: Text
    command: Text | None = Field(
        default=None, description="Shell command that mends it on the device, or None where only a person can."
    )
    privileged: bool = Field(default=False, description="The command needs root.")


# ---------------------------------------------------------------- agent -> host: a run


class AgentFault(Wire):
    """Why something failed."""

    kind: Name
    message: Text = ""
    detail: dict[str, Any] = Field(default_factory=dict)


class Event(Wire):
    """A line of the journal."""

    event: Literal["started", "part", "phase", "progress", "sensor", "part-done", "part-failed", "note", "ended"]
    t: float = Field(description="CLOCK_MONOTONIC seconds on the device.")
    wall: float = Field(description="Seconds since the epoch by the device's clock.")
    part: int | None = None
    phase: Name | None = None
    done: int | None = Field(default=None, description="progress: calls done in the phase.")
    elapsed_s: float | None = None
    total_s: float | None = Field(default=None, description="progress: expected length of the phase.")
    values: dict[str, float] = Field(
        default_factory=dict, description="sensor: name -> value, SI-like units in the name (temperature_c)."
    )
    state: State | None = None
    error: AgentFault | None = None
    message: Text | None = None
    pid: int | None = None
    boot_id: Name | None = None


class SeriesPoint(Wire):
    """One sample of the supervisor's sensors."""

    t: float = Field(description="CLOCK_MONOTONIC when the reading began, seconds.")
    took_s: float = Field(ge=0, description="How long the reading took.")
    values: dict[str, float] = Field(default_factory=dict)


class MemoryFigures(Wire):
    """Memory of the worker, bytes. Every figure says its kind; None where the kernel does not tell."""

    baseline_rss: int | None = Field(default=None, description="Before the runtime was imported.")
    peak_rss_load: int | None = Field(default=None, description="VmHWM over import, load, first call.")
    server_tree: int | None = Field(
        default=None, description="A driven server: sum of VmHWM over all its processes, since they started."
    )
    server_pss: int | None = Field(default=None, description="A driven server: sum of PSS over all its processes.")
    peak_rss_steady: int | None = Field(
        default=None, description="VmHWM over warm-up and the timed window, reset before."
    )
    peak_rss_reset: bool = Field(
        default=False, description="False: clear_refs is not writable, so steady's peak includes load's."
    )
    pss: int | None = None
    file_backed: int | None = None
    anonymous: int | None = None
    swap: int | None = None
    system_delta: int | None = Field(
        default=None, description="MemAvailable before the worker minus its lowest value during the run."
    )
    device_peak: int | None = Field(default=None, description="CUDA: peak of the device's memory used by this process.")


class ParityFigures(Wire):
    """Outputs on the board against the golden outputs, the worst over all golden inputs."""

    cases: int
    max_abs_error: float
    cosine_min: float
    outputs: dict[str, float] = Field(default_factory=dict, description="Output name -> max abs error.")


class OpRow(Wire):
    """An operator of the `--profile-ops` pass."""

    op: Name
    name: Text = ""
    provider: Name | None = None
    calls: int
    total_s: float


class PartResult(Wire):
    """What became of a part."""

    name: Name
    repeat: int = 0
    state: State
    error: AgentFault | None = None
    runtime: Name
    runtime_version: Name | None = None
    provider_requested: Name | None = None
    providers_used: list[Name] = Field(default_factory=list, max_length=64)
    provider_fell_back: bool = False
    provider_detail: Text | None = None
    threads: int | None = None
    import_s: float | None = None
    build_s: float | None = Field(
        default=None, description="TensorRT: building the engine, apart from load; None if cached."
    )
    load_s: float | None = None
    first_s: float | None = None
    warmup_calls: int = 0
    warmup_s: float = 0.0
    warmup_steady: bool | None = None
    window_start: float | None = Field(default=None, description="CLOCK_MONOTONIC.")
    window_end: float | None = None
    window_wall: float | None = Field(
        default=None, description="Epoch seconds at window_start, to join an external meter."
    )
    stopped_by: Literal["duration", "calls", "capacity", "max-duration", "stop", "fault"] | None = None
    samples_file: Name | None = None
    samples_count: int = 0
    batch: int = 1
    dropped: int = Field(
        default=0, description="paced: frames whose time had passed before the call before them ended."
    )
    server: dict[str, float] = Field(
        default_factory=dict, description="server: qps tried and held, see the scenario's page."
    )
    cpu_time_s: float | None = Field(default=None, description="Worker's user+system time within the window.")
    major_faults: int | None = None
    involuntary_switches: int | None = None
    memory: MemoryFigures = Field(default_factory=MemoryFigures)
    series: list[SeriesPoint] = Field(default_factory=list, max_length=200_000)
    vendor_before: dict[str, Any] = Field(
        default_factory=dict, description="Vendor tools read before and after the timed window."
    )
    vendor_after: dict[str, Any] = Field(default_factory=dict)
    idle_power_w: float | None = None
    other_load: list[Text] = Field(
        default_factory=list, description="Processes that used more than 5 % of a core during the window."
    )
    other_cpu_share: float | None = Field(
        default=None, description="CPU time of all other processes / (window x cores)."
    )
    served_model: Name | None = None
    prompt_tokens: int | None = Field(default=None, ge=0, description="Of a request, by a driven server's own count.")
    kv_cache_bytes: int | None = Field(default=None, ge=0, description="Keys and values after the last token but one.")
    preprocess_s: list[float] = Field(default_factory=list, max_length=1000, description="Seconds of each picture.")
    preprocess_with: Name | None = None
    parity: ParityFigures | None = None
    ops: list[OpRow] = Field(default_factory=list, max_length=10_000)
    notes: list[Text] = Field(default_factory=list, max_length=200)


class RunResult(Wire):
    """result.json: what the supervisor, or `collect` after its death, made of the run."""

    wire: int
    run: RunId
    state: State
    error: AgentFault | None = None
    boot_id: Name | None = None
    agent_sha256: Hash | None = None
    python: Name = ""
    started_wall: float
    ended_wall: float
    parts: list[PartResult] = Field(default_factory=list, max_length=1000)


class Holder(Wire):
    """Who holds a device: answer to holder, and the detail of the fault ``busy``."""

    holder: Text | None = None
    run: RunId | None = None
    held_s: float | None = Field(default=None, ge=0, description="By the board's uptime, so whatever its clock says.")


class RunStatus(Wire):
    """Answer to status, list and stop."""

    run: RunId
    state: State
    pid: int | None = None
    part: int | None = None
    parts: int | None = None
    phase: Name | None = None
    started_wall: float | None = None
    journal_bytes: int = 0
    error: AgentFault | None = None


Job.model_rebuild()
Part.model_rebuild()
