"""What a score says beside its figures: the order of its rows, who has no rank, who outranks whom, what was judged."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from argus_edge.schema.score import DeviceScore, JudgedScore, ScoredModel, ScoreReport


def by_rank(report: ScoreReport) -> list[tuple[ScoredModel, DeviceScore | None]]:
    """Return the rows of the table: device by device the first one first, then what has no rank, then no device."""
    rows: list[tuple[ScoredModel, DeviceScore | None]] = [
        (model, device) for model in report.models for device in (model.devices or (None,))
    ]
    order = {name: place for place, name in enumerate(dict.fromkeys(row[1].device for row in rows if row[1]))}

    def place(row: tuple[ScoredModel, DeviceScore | None]) -> tuple[float, float]:
        device = row[1]
        if device is None:
            return float("inf"), 0.0
        return order[device.device], float("inf") if device.rank is None else device.rank

    return sorted(rows, key=place)


def score_notes(report: ScoreReport) -> list[str]:
    """Return the sentences that stand below the table of a score, for a terminal and a page alike."""
    devices = [(model, device) for model in report.models for device in model.devices]
    lines = [
        f"{model.name} is not ranked: {model.not_ranked_because}."
        for model in report.models
        if model.not_ranked_because
    ]
    lines += [
        f"{model.name} on {device.device} has no ARGUS: {device.argus.reason}."
        for model, device in devices
        if device.argus.value is None
    ]
    lines += [
        f"{model.name} on {device.device}: the bench run is not valid; its figures are shown, not trusted."
        for model, device in devices
        if device.valid is False
    ]
    lines += [
        f"{pair.model} outranks {pair.other} on {pair.device} with probability {pair.probability:.2f}."
        for pair in report.outranking
        if pair.probability > 0.5 or (pair.probability == 0.5 and pair.model < pair.other)
    ]
    lines += [
        f"On {flip.device}, first place goes from {flip.before} to {flip.after} "
        f"at an efficiency weight of {flip.at_efficiency_weight:.2f}."
        for flip in report.flips
    ]
    if report.reliability is not None:
        lines.append(report.reliability.sentence)
    lines += judged_notes(report.judged)
    lines += [f"Left out: {line}." for line in report.excluded]
    return lines + report.notes


def judged_notes(judged: Iterable[JudgedScore]) -> list[str]:
    """Return a sentence on each judged cell: scored by the judge, ranked by it, or left to the measured metric."""
    lines = []
    for (task, dataset), group in itertools.groupby(judged, key=lambda each: (each.task, each.dataset)):
        scores = list(group)
        head = f"{task} on {dataset}, judged by {', '.join(dict.fromkeys(each.judge for each in scores))}"
        if scores[0].entered:
            means = "; ".join(
                f"{each.model} {each.value:.3f} [{each.low:.3f}, {each.high:.3f}] "
                f"({each.labelled} of {each.labelled + each.unlabelled} rows labelled)"
                for each in scores
            )
            lines.append(f"{head}: the calibrated mean is the metric: {means}.")
            continue
        ranked = sorted((each for each in scores if each.rank is not None), key=lambda each: each.rank or 0)
        if len(ranked) > 1:
            order = ", ".join(f"{each.rank}. {each.model}" for each in ranked)
            why = "; ".join(
                dict.fromkeys(f"{each.model}: {each.advice}, {each.reason}" for each in scores if each.reason)
            )
            lines.append(f"{head}: ranks only, the judge's scores are not in the score: {order} ({why}).")
        else:
            why = "; ".join(f"{each.model}: {each.advice}, {each.reason}" for each in scores)
            lines.append(f"{head}: left out of the score ({why}).")
    return lines
