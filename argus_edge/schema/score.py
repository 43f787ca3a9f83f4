"""The ARGUS score: capability, consistency, robustness and efficiency per model and device, with intervals."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from argus_edge.schema.base import Artifact, Model
from argus_edge.schema.judge import Advice

Term = Literal["capability", "consistency", "robustness", "efficiency"]
EfficiencyTerm = Literal["latency", "memory", "macs", "throughput"]


class Scored(Model):
    """A part of the score. ``value`` is None where it cannot be had, and ``reason`` says why."""

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str | None = None


class CellScore(Model):
    """One (task, dataset) of one model."""

    task: str
    dataset: str
    raw: float = Field(description="The cell's headline metric, clean.")
    chance: float
    s: float = Field(description="max(0, (raw - chance) / (1 - chance)).")
    s_perturbed: float | None = Field(
        default=None, description="Mean over severities, then perturbations, then modalities, where one applies."
    )
    judged: str | None = Field(default=None, description="Judge whose calibrated scores are the metric.")
    replaced: float | None = Field(default=None, description="The eval report's own headline, where a judge's stands.")


class JudgedScore(Model):
    """What a judge says of one model in one cell, and whether that is the cell's metric."""

    task: str
    dataset: str
    model: str
    judge: str
    advice: Advice
    entered: bool
    reason: str = Field(description="Why the judge is, or is not, to be trusted with scores here.")
    value: float = Field(description="Prediction-powered mean of the human score, in [0, 1].")
    low: float
    high: float
    labelled: int
    unlabelled: int
    rank: int | None = Field(default=None, description="Among the compared models, by the judge's mean over all rows.")


class CapabilityScore(Model):
    """What the host measured of one model: the three parts that no device changes."""

    capability: Scored = Field(description="P.")
    consistency: Scored = Field(description="CDC by task, the default reading.")
    consistency_all: Scored = Field(description="CDC over all datasets at once, the paper's literal reading.")
    robustness: Scored = Field(description="RR, raw; capped at 1 only in ARGUS.")
    datasets: dict[str, float] = Field(description="s of each dataset: mean over its tasks.")
    cells: list[CellScore]


class EfficiencyScore(Model):
    """E of one model on one device, with what went into it."""

    efficiency: Scored
    terms: dict[EfficiencyTerm, float | None]
    latency_s: float | None = None
    memory_bytes: float | None = None
    memory_kind: str | None = None
    macs: float | None = None
    throughput: float | None = None
    unit_of_work: str | None = None


class DeviceScore(Model):
    """One model on one device."""

    device: str
    profile: str
    bench_run: str
    efficiency: EfficiencyScore
    argus: Scored
    rank: int | None = Field(default=None, description="Among the ranked models of this device; 1 is best.")
    first_share: float | None = Field(
        default=None, description="Share of all weightings (uniform on the simplex) under which it comes first."
    )
    valid: bool | None = Field(description="Validity of the bench run; None: cannot tell.")


class ScoredModel(Model):
    """One model: what it can do, and how it fares on each device."""

    name: str
    precision: str | None = None
    sha256: str
    scores: CapabilityScore
    devices: list[DeviceScore]
    ranked: bool
    not_ranked_because: str | None = None


class Outranking(Model):
    """Probability that one model's ARGUS is above another's, ties half, over joint replicates."""

    device: str
    model: str
    other: str
    probability: float


class Flip(Model):
    """A weight of efficiency at which first place changes hands."""

    device: str
    at_efficiency_weight: float
    before: str
    after: str


class ReliabilityLine(Model):
    """Whether the most capable model also ranks first on reliability (the mean of CDC and RR)."""

    most_capable: str
    most_reliable: str
    same: bool
    turned_by: Term | None = Field(default=None, description="The term that turns the order.")
    sentence: str


class ScoreReport(Artifact):
    """What `argus-edge score` writes."""

    KIND: ClassVar[str] = "score"

    weights: dict[Term, float]
    efficiency_reference: Literal["cohort", "budget"]
    efficiency_terms: list[EfficiencyTerm] = Field(description="Terms that every compared model has.")
    references: dict[str, dict[EfficiencyTerm, float]] = Field(description="Per device: what a term of 1 stands for.")
    consistency_reading: Literal["by-task", "all"]
    level: float = 0.95
    replicates: int
    seed: int
    models: list[ScoredModel]
    outranking: list[Outranking] = Field(default_factory=list)
    flips: list[Flip] = Field(default_factory=list)
    reliability: ReliabilityLine | None = None
    judged: list[JudgedScore] = Field(default_factory=list, description="Judged metrics, entered or not.")
    excluded: list[str] = Field(default_factory=list, description="Cells left out because not every model has them.")
    notes: list[str] = Field(default_factory=list)
