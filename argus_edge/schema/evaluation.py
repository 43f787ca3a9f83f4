"""The eval report: what a model can do on each dataset, clean and perturbed, with what a score needs to resample it."""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from argus_edge.schema.base import Artifact, Model

__all__ = [
    "BrokenImage",
    "Cell",
    "Column",
    "DatasetInfo",
    "EvalReport",
    "Interval",
    "Measurement",
    "Metric",
    "ModelInfo",
    "Perturbation",
    "Skipped",
]

Task = Literal["retrieval", "captioning", "reasoning"]
Modality = Literal["none", "image", "text"]

# What a column may hold; numpy's names, little-endian on disk.
ITEM_SIZES = {"uint8": 1, "uint16": 2, "int32": 4, "float64": 8}

MAX_COLUMN_BYTES = 1 << 28


class Column(Model):
    """One array of numbers, compact: base64 of the zlib-compressed little-endian, C-ordered bytes.

    ``numpy.frombuffer(column.to_bytes(), column.dtype).reshape(column.shape)`` gives the array back.
    """

    dtype: Literal["uint8", "uint16", "int32", "float64"]
    shape: list[int] = Field(max_length=2)
    data: str

    @classmethod
    def from_bytes(cls, raw: bytes, dtype: Literal["uint8", "uint16", "int32", "float64"], shape: list[int]) -> Column:
        """Return the column that holds ``raw``, the little-endian bytes of an array."""
        return cls(dtype=dtype, shape=shape, data=base64.b64encode(zlib.compress(raw, 9)).decode("ascii"))

    def to_bytes(self) -> bytes:
        """Return the array's little-endian bytes.

        Raises
        ------
        ValueError
            The data is not what ``dtype`` and ``shape`` say.
        """
        expected = ITEM_SIZES[self.dtype] * math.prod(self.shape)
        if expected > MAX_COLUMN_BYTES:
            raise ValueError(f"a column of {expected} bytes is larger than {MAX_COLUMN_BYTES}")
        decoder = zlib.decompressobj()
        try:
            # One byte more than expected is enough to see that there is too much.
            raw = decoder.decompress(base64.b64decode(self.data, validate=True), expected + 1)
        except (binascii.Error, zlib.error) as error:
            raise ValueError(f"a column cannot be decoded: {error}") from error
        if len(raw) != expected:
            raise ValueError(f"a column holds {len(raw)} bytes where its shape needs {expected}")
        return raw


class Interval(Model):
    """A confidence interval by bootstrap over images."""

    low: float
    high: float
    level: float = 0.95


class Metric(Model):
    """One figure of one cell under one condition."""

    value: float
    interval: Interval | None = Field(default=None, description="None where the metric has no per-image statistics.")
    higher_is_better: bool = True
    n: int = Field(ge=0, description="How many items it is over: queries, images or questions.")


class Measurement(Model):
    """One cell under one condition: clean, or one perturbation at one severity."""

    modality: Modality
    perturbation: str = Field(max_length=64, description='"clean" where the modality is none.')
    severity: int = Field(ge=0, le=5, description="0 for clean, else 1 to 5.")
    headline: float = Field(description="The cell's raw headline metric, before chance is taken off.")
    s: float = Field(ge=0, description="max(0, (headline - chance) / (1 - chance)).")
    metrics: dict[str, Metric]
    statistics: dict[str, Column] = Field(
        description=(
            "Per-image sufficient statistics, one row an image in the order of the dataset's image_ids. "
            "retrieval: i2t_hits, i2t_queries, t2i_hits, t2i_queries (at rank 1). "
            "captioning: captioned (whether an image has references), cider (float64, one score an image), bleu "
            "(uint16, ten an image: matches of 1- to 4-grams, totals of 1- to 4-grams, hypothesis length, closest "
            "reference length). reasoning: hits, questions."
        )
    )

    @property
    def clean(self) -> bool:
        """Whether nothing was perturbed."""
        return self.modality == "none"


