"""A condition is what was done to the inputs: nothing, or one perturbation at one severity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from PIL import Image

from argus_edge.errors import UsageError
from argus_edge.evaluate.perturb import (
    IMAGE_PERTURBATIONS,
    PERTURBATION_SETS,
    SEVERITIES,
    TEXT_PERTURBATIONS,
    perturb_image,
    perturb_text,
)
from argus_edge.schema.evaluation import Modality, Perturbation

__all__ = ["CLEAN", "Condition", "conditions_of", "image_perturber", "perturbation_lines", "text_perturber"]


@dataclass(frozen=True)
class Condition:
    """Clean, or a perturbation by name at a severity from 1 to 5."""

    modality: Modality = "none"
    perturbation: str = "clean"
    severity: int = 0

    def __str__(self) -> str:
        return self.perturbation if self.modality == "none" else f"{self.perturbation} {self.severity}"


CLEAN = Condition()


def conditions_of(grid: Sequence[Perturbation]) -> list[Condition]:
    """Return clean and then every perturbation of a grid at every severity."""
    return [CLEAN] + [Condition(line.modality, line.name, severity) for line in grid for severity in line.severities]


def perturbation_lines(text: str) -> tuple[str, tuple[Perturbation, ...]]:
    """Return the set's name and its lines: ``none``, a set by name, or ``NAME[:SEVERITIES],…`` (``fog:1-3,ocr:5``).

    Raises
    ------
    UsageError
        No such set or perturbation, or a severity outside 1 to 5.
    """
    if text == "none":
        return "none", ()
    if text in PERTURBATION_SETS:
        lines = PERTURBATION_SETS[text]
        return text, tuple(
            Perturbation(name=line.name, modality=line.modality, severities=list(line.severities)) for line in lines
        )
    found: dict[str, Perturbation] = {}
    for part in text.split(","):
        name, _, severities = part.strip().partition(":")
        if name not in IMAGE_PERTURBATIONS and name not in TEXT_PERTURBATIONS:
            known = ", ".join([*PERTURBATION_SETS, *IMAGE_PERTURBATIONS, *TEXT_PERTURBATIONS])
            raise UsageError(f"Unknown perturbation {name!r}.", next_step=f"choose among: none, {known}")
        if name in found:
            raise UsageError(f"The perturbation {name} is given twice.", next_step="give its severities as 1-5")
        modality: Literal["image", "text"] = "image" if name in IMAGE_PERTURBATIONS else "text"
        found[name] = Perturbation(name=name, modality=modality, severities=_severities(severities or "1-5"))
    return "custom", tuple(found.values())


def _severities(text: str) -> list[int]:
    first, _, last = text.partition("-")
    if not (first.isdigit() and (last or first).isdigit()):
        raise UsageError(f"Severities {text!r} are not a number or a range.", next_step="write 3 or 1-5")
    found = [severity for severity in range(int(first), int(last or first) + 1) if severity in SEVERITIES]
    if not found or len(found) != int(last or first) - int(first) + 1:
        raise UsageError(f"Severities go from 1 to 5, not {text}.")
    return found


def image_perturber(condition: Condition, seed: int, item: str) -> Callable[[Image.Image], Image.Image] | None:
    """Return what the condition does to the image of an item; None where it does nothing to images."""
    if condition.modality != "image":
        return None

    def apply(image: Image.Image) -> Image.Image:
        pixels = perturb_image(np.asarray(image), condition.perturbation, condition.severity, item, seed)
        return Image.fromarray(pixels)

    return apply


def text_perturber(condition: Condition, seed: int) -> Callable[[str, str], str]:
    """Return what the condition does to (text, item)."""
    if condition.modality != "text":
        return lambda text, item: text
    return lambda text, item: perturb_text(text, condition.perturbation, condition.severity, item, seed)
