"""Reports made by hand, small enough that a score can be worked out on paper."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from argus_edge.reports import Found
from argus_edge.schema.agent import DeviceFacts, MemoryFigures, Scenario, Warmup
from argus_edge.schema.bench import (
    BenchedDevice,
    BenchedModel,
    BenchReport,
    Estimate,
    Figures,
    MemoryHeadline,
    Setup,
    Validity,
)
from argus_edge.schema.bench import Measurement as Timed
from argus_edge.schema.bundle import BundleFile, BundleManifest, Component, MacCount, Step, UnitOfWork
from argus_edge.schema.evaluation import Cell, Column, DatasetInfo, EvalReport, Measurement, ModelInfo, Perturbation
from argus_edge.schema.judge import Breakdown, Group, JudgeCalibration, JudgedMean, TaskReport


def sha(name: str) -> str:
    """Return a stable stand-in for a hash."""
    return name.encode().hex().ljust(64, "0")[:64]


def column(values: np.ndarray, dtype: str = "uint8") -> Column:
    """Return an array as a column."""
    values = np.asarray(values)
    raw = np.ascontiguousarray(values.astype(np.dtype(dtype).newbyteorder("<"))).tobytes()
    return Column.from_bytes(raw, dtype, list(values.shape))  # type: ignore[arg-type]


def hits(rate: float, images: int, seed: int = 0) -> np.ndarray:
    """Return 0/1 hits, one an image, of exactly the rate (rounded to an image)."""
    values = np.zeros(images, dtype=int)
    values[: round(rate * images)] = 1
    return np.random.default_rng(seed).permutation(values)


def reasoning(correct: np.ndarray) -> dict[str, Column]:
    """Return the statistics of a reasoning cell with one question an image."""
    return {"hits": column(correct), "questions": column(np.ones_like(correct))}


def retrieval(correct: np.ndarray) -> dict[str, Column]:
    """Return the statistics of a retrieval cell with the same hits both ways."""
    one = column(np.ones_like(correct))
    return {"i2t_hits": column(correct), "i2t_queries": one, "t2i_hits": column(correct), "t2i_queries": one}


STATISTICS = {"retrieval": retrieval, "reasoning": reasoning}


def measured(task: str, condition: tuple[str, str, int], correct: np.ndarray) -> Measurement:
    """Return a cell's measurement under a condition, with the hits as given and chance 0."""
    modality, perturbation, severity = condition
    rate = float(correct.mean())
    return Measurement(
        modality=modality,  # type: ignore[arg-type]
        perturbation=perturbation,
        severity=severity,
        headline=rate,
        s=rate,
        metrics={},
        statistics=STATISTICS[task](correct),
    )


def evaluation(
    name: str,
    clean: dict[tuple[str, str], float],
    *,
    perturbed: dict[tuple[str, str], dict[tuple[str, str, int], float]] | None = None,
    images: int = 200,
    chance: float = 0.0,
    dataset_sha: str = "data",
    prompt: str = "a photo",
    seed: int = 0,
) -> Found[EvalReport]:
    """Return an eval report with the given clean rates per (task, dataset), and perturbed ones per condition."""
    cells = []
    for index, ((task, dataset), rate) in enumerate(clean.items()):
        conditions = {("none", "clean", 0): rate, **(perturbed or {}).get((task, dataset), {})}
        cells.append(
            Cell(
                task=task,  # type: ignore[arg-type]
                dataset=dataset,
                method="by hand",
                headline="rate",
                chance=chance,
                chance_is="given",
                measurements=[
                    measured(task, condition, hits(value, images, seed + 31 * index))
                    for condition, value in conditions.items()
                ],
            )
        )
    grid = sorted({key[:2] for grid in (perturbed or {}).values() for key in grid})
    report = EvalReport(
        model=ModelInfo(
            name=name,
            kind="bundle",
            family="clip",
            precision="int8",
            sha256=sha(name),
            bundle_sha256=sha(name),
            capabilities=[],
        ),
        datasets=[
            DatasetInfo(
                name=dataset,
                kind=dataset,
                split="test",
                sha256=sha(dataset_sha),
                images=images,
                captions=images,
                questions=images,
                image_ids=[str(i) for i in range(images)],
            )
            for dataset in dict.fromkeys(dataset for _, dataset in clean)
        ],
        cells=cells,
        perturbation_set="custom" if grid else "none",
        perturbations=[Perturbation(name=n, modality=m, severities=[1, 2]) for m, n in grid],  # type: ignore[arg-type]
        prompts={"retrieval": prompt},
        compute="cpu",
        dtype="float32",
        batch_size=1,
        threads=1,
    )
    return found_in(f"{name}.eval.json", report)


