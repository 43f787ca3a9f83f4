"""The sets of perturbations that an evaluation runs by name; what is in them is data, sets.yaml."""

from __future__ import annotations

from importlib.resources import files
from typing import Literal, NamedTuple

import yaml

__all__ = ["PERTURBATION_SETS", "PerturbationLine"]


class PerturbationLine(NamedTuple):
    """One perturbation of a set and the severities that it is run at."""

    name: str
    modality: Literal["image", "text"]
    severities: tuple[int, ...]


def _read() -> dict[str, tuple[PerturbationLine, ...]]:
    document = yaml.safe_load((files("argus_edge.evaluate.perturb") / "sets.yaml").read_text("utf-8"))
    return {
        name: tuple(
            PerturbationLine(perturbation, modality, tuple(severities))
            for modality, lines in content.items()
            for perturbation, severities in lines.items()
        )
        for name, content in document.items()
    }


PERTURBATION_SETS: dict[str, tuple[PerturbationLine, ...]] = _read()
"""``quick``, ``standard`` and ``full``."""
