"""The verdict: each budget line with limit, measured figure, interval and outcome; boards; the whole."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from argus_edge.schema.base import Artifact, Model, Source

Outcome = Literal["pass", "fail", "unknown"]
Counted = Literal["samples", "runs", "images"]


class VerdictLine(Model):
    """One line of the budget against one model on one device."""

    metric: str
    model: str
    device: str | None = Field(default=None, description="None for figures that no device changes.")
    component: str | None = None
    limit: float = Field(description="In the metric's base unit: seconds, bytes, joules, degrees Celsius, shares.")
    limit_text: str = Field(description="As the budget writes it.")
    direction: Literal["at most", "at least"]
    unit: str
    measured: float | None = None
    low: float | None = None
    high: float | None = None
    outcome: Outcome
    reason: str | None = None
    headroom: float | None = Field(default=None, description="Share of the limit that is left; negative: over it.")
    needed_samples: int | None = Field(default=None, description="How many more samples would decide.")
    needed_of: Counted = Field(default="samples", description="What needed_samples counts.")
    needed_s: float | None = Field(default=None, description="How much longer a run that would decide takes.")
    budget_line: int = Field(description="Line of the budget's file.")
    source: str | None = Field(default=None, description="Report that the figure is from.")


class BoardVerdict(Model):
    """All lines of one model on one device."""

    model: str
    device: str
    outcome: Outcome
    valid: bool | None
    cause: str | None = Field(default=None, description="The one line that decided, in words.")


class QuorumVerdict(Model):
    """How many boards of a fleet pass."""

    model: str
    required: int
    total: int
    passed: list[str]
    failed: list[str]
    unknown: list[str]
    not_reached: list[str]
    outcome: Outcome


class Verdict(Artifact):
    """What `argus-edge validate` writes."""

    KIND: ClassVar[str] = "verdict"

    budget: str
    budget_source: Source
    outcome: Outcome
    cause: str = Field(description="The one sentence that says why.")
    level: float = Field(default=0.95, description="Confidence of the benches' intervals.")
    lines: list[VerdictLine]
    boards: list[BoardVerdict] = Field(default_factory=list)
    quorums: list[QuorumVerdict] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
