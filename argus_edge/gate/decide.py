"""Whether a figure passes a limit: its whole interval must; it fails only if its whole interval does; else unknown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

from argus_edge.gate.budget import Limit, Quorum
from argus_edge.gate.figures import Figure
from argus_edge.schema.verdict import BoardVerdict, Outcome, QuorumVerdict

Z_POWER = 0.84
"""The normal quantile of 80 % power."""


def outcome_of(limit: Limit, figure: Figure) -> Outcome:
    """Return pass, fail or unknown for a figure with its interval; a side that is not bounded is infinitely far.

    The figure itself counts as part of its interval: a median over runs may lie outside that of their mean.
    """
    if figure.value is None:
        return "unknown"
    low = -math.inf if figure.low is None else min(figure.low, figure.value)
    high = math.inf if figure.high is None else max(figure.high, figure.value)
    if limit.metric.direction == "at most":
        return "pass" if high <= limit.value else "fail" if low > limit.value else "unknown"
    return "pass" if low >= limit.value else "fail" if high < limit.value else "unknown"


def share_needed(limit: Limit, figure: Figure, level: float) -> float:
    """Return how much more decides, as a share of what was measured: 2 is twice as much again.

    The half-width on the limit's side falls with the square root of what is measured; as for a percentile, the distance
    to the limit must hold it with 80 % power. 0 where that side is not bounded or more would not narrow it; infinite
    where the figure lies on the limit.
    """
    if figure.value is None or not figure.n:
        return 0.0
    gap = limit.value - figure.value
    bound = figure.high if gap > 0 else figure.low
    if bound is None:
        return 0.0
    if gap == 0:
        return math.inf
    half = (bound - figure.value) * (1 + Z_POWER / NormalDist().inv_cdf((1 + level) / 2))
    return max(0.0, (half / gap) ** 2 - 1)


def headroom(limit: Limit, value: float | None) -> float | None:
    """Return the share of the limit that is left: 0.2 is 20 % to spare, negative is over; None where the limit is 0."""
    if value is None or limit.value == 0:
        return None
    left = limit.value - value if limit.metric.direction == "at most" else value - limit.value
    return left / abs(limit.value)


def worst(outcomes: Sequence[Outcome]) -> Outcome:
    """Return fail before unknown before pass; unknown where there is nothing."""
    if "fail" in outcomes:
        return "fail"
    return "unknown" if "unknown" in outcomes or not outcomes else "pass"


def quorum_of(model: str, quorum: Quorum, boards: Sequence[BoardVerdict]) -> QuorumVerdict:
    """Return whether enough boards pass.

    A board that was not reached is listed apart. It may still pass, so it can leave the quorum undecided, but it
    never takes a failing board's place: the quorum fails as soon as the boards that failed leave too few.
    """
    own = [board for board in boards if board.model == model and (not quorum.boards or board.device in quorum.boards)]
    by_outcome: dict[str, list[str]] = {"pass": [], "fail": [], "unknown": []}
    for board in own:
        by_outcome[board.outcome].append(board.device)
    if quorum.boards:
        reached = {board.device for board in own}
        not_reached = [name for name in quorum.boards if name not in reached]
    else:
        not_reached = [f"board {index + 1} of {quorum.total}" for index in range(len(own), quorum.total)]
    outcome: Outcome = "unknown"
    if len(by_outcome["pass"]) >= quorum.required:
        outcome = "pass"
    elif max(quorum.total, len(own)) - len(by_outcome["fail"]) < quorum.required:
        outcome = "fail"
    return QuorumVerdict(
        model=model,
        required=quorum.required,
        total=quorum.total,
        passed=by_outcome["pass"],
        failed=by_outcome["fail"],
        unknown=by_outcome["unknown"],
        not_reached=not_reached,
        outcome=outcome,
    )