def bench(
    name: str,
    *,
    device: str = "pi5",
    p50: float = 0.05,
    spread: float = 0.02,
    memory: int = 200_000_000,
    macs: float | None = 4.4e9,
    throughput: float | None = None,
    valid: bool | None = True,
    unit: str = "one image plus one text embedded",
    scenario: str = "single-stream",
) -> Found[BenchReport]:
    """Return a bench report of one measurement."""

    def estimate(value: float | None) -> Estimate:
        if value is None:
            return Estimate(value=None, reason="withheld")
        return Estimate(value=value, low=value * (1 - spread), high=value * (1 + spread), n=1000, n_eff=500)

    measurement = Timed(
        component="end-to-end",
        state="done",
        unit_of_work=unit,
        runtime="onnxruntime",
        memory=MemoryFigures(peak_rss_load=memory, peak_rss_steady=memory // 2),
        memory_headline=MemoryHeadline(bytes=memory, memory_kind="peak-rss"),
        figures=Figures(
            count=1000,
            window_s=50,
            p50=estimate(p50),
            p90=estimate(p50 * 1.1),
            p95=estimate(p50 * 1.2),
            p99=estimate(p50 * 1.5),
            mean_s=p50,
            min_s=p50 * 0.9,
            max_s=p50 * 2,
            throughput=estimate(throughput if throughput is not None else 1 / p50),
        ),
        validity=Validity(valid=valid),
    )
    report = BenchReport(
        run=f"run-{name}-{device}",
        device=BenchedDevice(name=device, profile="pi5", facts=DeviceFacts(wire=1, arch="aarch64", python="3.11.2")),
        model=BenchedModel(name=name, sha256=sha(name), format="onnx", precision="int8", is_bundle=True, macs=macs),
        setup=Setup(
            scenario=Scenario(name=scenario),  # type: ignore[arg-type]
            warmup=Warmup(),
            runtime="onnxruntime",
            provider="cpu",
            threads=4,
            inputs="golden",
        ),
        measurements=[measurement],
        validity=Validity(valid=valid),
        headline="end-to-end",
    )
    return found_in(f"{name}.{device}.{scenario}.bench.json", report)


def bundle(
    name: str = "clip", *, gmacs: float = 4.4, weights: int = 350_000_000, opset: int = 18, precision: str = "fp32"
) -> Found[BundleManifest]:
    """Return the manifest of a bundle of one image encoder."""
    component = Component(
        name="image",
        role="image-encoder",
        format="onnx",
        precision=precision,  # type: ignore[arg-type]
        file=BundleFile(path="image.onnx", sha256=sha("f"), bytes=weights + 1000),
        inputs=[],
        outputs=[],
        params=weights // 4,
        weight_bytes=weights,
        macs=[MacCount(dims={"batch": 1}, macs=int(gmacs * 1e9), by_counter={}, disagreement=0.0)],
        opset=opset,
        ir_version=8,
        converter="by hand",
    )
    return found_in(
        f"{name}/manifest.json",
        BundleManifest(
            name=name,
            family="clip",
            architecture="CLIPModel",
            source_id=name,
            format="onnx",
            precision=precision,  # type: ignore[arg-type]
            random_weights=True,
            parity_passed=True,
            components=[component],
            unit_of_work=UnitOfWork(
                task="retrieval", description="one image", steps=[Step(component="image", phase="encode")]
            ),
        ),
    )


def found_in(name: str, artifact):
    return Found(Path(name), sha(name), artifact)


def judged(
    model: str | None,
    mean: float,
    *,
    error: float = 0.1,
    cell: tuple[str, str] | None = ("captioning", "coco"),
    advice: str = "score",
    labelled: int = 202,
    unlabelled: int = 800,
    task: str = "captioning",
) -> JudgedMean:
    """Return a judged mean on the scale 1..5 whose interval is the estimate ± two standard errors."""
    low, high = mean - 2 * error, mean + 2 * error
    return JudgedMean(
        task=task,
        model=model,
        cell=cell,
        mean=mean,
        lower=low,
        upper=high,
        standard_error=error,
        degrees_of_freedom=labelled - 2,
        unit_mean=(mean - 1) / 4,
        unit_lower=(low - 1) / 4,
        unit_upper=(high - 1) / 4,
        unit_standard_error=error / 4,
        labelled=labelled,
        unlabelled=unlabelled,
        weight=0.5,
        width_ratio=0.8,
        judge_mean=mean,
        advice=advice,  # type: ignore[arg-type]
    )


def calibration(*means: JudgedMean, judge: str = "a judge", levels: int = 5) -> Found[JudgeCalibration]:
    """Return a judge's calibration that says no more than its judged means."""
    whole = Breakdown(name="all", rows=200, coverage=0.9, width=2, coverage_adjusted=0.9, width_adjusted=2)
    tasks = {mean.task: mean.advice for mean in means}
    report = JudgeCalibration(
        judges=[judge],
        levels=levels,
        alpha=0.1,
        method="integer",
        seed=0,
        labels="human_score",
        floor=-11.5,
        rows=200,
        groups=[Group(name="all", rows=200, calibration_rows=100, finite=True)],
        grouping={},
        state={},
        feature_quantiles={},
        overall=whole,
        tasks=[
            TaskReport(
                task=task,
                rows=200,
                coverage=0.9,
                width=2,
                width_adjusted=2,
                pearson=0.5,
                spearman=0.5,
                gap=0.0,
                decoupled=False,
                advice=advice,
                reason=f"because it is to {advice}",
            )
            for task, advice in tasks.items()
        ],
        judged=list(means),
    )
    return found_in(f"{judge}.judge.json", report)
