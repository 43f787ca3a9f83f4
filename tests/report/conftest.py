"""A folder of reports as a team would have them, with a hostile name among them."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
import pytest

from argus_edge.artifacts import write_artifact
from argus_edge.schema.agent import SeriesPoint
from argus_edge.schema.bench import EncodedArray, ValidityCause
from tests.support.reports import bench, evaluation

CELLS = {("retrieval", "coco"): 0.6, ("retrieval", "flickr30k"): 0.8, ("reasoning", "clevr"): 0.5}
HOSTILE = "<script>document.title='stolen'</script>"
BUDGET = """\
budget: 1
name: doorbell
limits:
  latency_p95: 120 ms
  peak_memory: 900 MB
  capability: 0.3
"""


def _perturbed(kept: float) -> dict:
    return {
        place: {("image", name, severity): rate * kept**severity for name in ("fog", "noise") for severity in (1, 2)}
        for place, rate in CELLS.items()
    }


def fill(
    folder: Path, models: dict[str, float], devices: tuple[str, ...] = ("pi5-a", "nano"), calls: int = 500
) -> None:
    """Write an eval report of each model, and a bench report of it on each device; the nano throttles."""
    rng = np.random.default_rng(0)
    for index, (name, speed) in enumerate(models.items()):
        report = evaluation(name, CELLS, perturbed=_perturbed(0.9 - 0.05 * index)).artifact
        report.model.source_id, report.model.precision = "clip", "fp32" if index == 0 else "int8"
        write_artifact(report, folder / f"m{index}.eval.json")
        for device in devices:
            run = bench(name, device=device, p50=speed).artifact
            run.device.facts.firmware = f"firmware of {device}"
            run.device.facts.memory_total_bytes = 4_000_000_000
            (measured,) = run.measurements
            latency = (rng.gamma(20, speed / 20, calls) * 1e9).astype("<u4")
            measured.latency = EncodedArray(
                dtype="<u4", unit="ns", count=calls, data=base64.b64encode(latency.tobytes()).decode()
            )
            measured.series = [
                SeriesPoint(t=float(t), took_s=0, values={"temperature_c": 50.0 + t, "clock_khz": 2.4e6})
                for t in range(40)
            ]
            if device == "nano":
                measured.validity.valid = False
                measured.validity.causes = [ValidityCause(code="throttled", detail="throttled from 20 s", from_s=20.0)]
                run.validity = measured.validity
            write_artifact(run, folder / f"m{index}.{device}.bench.json")


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    """Return a folder with two models on two boards and a budget beside them."""
    folder = tmp_path / "reports"
    folder.mkdir()
    fill(folder, {"clip-fp32": 0.09, HOSTILE: 0.05})
    (tmp_path / "budget.yaml").write_text(BUDGET)
    return folder
