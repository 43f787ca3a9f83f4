"""The tasks: retrieval, captioning and reasoning."""

from __future__ import annotations

from argus_edge.registry import Registry

__all__ = ["TASKS"]

TASKS = Registry(
    "task",
    {
        "retrieval": "argus_edge.evaluate.tasks.retrieval:Retrieval",
        "captioning": "argus_edge.evaluate.tasks.captioning:Captioning",
        "reasoning": "argus_edge.evaluate.tasks.reasoning:Reasoning",
    },
)
