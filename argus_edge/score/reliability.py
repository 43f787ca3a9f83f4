"""The capability-reliability line: whether the most capable model also ranks first on reliability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from argus_edge.schema.score import ReliabilityLine, ScoredModel, Term


def _reliability(model: ScoredModel, reading: Literal["by-task", "all"]) -> tuple[float, float] | None:
    consistency = model.scores.consistency if reading == "by-task" else model.scores.consistency_all
    robustness = model.scores.robustness
    if consistency.value is None or robustness.value is None:
        return None
    return consistency.value, min(1.0, robustness.value)


def reliability_line(models: Sequence[ScoredModel], reading: Literal["by-task", "all"]) -> ReliabilityLine | None:
    """Return whether capability and reliability put the same model first, and which term turns the order.

    Reliability is the mean of CDC and RR (capped at 1). The term that turns the order is the one in which the most
    reliable model is ahead of the most capable one by more.

    Returns
    -------
    ReliabilityLine or None
        None with fewer than two ranked models that have both terms.
    """
    rated = [
        (model, pair)
        for model in models
        if model.ranked and (pair := _reliability(model, reading)) is not None and model.scores.capability.value
    ]
    if len(rated) < 2:
        return None

    # Of equally capable models the most reliable one is first, and the other way round: equal is not another order.
    def capability(item: tuple[ScoredModel, tuple[float, float]]) -> float:
        return round(item[0].scores.capability.value or 0.0, 9)

    def reliability(item: tuple[ScoredModel, tuple[float, float]]) -> float:
        return round(sum(item[1]), 9)

    capable, capable_pair = max(rated, key=lambda item: (capability(item), reliability(item)))
    reliable, reliable_pair = max(rated, key=lambda item: (reliability(item), capability(item)))
    if capable is reliable:
        return ReliabilityLine(
            most_capable=capable.name,
            most_reliable=reliable.name,
            same=True,
            sentence=f"The most capable model, {capable.name}, is also the most reliable one.",
        )
    ahead = {
        "consistency": reliable_pair[0] - capable_pair[0],
        "robustness": reliable_pair[1] - capable_pair[1],
    }
    term: Term = "consistency" if ahead["consistency"] >= ahead["robustness"] else "robustness"
    return ReliabilityLine(
        most_capable=capable.name,
        most_reliable=reliable.name,
        same=False,
        turned_by=term,
        sentence=(
            f"The most capable model is {capable.name}, the most reliable {reliable.name}: "
            f"{term} turns the order, by {ahead[term]:.3f}."
        ),
    )
