"""Where units of work are carried out: in this process, or on a Ray cluster."""

from __future__ import annotations

from dataclasses import dataclass

from argus_edge.registry import Registry

__all__ = ["BACKENDS", "BackendOptions"]


@dataclass(frozen=True)
class BackendOptions:
    """How a cluster is reached and how many workers are asked of it; None leaves it to the backend."""

    workers: int | None = None
    address: str | None = None


# Each class is made with (ModelSpec, BackendOptions) and has: facts, what the model can do; run(job, units), which
# yields (unit, result) in any order; close().
BACKENDS = Registry(
    "backend",
    {
        "local": "argus_edge.evaluate.backends.local:LocalBackend",
        "ray": "argus_edge.evaluate.backends.ray:RayBackend",
    },
)
