"""Units one after the other in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from argus_edge.evaluate.backends import BackendOptions
from argus_edge.evaluate.models.base import ModelSpec
from argus_edge.evaluate.store import Result
from argus_edge.evaluate.units import Job, Unit
from argus_edge.evaluate.worker import ModelFacts, Worker

__all__ = ["LocalBackend"]


class LocalBackend:
    """One worker, here."""

    def __init__(self, spec: ModelSpec, options: BackendOptions) -> None:
        del options  # a cluster's
        self._worker = Worker(spec)

    @property
    def facts(self) -> ModelFacts:
        """What the model can do."""
        return self._worker.facts

    def run(self, job: Job, units: Sequence[Unit]) -> Iterator[tuple[Unit, Result]]:
        """Yield each unit with its result, in order."""
        self._worker.begin(job)
        for unit in units:
            yield unit, self._worker.run(unit)

    def close(self) -> None:
        """End the worker's threads."""
        self._worker.close()
