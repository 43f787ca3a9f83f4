"""The figures that a budget can limit: name, unit, direction, and where each is found in the reports."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Direction = Literal["at most", "at least"]
Kind = Literal["latency", "generation", "rate", "memory", "size", "energy", "temperature", "parity", "score", "cell"]


@dataclass(frozen=True)
class Metric:
    """A figure that can be limited.

    Attributes
    ----------
    name
        As written in a budget.
    unit
        Base unit, a key of :data:`argus_edge.gate.units.FACTORS`.
    direction
        ``at most`` where less is better.
    kind
        Which reader finds it.
    meaning
        One line for people.
    """

    name: str
    unit: str
    direction: Direction
    kind: Kind
    meaning: str

    @property
    def highest(self) -> float | None:
        """The highest value that a measurement can have, where there is one."""
        match = CELL.fullmatch(self.name)
        bounded = self.kind == "score" or self.name == "parity_cosine" or (match and not _unbounded(match["metric"]))
        return 1.0 if bounded else None


_TABLE: tuple[tuple[str, str, Direction, Kind, str], ...] = (
    ("latency_p50", "s", "at most", "latency", "median latency of the unit of work"),
    ("latency_p90", "s", "at most", "latency", "90th percentile of latency"),
    ("latency_p95", "s", "at most", "latency", "95th percentile of latency"),
    ("latency_p99", "s", "at most", "latency", "99th percentile of latency"),
    ("ttft", "s", "at most", "generation", "median time to first token"),
    ("inter_token", "s", "at most", "generation", "median time between tokens"),
    ("tokens_per_s", "1/s", "at least", "generation", "tokens a second after the first"),
    ("throughput", "1/s", "at least", "rate", "samples a second (an offline run where there is one)"),
    ("peak_memory", "bytes", "at most", "memory", "the headline: the larger of the two peaks of its kind"),
    ("peak_rss", "bytes", "at most", "memory", "largest resident set of the worker, load or steady"),
    ("pss", "bytes", "at most", "memory", "proportional set size after the timed window"),
    ("system_memory", "bytes", "at most", "memory", "what the whole system had less of during the run"),
    ("device_memory", "bytes", "at most", "memory", "peak of the accelerator's own memory"),
    ("file_size", "bytes", "at most", "size", "bytes of the model's files"),
    ("macs", "MACs", "at most", "size", "multiply-accumulates of the unit of work"),
    ("energy", "J", "at most", "energy", "joules an inference above idle"),
    ("temperature", "°C", "at most", "temperature", "hottest sensor reading of the run"),
    ("parity_error", "number", "at most", "parity", "largest absolute error on the board against the host's outputs"),
    ("parity_cosine", "number", "at least", "parity", "smallest cosine on the board against the host's outputs"),
    ("capability", "share", "at least", "score", "P"),
    ("consistency", "share", "at least", "score", "CDC by task"),
    ("robustness", "share", "at least", "score", "RR, raw"),
)
METRICS: dict[str, Metric] = {row[0]: Metric(*row) for row in _TABLE}
# A part of a metric is named after what its questions ask, in the words of whoever wrote them: `accuracy.yes/no`.
CELL = re.compile(r"(?P<dataset>[a-z0-9_-]{1,64})\.(?P<metric>\w[\w@./ +-]{0,63}?)(?P<drop>\.drop)?")


def less_is_better(metric: str) -> bool:
    """Say whether a metric of a dataset (``medr_i2t``) is better where it is lower: the median ranks are."""
    return metric.startswith("medr_")


def _unbounded(metric: str) -> bool:
    return less_is_better(metric) or metric == "cider"


def resolve(name: str) -> Metric:
    """Return the metric of a name: one of the table, or ``dataset.metric`` and ``dataset.metric.drop``.

    Raises
    ------
    ValueError
        No such metric, in words for the user.
    """
    if name in METRICS:
        return METRICS[name]
    match = CELL.fullmatch(name)
    if match is None:
        raise ValueError(
            f"unknown metric {name!r}; one of {', '.join(METRICS)}, or dataset.metric, dataset.metric.drop"
        )
    lower = less_is_better(match["metric"])
    direction: Direction = "at most" if match["drop"] or lower else "at least"
    unit = "number" if lower else "share"
    return Metric(
        name, unit, direction, "cell", "a metric of a dataset" + (", its drop against fp32" if match["drop"] else "")
    )
