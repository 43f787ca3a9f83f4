"""The bundle's manifest: what an exported model consists of, how to call it, and how well it was checked."""

from __future__ import annotations

import re
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from argus_edge.schema.base import Artifact, Model

Format = Literal["onnx", "tflite", "torch"]
Precision = Literal["fp32", "fp16", "int8", "int8-static", "int4"]
Role = Literal["image-encoder", "text-encoder", "vision", "decoder", "encoder", "head", "model"]
Fill = Literal["normal", "uniform", "tokens", "ones", "zeros", "positions"]
Phase = Literal["encode", "prefill", "decode"]
Task = Literal["retrieval", "captioning", "answering", "matching", "component"]

SHA256 = r"^[0-9a-f]{64}$"
# Relative POSIX path: no drive, no leading slash, no backslash, no empty, "." or ".." part.
RELATIVE_PATH = r"^(?!\.{1,2}(/|$))[^/\\:\x00-\x1f]+(/(?!\.{1,2}(/|$))[^/\\:\x00-\x1f]+)*$"
_NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]*$"


class BundleFile(Model):
    """A file of the bundle, by its path relative to the manifest."""

    # The pattern is checked by a validator since pydantic's regex engine has no look-ahead.
    path: str = Field(max_length=512, description="Relative POSIX path inside the bundle.")
    sha256: str = Field(pattern=SHA256)
    bytes: int = Field(ge=0)

    @model_validator(mode="after")
    def _inside(self) -> BundleFile:
        if not re.match(RELATIVE_PATH, self.path):
            raise ValueError(f"path {self.path!r} is not a plain path inside the bundle")
        return self


class SymbolicDim(Model):
    """A named axis length that is chosen at run time, with its bounds."""

    name: str = Field(max_length=64)
    minimum: int = Field(ge=0)
    maximum: int = Field(ge=0)
    typical: int = Field(ge=0, description="What a benchmark uses unless told otherwise.")
    sum_of: list[str] = Field(
        default_factory=list, description="The dims whose sum this one must equal (total = past + sequence)."
    )

    @model_validator(mode="after")
    def _ordered(self) -> SymbolicDim:
        if not self.minimum <= self.typical <= self.maximum:
            raise ValueError(f"{self.name}: {self.minimum} <= {self.typical} <= {self.maximum} does not hold")
        return self


class ValueRange(Model):
    """The values that an input may hold, and how to make up plausible ones.

    ``normal``: standard normal clipped to the range; ``uniform``: over the range; ``tokens``: integers over the
    range, both ends included, without the special tokens; ``ones``, ``zeros``; ``positions``: 0, 1, 2 … along the
    last axis, continued from the length of the past.
    """

    minimum: float
    maximum: float
    fill: Fill


class TensorSpec(Model):
    """An input or an output of a component."""

    name: str = Field(max_length=256)
    dtype: str = Field(max_length=32, description="numpy's name: float32, float16, int64, int32, bool, uint8 …")
    shape: list[int | str] = Field(max_length=16, description="Lengths; a string is the name of a symbolic dim.")
    values: ValueRange | None = Field(default=None, description="Inputs only.")


class GoldenCase(Model):
    """Inputs at one shape with the outputs that belong to them.

    Each array in the ``.npz`` files is named after its tensor and has one axis more than the tensor, in front: the
    sample. Sample ``i`` is the call with ``array[i]`` for every input.
    """

    dims: dict[str, int] = Field(description="Symbolic dim -> length at this case.")
    samples: int = Field(ge=1)
    origin: Literal["random", "calibration"] = Field(
        description="random: made up by the inputs' value ranges; calibration: the user's own images and texts."
    )
    inputs: BundleFile
    outputs: BundleFile = Field(description="What the original model computes, in fp32 unless its load_dtype says not.")
    host_outputs: BundleFile = Field(description="What this component's file computes on the exporting host.")


class ParityLimits(Model):
    """What a component must keep, by precision, to count as the same function."""

    max_abs_error: float | None = Field(
        default=None,
        description="Largest error allowed, relative to the largest magnitude of that output (null: cosine alone).",
    )
    cosine: float = Field(description="Smallest cosine similarity allowed, over a whole output of one sample.")


