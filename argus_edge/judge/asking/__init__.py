"""Asking a judge: prompts, backends, and reading the score-token log-probabilities."""

from argus_edge.registry import Registry

__all__ = ["BACKENDS"]

BACKENDS = Registry(
    "judge backend",
    {
        "local": "argus_edge.judge.asking.local:LocalJudge",
        "server": "argus_edge.judge.asking.server:ServerJudge",
    },
)
