"""Units spread over the machines and GPUs of a Ray cluster; a worker that dies is made up for."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from argus_edge.errors import ArgusError, MissingDependencyError, RunFailedError, UsageError
from argus_edge.evaluate.backends import BackendOptions
from argus_edge.evaluate.models.base import ModelSpec
from argus_edge.evaluate.store import Result
from argus_edge.evaluate.units import Job, Unit
from argus_edge.evaluate.worker import ModelFacts, Worker

__all__ = ["RayBackend"]

# A unit that kills its worker this often is at fault itself (out of memory, a crash in the model).
MAX_TRIES = 3

CONNECT_TIMEOUT_S = 10.0

_SAME_EVERYWHERE = "model, data and your class must lie under the same paths on all machines, with the same packages"


class _RemoteWorker:
    """The worker in an actor's process; errors come back as plain values, since Ray would wrap them in its own."""

    def __init__(self, spec: ModelSpec) -> None:
        self._worker: Worker | None = None
        self._failure: dict[str, Any] | None = None
        try:
            self._worker = Worker(spec)
        except ArgusError as error:
            self._failure = _described(error)
        except Exception as error:  # the same code, data or library need not be on every machine
            what = f"A worker cannot be started: {type(error).__name__}: {str(error)[:300]}"
            self._failure = _described(RunFailedError(what, where=socket.gethostname(), next_step=_SAME_EVERYWHERE))

    def facts(self) -> ModelFacts | dict[str, Any]:
        return self._failure if self._worker is None else self._worker.facts  # type: ignore[return-value]

    def begin(self, job: Job) -> None:
        if self._worker is not None:
            self._worker.begin(job)

    def run(self, unit: Unit) -> tuple[bool, Any]:
        if self._worker is None:
            return False, self._failure
        try:
            return True, self._worker.run(unit)
        except ArgusError as error:
            return False, _described(error)


def _described(error: ArgusError) -> dict[str, Any]:
    return {"class": type(error).__name__, "what": error.what, "where": error.where, "next_step": error.next_step}


def _raised(failure: dict[str, Any]) -> ArgusError:
    from argus_edge import errors

    kind: type[ArgusError] = getattr(errors, failure["class"], RunFailedError)
    if kind is MissingDependencyError:  # its constructor writes the sentence that is in "what" already
        kind = UsageError
    return kind(failure["what"], where=failure["where"], next_step=failure["next_step"])


def _reachable(address: str | None) -> None:
    """Raise ``OSError`` where nothing listens at ``host:port``: Ray itself would try for minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=CONNECT_TIMEOUT_S).close()


class RayBackend:
    """As many workers as the cluster has GPUs (or groups of CPU threads) for, or as were asked for."""

    def __init__(self, spec: ModelSpec, options: BackendOptions) -> None:
        try:
            import ray
        except ImportError as error:
            raise MissingDependencyError("ray", "ray", needed_for="--backend ray") from error
        self._ray: Any = ray
        self._spec = spec
        self._started = not ray.is_initialized()
        if self._started:
            self._connect(options.address)
        gpus = spec.compute.startswith("cuda")
        self._actor = ray.remote(num_cpus=spec.threads, num_gpus=1 if gpus else 0, max_restarts=0)(_RemoteWorker)
        resources = ray.cluster_resources()
        room = int(resources.get("GPU", 0)) if gpus else int(resources.get("CPU", 1) // spec.threads)
        self._count = options.workers or room
        if room < 1 or self._count > room:
            raise UsageError(
                f"The cluster has room for {room} worker(s) of {'one GPU' if gpus else f'{spec.threads} CPU(s)'} each.",
                next_step="fewer --workers, fewer --threads, or a larger cluster",
            )
        self._workers = [self._new_worker() for _ in range(self._count)]
        found = self._answer(self._workers[0].facts.remote())
        if isinstance(found, dict):
            raise _raised(found)
        self.facts: ModelFacts = found

    def _connect(self, address: str | None) -> None:
        try:
            _reachable(address)
            self._ray.init(address=address, log_to_driver=False, include_dashboard=False if address is None else None)
        except Exception as error:  # a node that is slow to start raises a bare Exception
            raise UsageError(
                f"No Ray cluster answers: {str(error)[:200]}",
                where=address or "local",
                next_step="start one (ray start --head) and give its --ray-address",
            ) from error

    def _new_worker(self) -> Any:
        # Every library's own threads, so that a sum is split as it is in one local process with as many threads.
        threads = str(self._spec.threads)
        variables = {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        compute = self._spec.compute if self._spec.compute == "cpu" else "cuda:0"  # Ray shows each worker its own GPU
        spec = ModelSpec(**{**vars(self._spec), "compute": compute})
        return self._actor.options(runtime_env={"env_vars": variables}).remote(spec)

    def _answer(self, asked: Any) -> Any:
        """Return what a worker that is being started answers.

        Raises
        ------
        RunFailedError
            It ended before it could.
        """
        try:
            return self._ray.get(asked)
        except self._ray.exceptions.RayActorError as error:
            raise RunFailedError(
                f"A worker ended while it was started: {str(error)[:300]}",
                where="ray",
                next_step=f"see Ray's logs on its machine (/tmp/ray/session_latest/logs); {_SAME_EVERYWHERE}",
            ) from error

    def run(self, job: Job, units: Sequence[Unit]) -> Iterator[tuple[Unit, Result]]:
        """Yield each unit with its result as they come in.

        Raises
        ------
        ArgusError
            A unit failed in the model, or killed its worker three times.
        """
        ray = self._ray
        shared = ray.put(job)
        self._answer([worker.begin.remote(shared) for worker in self._workers])
        waiting = deque(units)
        tries = dict.fromkeys(units, 0)
        idle = list(self._workers)
        busy: dict[Any, tuple[Unit, Any]] = {}
        while waiting or busy:
            while idle and waiting:
                worker, unit = idle.pop(), waiting.popleft()
                tries[unit] += 1
                busy[worker.run.remote(unit)] = (unit, worker)
            (done,), _ = ray.wait(list(busy), num_returns=1)
            unit, worker = busy.pop(done)
            try:
                good, result = ray.get(done)
            except ray.exceptions.RayActorError as error:
                if tries[unit] >= MAX_TRIES:
                    raise RunFailedError(
                        f"A worker died {MAX_TRIES} times over the same piece of work: {str(error)[:300]}",
                        where=str(unit),
                        next_step="give a smaller --batch-size; what was done is kept",
                    ) from error
                waiting.appendleft(unit)
                worker = self._new_worker()
                self._workers = [*(each for each in self._workers if each is not worker), worker]
                self._answer(worker.begin.remote(shared))
                idle.append(worker)
                continue
            if not good:
                raise _raised(result)
            idle.append(worker)
            yield unit, result

    def close(self) -> None:
        """End the workers, and the cluster where it was started here."""
        for worker in self._workers:
            self._ray.kill(worker)
        if self._started:
            self._ray.shutdown()