class ParityFigure(Model):
    """How far one output is from the original's over the samples of one golden case."""

    output: str
    case: int = Field(ge=0, description="Index into the component's golden cases.")
    max_abs_error: float
    max_abs_reference: float = Field(description="Largest magnitude of the original's output.")
    cosine: float = Field(description="The smallest over the samples.")
    mean_cosine: float
    passed: bool


class Parity(Model):
    """Exported file, in its target runtime on the exporting host, against the original model."""

    runtime: str = Field(description="Runtime and version, e.g. onnxruntime 1.32.0.")
    limits: ParityLimits
    figures: list[ParityFigure]
    passed: bool


class MacCount(Model):
    """Multiply-accumulates (one MAC = two FLOPs) of one call at one shape, by each counter."""

    dims: dict[str, int]
    macs: int = Field(ge=0, description="The figure to use: FlopCounterMode / 2 with eager attention.")
    by_counter: dict[str, int | None] = Field(
        description="flop_counter_mode, onnx_graph, fvcore; null where a counter cannot run on this component."
    )
    disagreement: float = Field(ge=0, description="(largest - smallest) / largest of the counters that ran.")
    explanation: list[str] = Field(
        default_factory=list, description="Why the counters disagree by more than 2 %, or why one did not run."
    )


class Component(Model):
    """One model file with everything needed to call and check it."""

    name: str = Field(pattern=_NAME, max_length=64)
    role: Role
    format: Format
    precision: Precision
    file: BundleFile
    external_data: list[BundleFile] = Field(default_factory=list)
    inputs: list[TensorSpec]
    outputs: list[TensorSpec]
    dims: list[SymbolicDim] = Field(default_factory=list)
    golden: list[GoldenCase] = Field(default_factory=list)
    parity: Parity | None = None
    params: int = Field(ge=0, description="Parameters of the original component, shared ones counted once.")
    weight_bytes: int = Field(ge=0, description="Bytes of the constants in the exported file(s).")
    macs: list[MacCount] = Field(default_factory=list)
    ops: dict[str, int] = Field(
        default_factory=dict, description="Operator (domain::Name outside the default) -> uses."
    )
    opset: int | None = Field(default=None, description="ONNX default-domain opset.")
    opset_imports: dict[str, int] = Field(default_factory=dict)
    ir_version: int | None = Field(default=None, description="ONNX IR version.")
    converter: str = Field(description="What wrote the file, e.g. torch.onnx (dynamo) 2.13.0.")
    notes: list[str] = Field(default_factory=list)

    @property
    def files(self) -> list[BundleFile]:
        """The model file and its external data: what a board needs to load the component."""
        return [self.file, *self.external_data]

    def dim(self, name: str) -> SymbolicDim:
        """Return a symbolic dim by its name; raises ``KeyError`` where there is none."""
        for dim in self.dims:
            if dim.name == name:
                return dim
        raise KeyError(name)


class Step(Model):
    """One component's part in a unit of work."""

    component: str
    phase: Phase = Field(description="encode and prefill: once; decode: once for each output token after the first.")
    bindings: dict[str, str] = Field(
        default_factory=dict,
        description="Input name -> 'component.output' that feeds it; every other input comes from the caller. "
        "The KV cache (generation.kv) is fed by the decoder's own previous call.",
    )


class UnitOfWork(Model):
    """What one end-to-end inference is, so that models are compared on equal work (batch 1)."""

    task: Task
    description: str
    steps: list[Step]


class KvCache(Model):
    """Layout of the decoder's keys and values."""

    layers: int = Field(ge=1)
    kv_heads: int = Field(ge=1)
    head_dim: int = Field(ge=1)
    layout: list[str] = Field(description='Axes in order, e.g. ["batch", "kv_heads", "past", "head_dim"].')
    dtype: str
    past_key: str = Field(description="Input name with {layer}, e.g. past_key_values.{layer}.key.")
    past_value: str
    present_key: str = Field(description="Output name with {layer}: the whole cache, past and new tokens.")
    present_value: str
    bytes_per_token: int = Field(ge=0, description="Keys and values over all layers, for one sequence.")


