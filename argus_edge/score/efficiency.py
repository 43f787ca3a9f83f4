"""E: latency, peak memory, MACs and throughput of each model on a device, against the cohort's best or a budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from argus_edge.schema.bench import Estimate
from argus_edge.schema.score import EfficiencyTerm
from argus_edge.score.cohort import Benched, headline
from argus_edge.score.formulas import higher_is_better, lower_is_better

Array = npt.NDArray[np.float64]
TERMS: tuple[EfficiencyTerm, ...] = ("latency", "memory", "macs", "throughput")
Z95 = 1.959963984540054


@dataclass(frozen=True)
class Costs:
    """What one model costs on one device: value and standard error of its logarithm, None where not measured."""

    latency_s: tuple[float, float] | None
    memory_bytes: float | None
    memory_kind: str | None
    macs: float | None
    throughput: tuple[float, float] | None
    unit_of_work: str

    def value(self, term: EfficiencyTerm) -> float | None:
        """Return the value that a term is made of."""
        pair = {"latency": self.latency_s, "throughput": self.throughput}.get(term)
        if pair is not None:
            return pair[0]
        return {"memory": self.memory_bytes, "macs": self.macs}.get(term)


def log_error(estimate: Estimate) -> float:
    """Return the standard error of a figure's logarithm from its interval; 0 where it has none.

    The intervals are wide to both sides of a positive figure, so the logarithm is the scale on which they are nearly
    symmetric.
    """
    if estimate.low is None or estimate.high is None or estimate.low <= 0:
        return 0.0
    return math.log(estimate.high / estimate.low) / (2 * Z95)


def _figure(found_summary: Mapping[str, Estimate], own: Estimate | None, name: str) -> tuple[float, float] | None:
    # The run-to-run figure over repeats where there are some: its interval holds what a single run cannot know. Of one
    # run, and of two, it has none: then the error is that of the run's own samples.
    whole = found_summary.get(name)
    estimate = whole if whole is not None and (whole.n > 1 or own is None) else own
    if estimate is None or estimate.value is None or estimate.value <= 0:
        return None
    return estimate.value, log_error(estimate) or (log_error(own) if own is not None else 0.0)


def costs_of(benched: Benched) -> Costs:
    """Read a model's costs on a device from its bench reports."""
    report = benched.latency.artifact
    measured = headline(report)
    is_offline = benched.offline is benched.latency
    latency = None
    if not is_offline:
        latency = _figure(report.summary, measured.figures.p50 if measured.figures else None, "p50")
    throughput = None
    if benched.offline is not None:
        offline = headline(benched.offline.artifact)
        throughput = _figure(
            benched.offline.artifact.summary, offline.figures.throughput if offline.figures else None, "throughput"
        )
    return Costs(
        latency_s=latency,
        memory_bytes=measured.memory_headline.bytes,
        memory_kind=measured.memory_headline.memory_kind,
        macs=report.model.macs,
        throughput=throughput,
        unit_of_work=measured.unit_of_work,
    )


def shared_terms(costs: Sequence[Costs], references: Mapping[EfficiencyTerm, float] | None) -> list[EfficiencyTerm]:
    """Return the terms that every model has, and that the budget (where one is given) has a limit for."""
    return [
        term
        for term in TERMS
        if all(cost.value(term) is not None for cost in costs) and (references is None or term in references)
    ]


def draw(costs: Costs, term: EfficiencyTerm, replicates: int, rng: np.random.Generator) -> Array:
    """Return replicates of a term's value, shape (replicates,): log-normal where it has an interval, else constant."""
    pair = {"latency": costs.latency_s, "throughput": costs.throughput}.get(term)
    if pair is None:
        value = costs.value(term)
        return np.full(replicates, np.nan if value is None else value)
    return np.asarray(pair[0] * np.exp(pair[1] * rng.standard_normal(replicates)))


def term_value(term: EfficiencyTerm, x: Array, reference: Array) -> Array:
    """Return a term of E in [0, 1]."""
    return higher_is_better(x, reference) if term == "throughput" else lower_is_better(x, reference)


def efficiencies(
    values: Mapping[EfficiencyTerm, Array], references: Mapping[EfficiencyTerm, float] | None
) -> tuple[Array, dict[EfficiencyTerm, Array]]:
    """Return E of each model and its terms.

    Parameters
    ----------
    values
        Term to an array of shape (models, ...): one column, or replicates. The cohort's reference is drawn again in
        each column.
    references
        Term to the budget's limit; None: the best of the cohort.

    Returns
    -------
    (E, terms)
        E of shape (models, ...), and each term of that shape.
    """
    terms = {}
    for term, x in values.items():
        if references is not None:
            reference = np.asarray(references[term])
        else:
            reference = x.max(axis=0) if term == "throughput" else x.min(axis=0)
        terms[term] = term_value(term, x, reference)
    return np.mean(list(terms.values()), axis=0), terms
