"""Artefacts of `argus-edge judge`: a fitted calibration, and an evaluation of judges and methods."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from argus_edge.schema.base import Artifact, Model

Advice = Literal["score", "rank only", "do not use"]

_Name = Field(max_length=512)


class Group(Model):
    """One Mondrian group and what its calibration rests on."""

    name: str = _Name
    rows: int = Field(ge=0, description="Labelled rows used.")
    calibration_rows: int = Field(ge=0, description="Those among them that set the threshold.")
    finite: bool
    reason: str | None = Field(default=None, max_length=2000, description="Why the interval is infinite.")


class Breakdown(Model):
    """Coverage and width of one part of the rows; means over splits where there are several."""

    name: str = _Name
    rows: float
    coverage: float
    width: float
    coverage_adjusted: float
    width_adjusted: float
    coverage_sd: float | None = None
    width_sd: float | None = None
    coverage_adjusted_sd: float | None = None
    width_adjusted_sd: float | None = None
    unbounded: float = Field(default=0.0, description="Share of rows with an infinite interval (width K − 1).")


class PointFigures(Model):
    """Agreement of the judge's written scores with the human ones."""

    rows: int
    left_out: int = Field(description="Rows without a readable score.")
    pearson: float | None
    spearman: float | None
    kendall: float | None
    exact: float
    within_one: float
    mae: float
    bias: float = Field(description="Mean of judge less human.")
    bias_by_level: dict[str, float] = Field(description="The same, by human score.")


class Confidence(Model):
    """How sure the judge is, against how often it is right."""

    over_99: float = Field(description="Share of rows whose largest rating probability exceeds 0.99.")
    over_999: float
    mean_top_probability: float
    exact: float = Field(description="Share of rows where that rating is the human one.")
    over_confidence: float = Field(description="Mean top probability less that share.")


class Midpoint(Model):
    """The interval's midpoint as a score, beside the judge's own."""

    mae: float
    bias: float
    pearson: float | None
    judge_mae: float | None
    judge_bias: float | None
    judge_pearson: float | None


class TaskReport(Model):
    """One task: how well the judge ranks, how well it scores, and what to do with it."""

    task: str = _Name
    rows: int
    coverage: float
    width: float = Field(description="Mean raw width, upper minus lower.")
    width_adjusted: float
    pearson: float | None
    spearman: float | None
    spearman_interval: tuple[float, float] | None = None
    gap: float | None = Field(description="|Pearson| − (1 − raw width/(K − 1)): the ranking-scoring gap.")
    gap_interval: tuple[float, float] | None = Field(default=None, description="Bootstrap, 95 %.")
    decoupled: bool = Field(
        description="Ranks well and scores badly: rank only, and the gap's whole interval is above 0."
    )
    advice: Advice
    reason: str = Field(max_length=2000)
    labels_needed: int | None = Field(default=None, description="Labelled rows of the task for the wanted width.")
    labels_note: str | None = Field(default=None, max_length=2000)


class JudgedMean(Model):
    """A judged metric of one task (and model): prediction-powered mean of the human score."""

    task: str = _Name
    model: str | None = Field(default=None, max_length=512)
    cell: tuple[str, str] | None = Field(
        default=None,
        description="(task, dataset) of the score that it is a metric of, from the columns of those names.",
    )
    mean: float = Field(description="On the scale 1..K.")
    lower: float
    upper: float
    standard_error: float
    degrees_of_freedom: int
    unit_mean: float = Field(description="(mean − 1)/(K − 1), in [0, 1]; the same for the two ends.")
    unit_lower: float
    unit_upper: float
    unit_standard_error: float
    labelled: int
    unlabelled: int
    weight: float = Field(description="The tuned λ; 0 where the judge is not used.")
    width_ratio: float = Field(description="Interval's width over that of the labelled rows alone.")
    judge_mean: float
    rank: int | None = Field(default=None, description="Place among the models of the cell by the judge's mean.")
    models: int = 1
    advice: Advice
    note: str | None = Field(default=None, max_length=2000)


class JudgeCalibration(Artifact):
    """What `judge fit` learned and `judge apply` uses; `score` reads the advice, the ranks and the judged means."""

    KIND: ClassVar[str] = "judge"

    judges: list[str] = Field(min_length=1, max_length=64)
    levels: int = Field(ge=2, le=100, description="The scale is 1..levels.")
    alpha: float = Field(gt=0, lt=1)
    method: str = _Name
    seed: int
    labels: str = Field(max_length=512, description="Column with the human scores.")
    by: str | None = Field(default=None, max_length=512, description="Column of the groups, or 'difficulty'.")
    floor: float = Field(lt=0, description="Log-probability put in place of −infinity.")
    rows: int = Field(ge=1)
    groups: list[Group] = Field(min_length=1, max_length=10_000)
    grouping: dict[str, Any] = Field(description="How a row finds its group; arrays as base64.")
    state: dict[str, Any] = Field(description="The method's model and thresholds; arrays as base64.")
    feature_quantiles: dict[str, Any] = Field(description="Percentiles of each log-probability, to notice drift.")
    overall: Breakdown
    tasks: list[TaskReport] = Field(max_length=10_000)
    judged: list[JudgedMean] = Field(default_factory=list, max_length=100_000)
    warnings: list[str] = Field(default_factory=list)

    @field_validator("judges")
    @classmethod
    def _named(cls, judges: list[str]) -> list[str]:
        if any(not name or len(name) > 512 for name in judges):
            raise ValueError("a judge's name is empty or too long")
        return judges


class MethodReport(Model):
    """One conformal method over the splits."""

    method: str = _Name
    paper: str
    by: str | None = None
    seconds: float = Field(description="Processor seconds of fitting and predicting, all splits.")
    overall: Breakdown
    by_task: list[Breakdown]
    by_level: list[Breakdown]
    by_error: list[Breakdown]
    by_group: list[Breakdown] = Field(default_factory=list)
    midpoint: Midpoint


class JudgeReport(Model):
    """One judge, or several judges' features together."""

    judge: str = _Name
    rows: int
    points: PointFigures | None
    confidence: Confidence | None
    points_by_task: dict[str, PointFigures] = Field(default_factory=dict)
    methods: list[MethodReport]
    tasks: list[TaskReport]
    task_method: str = Field(description="The method whose intervals decide the advice.")
    gap_method: str = Field(description="The method whose raw widths enter the ranking-scoring gap.")
    within_task: list[Breakdown] = Field(default_factory=list, description="R2CCP fitted within each task alone.")


class Agreement(Model):
    """Agreement of two judges on the order of tasks by width."""

    judges: tuple[str, str]
    method: str = _Name
    tasks: int
    spearman: float | None


class Fusion(Model):
    """Several judges' features together, against the best of them alone."""

    method: str = _Name
    best_judge: str = _Name
    width_best: float
    width_together: float
    gain: float = Field(description="Width of the best alone less width together: negative where fusion hurts.")
    coverage_best: float
    coverage_together: float
    adjusted_width_best: float
    adjusted_width_together: float


class JudgeEvaluation(Artifact):
    """What `judge evaluate` measured on repeated random splits."""

    KIND: ClassVar[str] = "judge-evaluation"

    levels: int
    alpha: float
    splits: int
    judges: list[JudgeReport]
    agreement: list[Agreement] = Field(default_factory=list)
    fusion: list[Fusion] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