class Cell(Model):
    """One (task, dataset): the unit that capability is averaged over."""

    task: Task
    dataset: str = Field(max_length=64)
    optional: bool = Field(default=False, description="Measured on request only; left out of P.")
    method: str = Field(max_length=200, description="How the model does the task: embeddings, pair scores, generation…")
    headline: str = Field(max_length=200, description="What the headline metric is.")
    chance: float = Field(ge=0, lt=1)
    chance_is: str = Field(max_length=200)
    prompt_ids: list[str] = Field(default_factory=list)
    gallery_images: int | None = Field(default=None, description="Retrieval: images in the gallery.")
    gallery_texts: int | None = Field(default=None, description="Retrieval: texts in the gallery.")
    idf_sha256: str | None = Field(default=None, description="Captioning: the document frequencies that CIDEr used.")
    records: str | None = Field(default=None, description="Parquet file of the per-item records, beside the report.")
    records_sha256: str | None = None
    measurements: list[Measurement]

    @property
    def clean(self) -> Measurement:
        """The measurement without a perturbation, which every cell has."""
        return next(measurement for measurement in self.measurements if measurement.clean)

    @model_validator(mode="after")
    def _has_clean(self) -> Cell:
        if not any(measurement.clean for measurement in self.measurements):
            raise ValueError(f"{self.task} on {self.dataset} has no clean measurement")
        return self


class BrokenImage(Model):
    """An image that could not be decoded, and so was left out for every model."""

    image_id: str = Field(max_length=256)
    reason: str = Field(max_length=500)


class DatasetInfo(Model):
    """What was evaluated on; two reports belong together when ``sha256`` is the same."""

    name: str = Field(max_length=64, description='"coco", "flickr30k", "vg", "clevr", "vcr", "mine", "sample".')
    kind: str = Field(max_length=64)
    split: str = Field(max_length=64)
    sha256: str = Field(description="Over the ids, annotations and image bytes that were used, in order.")
    images: int = Field(ge=0)
    captions: int = Field(ge=0)
    questions: int = Field(ge=0)
    limit: int | None = None
    image_ids: list[str] = Field(description="In the order of the rows of every statistic.")
    broken: list[BrokenImage] = Field(default_factory=list)


class Perturbation(Model):
    """One line of the perturbation grid."""

    name: str = Field(max_length=64)
    modality: Literal["image", "text"]
    severities: list[int]


class Skipped(Model):
    """What was left out, and why; it never counts as zero."""

    what: str = Field(max_length=200)
    reason: str = Field(max_length=500)


class ModelInfo(Model):
    """The model that was evaluated."""

    name: str = Field(max_length=256, description="Hub id, folder name, bundle name or module:Class.")
    kind: Literal["torch", "bundle", "class"]
    family: str = Field(max_length=64)
    precision: str = Field(max_length=32)
    sha256: str = Field(description="Over the model's files (weights, configuration, tokenizer), or the class's id.")
    revision: str | None = None
    source_id: str | None = Field(default=None, description="A bundle's original model.")
    bundle_sha256: str | None = Field(default=None, description="A bundle's own id, as in a bench report of it.")
    capabilities: list[str]


class EvalReport(Artifact):
    """Capability and robustness of one model on one or more datasets."""

    KIND: ClassVar[str] = "eval"

    model: ModelInfo
    datasets: list[DatasetInfo]
    cells: list[Cell]
    skipped: list[Skipped] = Field(default_factory=list)
    perturbation_set: str = Field(max_length=64, description='"none", "quick", "standard", "full" or "custom".')
    perturbations: list[Perturbation] = Field(default_factory=list)
    seed: int = 0
    prompts: dict[str, str] = Field(default_factory=dict, description="Every prompt that was used, by its id.")
    compute: str = Field(max_length=64, description="cpu, cuda:0 …")
    dtype: str = Field(max_length=32)
    batch_size: int = Field(ge=1)
    threads: int = Field(ge=1)
    software: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _cells_have_datasets(self) -> EvalReport:
        names = [dataset.name for dataset in self.datasets]
        if len(set(names)) != len(names):
            raise ValueError("a dataset is named twice")
        for cell in self.cells:
            if cell.dataset not in names:
                raise ValueError(f"the cell {cell.task} on {cell.dataset} has no dataset")
        return self

    def dataset(self, name: str) -> DatasetInfo:
        """Return the dataset of that name."""
        return next(dataset for dataset in self.datasets if dataset.name == name)
