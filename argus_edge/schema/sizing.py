"""The sizing: which (model, precision, runtime, threads, device) fits a budget, and what is missing to decide."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from argus_edge.schema.base import Artifact, Model, Source

Fit = Literal["fits", "undecided", "does not fit", "cannot fit", "unlikely", "not measured"]


class Combination(Model):
    """One way to run one model on one board."""

    model: str
    precision: str | None = None
    runtime: str | None = None
    threads: int | None = None
    device: str
    fit: Fit
    reason: str = Field(description="The line that decided, or what is missing.")
    margin: float | None = Field(default=None, description="Smallest headroom over the budget's lines; 0.2 is 20 %.")
    latency_s: float | None = None
    memory_bytes: float | None = None
    energy_j: float | None = None
    argus: float | None = None
    floor_s: float | None = Field(default=None, description="Least latency that the profile's roofline allows.")
    pareto: bool = Field(default=False, description="No other combination is at least as good in everything.")
    next_step: str | None = None


class Sizing(Artifact):
    """What `argus-edge size` writes."""

    KIND: ClassVar[str] = "sizing"

    budget: str
    budget_source: Source
    combinations: list[Combination] = Field(description="Those that fit first, the smallest margin first.")
    pareto_over: list[str] = Field(default_factory=list, description="The figures that the front is over.")
    notes: list[str] = Field(default_factory=list)
