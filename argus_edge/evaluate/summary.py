"""What a report comes to: P, CDC and RR as `score` computes them, without their intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from argus_edge.schema.evaluation import Cell, EvalReport
from argus_edge.score.formulas import capability, consistency_by_task, mean_perturbed, robustness

__all__ = ["Summary", "summarise"]


@dataclass(frozen=True)
class Summary:
    """Capability, consistency and robustness of one report; None where there is none, with the reason."""

    capability: float | None
    consistency: float | None
    robustness: float | None
    reasons: dict[str, str]


def summarise(report: EvalReport) -> Summary:
    """Return P, CDC and RR of a report over its cells, optional ones left out (docs/score.md has the formulas)."""
    cells = [cell for cell in report.cells if not cell.optional]
    reasons: dict[str, str] = {}
    if not cells:
        return Summary(None, None, None, {"P": "only optional cells were measured"})
    keys: list[tuple[str, str]] = [(cell.task, cell.dataset) for cell in cells]
    p = capability(keys, np.array([cell.clean.s for cell in cells]))
    cdc = consistency_by_task(keys, np.array([cell.clean.s for cell in cells]))
    if np.isnan(cdc):
        reasons["CDC"] = "no task was measured on two datasets" if p > 0 else "P is 0"
    return Summary(
        capability=float(p),
        consistency=None if np.isnan(cdc) else float(cdc),
        robustness=_robustness(cells, keys, reasons),
        reasons=reasons,
    )


def _robustness(cells: list[Cell], keys: list[tuple[str, str]], reasons: dict[str, str]) -> float | None:
    grids: list[dict[tuple[str, str, int], npt.NDArray[np.float64]]] = [
        {(m.modality, m.perturbation, m.severity): np.asarray(m.s) for m in cell.measurements if not m.clean}
        for cell in cells
    ]
    present = [index for index, grid in enumerate(grids) if grid]
    if not present:
        reasons["RR"] = "nothing was perturbed (--perturb)"
        return None
    perturbed = capability([keys[i] for i in present], np.array([mean_perturbed(grids[i]) for i in present]))
    clean = capability([keys[i] for i in present], np.array([cells[i].clean.s for i in present]))
    ratio = robustness(perturbed, clean)
    if np.isnan(ratio):
        reasons["RR"] = "P is 0"
        return None
    return float(ratio)
