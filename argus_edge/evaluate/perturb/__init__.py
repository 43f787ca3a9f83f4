"""Perturbations of images and texts, seeded per item: any order, batch or shard gives the same bytes."""

from __future__ import annotations

from argus_edge.evaluate.perturb.apply import perturb_image, perturb_text
from argus_edge.evaluate.perturb.registry import IMAGE_PERTURBATIONS, SEVERITIES, TEXT_PERTURBATIONS
from argus_edge.evaluate.perturb.sets import PERTURBATION_SETS, PerturbationLine

__all__ = [
    "IMAGE_PERTURBATIONS",
    "PERTURBATION_SETS",
    "SEVERITIES",
    "TEXT_PERTURBATIONS",
    "PerturbationLine",
    "perturb_image",
    "perturb_text",
]
