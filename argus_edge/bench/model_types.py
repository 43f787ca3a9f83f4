"""What a model is to a bench: components with their files, inputs and the facts that pre-flight compares."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from argus_edge.schema.bundle import Component, ParityLimits, ValueRange

if TYPE_CHECKING:
    from argus_edge.schema.bundle import BundleManifest

Format = Literal["onnx", "tflite", "torchscript", "exported", "engine", "none"]

# Which runtimes take which format, the first one first.
RUNTIMES_OF: dict[str, tuple[str, ...]] = {
    "onnx": ("onnxruntime", "tensorrt"),
    "tflite": ("litert",),
    "torchscript": ("torch",),
    "exported": ("torch",),
    "engine": ("tensorrt",),
    "none": ("null", "server"),
}

# Providers that run a model on a GPU.
GPU_PROVIDERS = ("cuda", "tensorrt")


@dataclass(frozen=True)
class ModelFile:
    """A file that the device needs.

    Attributes
    ----------
    path
        On the host.
    name
        Relative POSIX path beside the model file, as the model refers to it.
    sha256, bytes
        Of its content.
    """

    path: Path
    name: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class InputSpec:
    """An input of a model.

    Attributes
    ----------
    name
        As the runtime wants it.
    dtype
        numpy's name.
    shape
        Lengths; a string names a free dimension, ``"?"`` one without a name.
    rows
        Integer inputs that index a table: the table's rows, so that 0 … rows - 1 are in range. None: not known.
    values
        Range and kind by a bundle's manifest.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    rows: int | None = None
    values: ValueRange | None = None


@dataclass(frozen=True)
class BenchComponent:
    """One model file to time.

    Attributes
    ----------
    name
        Of the component; the file's stem where there is only a file.
    format
        How the agent loads it.
    model, external
        Files for the device; None for the null runtime.
    inputs
        None where the format does not tell (TorchScript): ``--shape`` or ``--input`` must.
    opset, ir_version, ops
        ONNX: of the default domain, of the file, operator type -> uses. TFLite: ops alone.
    bundled
        The manifest's entry, where the model is a bundle.
    """

    name: str
    format: Format
    model: ModelFile | None
    external: tuple[ModelFile, ...] = ()
    inputs: tuple[InputSpec, ...] | None = None
    opset: int | None = None
    ir_version: int | None = None
    ops: dict[str, int] = field(default_factory=dict)
    precision: str | None = None
    bundled: Component | None = None

    @property
    def files(self) -> tuple[ModelFile, ...]:
        """Every file that the device needs."""
        return () if self.model is None else (self.model, *self.external)

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.bytes for file in self.files)

    @property
    def input_names(self) -> list[str]:
        """Names of the inputs in the file's order, by a bundle's manifest."""
        return [spec.name for spec in self.bundled.inputs] if self.bundled else []

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs in the file's order, by a bundle's manifest."""
        return [spec.name for spec in self.bundled.outputs] if self.bundled else []

    @property
    def parity_limits(self) -> ParityLimits | None:
        """What outputs on the board must keep, by the bundle's own limits."""
        return self.bundled.parity.limits if self.bundled and self.bundled.parity else None


@dataclass(frozen=True)
class ResolvedModel:
    """A model that can be benched.

    Attributes
    ----------
    name
        For people: the file's or the bundle's.
    sha256
        Of the model file, or of the bundle's manifest.
    components
        In the order of the unit of work.
    manifest, root
        Of a bundle.
    notes
        What the reader of the report must know, e.g. that the weights are constant.
    """

    name: str
    sha256: str | None
    components: tuple[BenchComponent, ...]
    manifest: BundleManifest | None = None
    root: Path | None = None
    constant_weights: bool = False
    notes: tuple[str, ...] = ()

    @property
    def format(self) -> str:
        """Of the components; a bundle has one format."""
        return self.components[0].format

    @property
    def bytes(self) -> int:
        """Bytes of all components' files, shared ones once."""
        return sum({file.sha256: file.bytes for part in self.components for file in part.files}.values())
