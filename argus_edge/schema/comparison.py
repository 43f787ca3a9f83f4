"""The comparison: per figure better, worse, no difference, or too few runs, at the level of runs."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from argus_edge.schema.base import Artifact, Model

ComparisonOutcome = Literal["better", "worse", "no difference", "no difference found", "too few runs"]


class ComparedFigure(Model):
    """One figure of one model on one device (or across boards), candidate against baseline."""

    model: str
    device: str = Field(description="'all boards' where boards are paired.")
    component: str
    scenario: str
    figure: str
    unit: str
    lower_is_better: bool
    baseline: list[float] = Field(description="One value a run, or a board.")
    candidate: list[float]
    change: float | None = Field(default=None, description="exp(mean log ratio) - 1: 0.1 is 10 % more.")
    low: float | None = None
    high: float | None = None
    outcome: ComparisonOutcome
    runs_needed: int | None = Field(default=None, description="Runs a side that would decide.")
    paired: bool = False


class DroppedRun(Model):
    """A run that was left out for its validity's cause, never for its value."""

    side: Literal["baseline", "candidate"]
    run: str
    device: str
    component: str = Field(default="", description="Empty where the whole report was left out.")
    cause: str


class EnvironmentChange(Model):
    """A fact that differs between the sides."""

    device: str
    fact: str
    baseline: str
    candidate: str
    expected: bool = Field(description="Named by --varying.")


class Comparison(Artifact):
    """What `argus-edge compare` writes."""

    KIND: ClassVar[str] = "comparison"

    varying: list[str] = Field(default_factory=list)
    level: float = 0.95
    margin: float = Field(default=0.02, description="A change within this is no difference.")
    figures: list[ComparedFigure]
    dropped: list[DroppedRun] = Field(default_factory=list)
    lost: list[str] = Field(
        default_factory=list, description="Model / device / component / scenario that only the baseline has a run of."
    )
    environment: list[EnvironmentChange] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