class Generation(Model):
    """How to generate with the decoder: prefill and decode are calls of the same file (past length >= 0)."""

    decoder: str = Field(description="Name of the decoder component.")
    kv: KvCache
    input_ids: str = "input_ids"
    attention_mask: str | None = Field(default=None, description="Over past and new tokens; padding on the left.")
    position_ids: str | None = None
    position_axes: int = Field(default=1, ge=1, description="3 for Qwen2.5-VL's multimodal rotary positions.")
    image_features: str | None = Field(
        default=None, description="Input that takes the vision output at prefill; of length 0 at decode."
    )
    image_features_dim: str | None = Field(default=None, description="Its symbolic dim: 0 at decode.")
    logits: str = "logits"
    logits_of: Literal["last", "all"] = "last"
    vocab_size: int = Field(ge=1)
    bos_token_id: int | None = None
    eos_token_ids: list[int] = Field(default_factory=list)
    pad_token_id: int | None = None
    image_token_id: int | None = Field(default=None, description="Placeholder id that an image feature replaces.")
    image_tokens: int = Field(default=0, ge=0, description="Placeholders per image in the prompt.")
    context_length: int = Field(ge=1)


class ImagePreprocess(Model):
    """From an 8-bit RGB image to the vision input, for the reader who has no processor at hand."""

    height: int = Field(ge=1)
    width: int = Field(ge=1)
    resize: Literal["stretch", "shortest-edge-then-centre-crop"]
    resample: Literal["nearest", "bilinear", "bicubic", "lanczos"]
    rescale: float = Field(description="Factor applied to 0..255.")
    mean: list[float]
    std: list[float]
    layout: Literal["NCHW", "patches"] = Field(description="patches: Qwen2-VL's flattened, temporally doubled patches.")


class BundleManifest(Artifact):
    """``manifest.json`` of a bundle."""

    KIND: ClassVar[str] = "bundle"
    VERSION: ClassVar[int] = 1

    name: str = Field(max_length=128)
    family: str = Field(description="clip, blip, lxmert, gemma3, qwen2_5_vl, or the generic route's model type.")
    architecture: str = Field(description="Class name of the original model.")
    source_id: str = Field(
        description="Hub id, name of a shipped configuration, or last part of a local folder's path."
    )
    source_revision: str | None = None
    format: Format
    precision: Precision
    random_weights: bool = Field(
        description="The architecture at its real size with made-up weights: sizing only, never capability."
    )
    seed: int | None = Field(default=None, description="Of the random weights.")
    encoder_only: bool = Field(default=False, description="LXMERT: its Faster R-CNN features are inputs.")
    load_dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    device: str | None = Field(default=None, description="Profile of the device that it was exported for.")
    parity_passed: bool
    components: list[Component] = Field(min_length=1, max_length=64)
    processor: list[BundleFile] = Field(default_factory=list, description="Tokenizer, image processor, configuration.")
    generation: Generation | None = None
    preprocess: ImagePreprocess | None = None
    unit_of_work: UnitOfWork
    toolchain: dict[str, str] = Field(default_factory=dict, description="Package -> version.")
    warnings: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _consistent(self) -> BundleManifest:
        names = [component.name for component in self.components]
        if len(set(names)) != len(names):
            raise ValueError(f"component names repeat: {names}")
        for step in self.unit_of_work.steps:
            if step.component not in names:
                raise ValueError(f"unit of work names the unknown component {step.component!r}")
            for source in step.bindings.values():
                if source.partition(".")[0] not in names:
                    raise ValueError(f"binding from the unknown component in {source!r}")
        if self.generation is not None and self.generation.decoder not in names:
            raise ValueError(f"generation names the unknown component {self.generation.decoder!r}")
        return self

    def component(self, name: str) -> Component:
        """Return a component by its name; raises ``KeyError`` where there is none."""
        for component in self.components:
            if component.name == name:
                return component
        raise KeyError(name)

    @property
    def files(self) -> list[BundleFile]:
        """Every file that the manifest vouches for."""
        found = list(self.processor)
        for component in self.components:
            found += component.files
            for case in component.golden:
                found += [case.inputs, case.outputs, case.host_outputs]
        return found
