"""The published ARGUS figures, as published: under their own normalisation, not comparable digit by digit."""

from __future__ import annotations

from dataclasses import dataclass

SOURCE = "Can Argus Judge Them All? Comparing VLMs Across Domains (ARGUS-EVAL), A100"
CAVEAT = "as published, under its own normalisation: not comparable digit by digit"


@dataclass(frozen=True)
class Published:
    """A row of the published table; None where it gives no figure."""

    model: str
    latency_ms: float | None = None
    memory_gb: float | None = None
    robustness: float | None = None
    argus: float | None = None
    coco_r1: float | None = None
    bleu4: float | None = None
    cider: float | None = None
    clevr: float | None = None


QUALITY = ("COCO R@1", "BLEU-4", "CIDEr", "CLEVR")


def quality(row: Published) -> list[tuple[str, float]]:
    """Return what is shown of a row's figures of quality, in their order, with what each is sorted by."""
    figures = (row.coco_r1, row.bleu4, row.cider, row.clevr)
    return [("–", float("inf")) if figure is None else (f"{figure:.1f}", figure) for figure in figures]


PUBLISHED = (
    Published("CLIP", latency_ms=31, memory_gb=0.9),
    Published("Gemma-3-4B", latency_ms=138, robustness=0.901, argus=0.891),
    Published(
        "Qwen2.5-VL-3B",
        latency_ms=142,
        robustness=0.890,
        argus=0.868,
        coco_r1=82.7,
        bleu4=47.2,
        cider=141.6,
        clevr=97.4,
    ),
)
