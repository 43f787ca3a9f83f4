"""The inventory's entries and the device profiles."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from argus_edge.schema.base import Model

DeviceName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
# A repository, with registry, tag and digest where given: never an option of docker's.
ImageName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,254}$")]


class DeviceEntry(Model):
    """A device of the user's inventory (or the built-in ``local``)."""

    name: DeviceName
    profile: str = "generic-linux"
    host: str | None = Field(default=None, description="[user@]host[:port] or an ssh_config alias; None: this machine.")
    python: str = Field(default="python3", description="Interpreter on the device; a venv's where doctor proposed one.")
    home: str = Field(default="~/.cache/argus-edge", description="Where agent, models and runs are kept on the device.")
    container: ImageName | None = Field(
        default=None, description="Docker image on the device to run the agent in, with NVIDIA's runtime."
    )
    tags: list[str] = Field(default_factory=list)
    labels: dict[str, str] = Field(default_factory=dict)
    power_cycle: list[str] | None = Field(
        default=None, description="Command (argv) on the host that power-cycles the board."
    )
    quarantined: bool = False
    failures: int = 0


class Figure(Model):
    """A number with where it comes from."""

    value: float
    source: str


class Peak(Model):
    """Peak arithmetic rate of one compute unit for one dtype."""

    unit: Literal["cpu", "gpu"]
    dtype: Literal["fp32", "fp16", "bf16", "int8", "int4"]
    gmacs: float = Field(gt=0, description="1e9 multiply-accumulates a second, all cores at max_clock_khz.")
    max_clock_khz: int | None = None
    cores: int | None = None
    mode: str | None = Field(default=None, description="Power mode this holds in; None: any.")
    source: str


class RuntimeLimit(Model):
    """What a runtime on this device can load."""

    runtime: Literal["onnxruntime", "litert", "torch", "tensorrt"]
    version: str | None = Field(default=None, description="Newest that installs there.")
    max_opset: int | None = None
    max_ir: int | None = None
    missing_ops: list[str] = Field(default_factory=list)
    missing_precisions: list[str] = Field(default_factory=list)
    providers: list[str] = Field(default_factory=list)
    install: str | None = Field(default=None, description="Command that installs it on this board.")
    source: str = ""


class PowerMode(Model):
    """A power mode of the board."""

    name: str
    watts: float | None = None
    max_clock_khz: int | None = Field(default=None, description="Of the CPU.")
    cores: int | None = Field(default=None, description="CPU cores that stay on in this mode; None: all.")
    gpu_max_clock_khz: int | None = None
    bandwidth_bytes_s: float | None = Field(
        default=None, description="Where the mode has a memory clock of its own; else the profile's figure holds."
    )
    source: str


class Profile(Model):
    """What is known of a kind of board; every figure with its source."""

    name: str
    title: str
    arch: str
    aliases: list[str] = Field(default_factory=list)
    match: list[str] = Field(
        default_factory=list, description="Substrings of the device-tree model that identify the board."
    )
    match_firmware: list[str] = Field(
        default_factory=list,
        description="Beginnings of the firmware text (e.g. 'R36') that tell images of one board apart; empty: any.",
    )
    match_gpu: list[str] = Field(
        default_factory=list, description="Substrings of the GPU's name, for hosts that have no device tree."
    )
    cores: int | None = None
    memory_bytes: list[int] = Field(default_factory=list, description="Sizes it is sold with.")
    unified_memory: bool = Field(
        default=False, description="CPU and GPU share it: the headline memory is the system delta."
    )
    bandwidth_bytes_s: Figure | None = None
    peaks: list[Peak] = Field(default_factory=list)
    sensors: list[str] = Field(default_factory=list)
    runtimes: list[RuntimeLimit] = Field(default_factory=list)
    default_runtime: str = "onnxruntime"
    python: str | None = Field(default=None, description="The image's own Python.")
    power_modes: list[PowerMode] = Field(default_factory=list)
    throttle: str | None = Field(default=None, description="What throttling means on this board.")
    throttle_temperature_c: Figure | None = None
    notes: list[str] = Field(default_factory=list)
    sources: list[str] = Field(default_factory=list)
