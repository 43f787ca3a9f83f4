"""The verbs of the command line as functions; what they need is imported when they are called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from argus_edge.errors import needing

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from argus_edge.bench.request import How
    from argus_edge.bench.watching import Listener
    from argus_edge.judge.calibration import Applied
    from argus_edge.schema.bench import BenchReport
    from argus_edge.schema.bundle import BundleManifest
    from argus_edge.schema.comparison import Comparison
    from argus_edge.schema.evaluation import EvalReport
    from argus_edge.schema.judge import JudgeCalibration, JudgeEvaluation
    from argus_edge.schema.score import ScoreReport
    from argus_edge.schema.sizing import Sizing
    from argus_edge.schema.verdict import Verdict

__all__ = [
    "bench",
    "compare",
    "evaluate",
    "export",
    "judge_apply",
    "judge_evaluate",
    "judge_fit",
    "report",
    "score",
    "size",
    "validate",
]

Say = Callable[[str], None]
"""Takes what a person might want to read meanwhile."""


Several = list[str | Path | None] | tuple[str | Path | None, ...]
"""Models; None stands for ResNet-50 of the onnx package."""


def _quiet(_: str) -> None:
    """Say nothing."""


@overload
def bench(
    model: str | Path | None = None,
    *,
    device: str = "local",
    meter: str | Path | None = None,
    listener: Listener | None = None,
    **how: Unpack[How],
) -> BenchReport: ...


@overload
def bench(
    model: str | Path | None = None,
    *,
    device: list[str] | tuple[str, ...],
    meter: str | Path | None = None,
    listener: Listener | None = None,
    **how: Unpack[How],
) -> list[BenchReport]: ...


@overload
def bench(
    model: Several,
    *,
    device: list[str] | tuple[str, ...] | str = "local",
    meter: str | Path | None = None,
    listener: Listener | None = None,
    **how: Unpack[How],
) -> list[BenchReport]: ...


def bench(
    model: Several | str | Path | None = None,
    *,
    device: list[str] | tuple[str, ...] | str = "local",
    meter: str | Path | None = None,
    listener: Listener | None = None,
    **how: Unpack[How],
) -> BenchReport | list[BenchReport]:
    """Time a model on a device and return the report, which is recorded as well.

    Parameters
    ----------
    model
        A bundle's folder, a ``.onnx``, ``.tflite`` or torch file; None: ResNet-50 of the onnx package. A list: each on
        each device.
    device
        ``"local"``, an entry of the inventory, or ``user@host``. A list: all of them, at the same time.
    meter
        Path of a power meter's CSV.
    listener
        Told what happens, for lists from several threads; see :class:`argus_edge.bench.watching.Listener`.
    **how
        As the options of ``argus-edge bench``; see :class:`argus_edge.bench.request.How`.

    Returns
    -------
    BenchReport or list
        A list, model by model, where the model or the device is one.

    Raises
    ------
    ArgusError
        Each with what happened, where, and the next step; a run that failed raises after it was recorded. Of a list
        all benches are brought to their ends first, and the reports of those that went well are in the record.
    """
    from argus_edge.bench.drive import bench as bench_on
    from argus_edge.bench.prepare import prepare
    from argus_edge.bench.request import make_request, meter_reader
    from argus_edge.devices.inventory import Inventory
    from argus_edge.store.records import Store

    several = not isinstance(model, str | Path | None) or not isinstance(device, str)
    models = [model] if isinstance(model, str | Path | None) else list(model)
    names = [device] if isinstance(device, str) else list(device)
    read = meter_reader(meter)
    prepared = [prepare(make_request(None if each is None else str(each), **how)) for each in models]
    inventory = Inventory()
    entries = [inventory.get(name) for name in names]
    if not several:
        outcome = bench_on(prepared[0], entries[0], Store(), listener=listener, meter=read)
        if outcome.error is not None:
            raise outcome.error
        return outcome.report

    from argus_edge.bench.fleet import Unseen, run
    from argus_edge.bench.matrix import Means, matrix, worst
    from argus_edge.bench.quarantine import Quarantine
    from argus_edge.bench.waiting import Queue
    from argus_edge.interrupts import Interrupts

    means = Means(Store(), read, Queue(), Quarantine(inventory))
    with Interrupts() as interrupts:
        results = run(matrix(prepared, entries, means), Unseen(listener), interrupts)
    error = worst(results, strict=False)
    if error is not None:
        raise error
    return [result.outcome.report for result in results if result.outcome is not None]


def export(model: str | Path, out: str | Path, *, say: Say = _quiet, **options: Any) -> BundleManifest:
    """Turn a model into a checked bundle and return its manifest.

    Parameters
    ----------
    model
        A Hugging Face id, a local folder, or with ``random_weights=True`` a shipped configuration.
    out
        The bundle's folder.
    say
        Told what goes on.
    **options
        ``format``, ``precision``, ``device``, ``opset``, ``calibration`` …: fields of
        :class:`argus_edge.exporters.export.ExportOptions`.

    Raises
    ------
    ParityError
        The exported model does not compute what the original computes.
    """
    with needing("export", "Exporting"):
        from argus_edge.exporters.export import ExportOptions, export_model

    return export_model(ExportOptions(model=str(model), out=Path(out), **options), say)


def evaluate(
    model: str | Path,
    data: Mapping[str, str | Path],
    out: str | Path,
    *,
    perturb: str = "none",
    compute: str = "cpu",
    dtype: str = "auto",
    threads: int | None = None,
    revision: str | None = None,
    features: str | Path | None = None,
    prompts: str | Path | None = None,
    say: Say = _quiet,
    **settings: Any,
) -> EvalReport:
    """Measure capability and robustness on the host; killed at any point, the same call goes on where it was.

    Parameters
    ----------
    model
        A bundle, a Hugging Face id or folder, or a class of your own as ``module:Class``.
    data
        Dataset name to folder.
    out
        Folder of the results.
    perturb
        Name of a perturbation set, or of perturbations with commas between.
    compute, dtype, threads, revision, features
        How the model is loaded; as the options of ``argus-edge eval``.
    prompts
        A file of prompts of your own.
    say
        Told what goes on.
    **settings
        ``tasks``, ``limit``, ``batch_size``, ``seed``, ``backend`` …: fields of
        :class:`argus_edge.evaluate.runner.Settings`.
    """
    import os

    from argus_edge.evaluate.packages import require_packages

    require_packages()
    from argus_edge.evaluate.conditions import perturbation_lines
    from argus_edge.evaluate.models.resolve import resolve_model
    from argus_edge.evaluate.prompts import load_prompts
    from argus_edge.evaluate.runner import Settings
    from argus_edge.evaluate.runner import evaluate as run

    name, lines = perturbation_lines(perturb)
    resolved = resolve_model(
        str(model),
        compute=compute,
        dtype=dtype,
        threads=threads or os.cpu_count() or 1,
        revision=revision,
        features=Path(features) if features else None,
        here=settings.get("backend", "local") == "local",
    )
    wanted = Settings(
        data={key: Path(path) for key, path in data.items()},
        out=Path(out),
        perturbation_set=name,
        perturbations=lines,
        **settings,
    )
    return run(resolved, wanted, load_prompts(Path(prompts) if prompts else None), say)


def score(reports: Iterable[str | Path], **options: Any) -> ScoreReport:
    """Merge bench and eval reports into the ARGUS score; see :func:`argus_edge.score.files.score_files`."""
    from argus_edge.score.files import score_files

    return score_files(reports, **options)


def validate(reports: Iterable[str | Path], *, budget: str | Path, strict: bool = False) -> Verdict:
    """Hold reports against a budget; see :func:`argus_edge.gate.validate.validate_files`.

    ``verdict.outcome`` is ``"pass"``, ``"fail"`` or ``"unknown"``: a failed gate is a result here, not an error.
    """
    from argus_edge.gate.validate import validate_files

    return validate_files(reports, budget=budget, strict=strict)


def size(reports: Iterable[str | Path], *, budget: str | Path, devices: Sequence[str] = ()) -> Sizing:
    """Tell which model, precision and board fit a budget; see :func:`argus_edge.gate.sizing.size_files`."""
    from argus_edge.gate.sizing import size_files

    return size_files(reports, budget=budget, devices=devices)


def compare(
    baseline: Iterable[str | Path], candidate: Iterable[str | Path], *, varying: Sequence[str] = ()
) -> Comparison:
    """Compare two sets of bench runs; see :func:`argus_edge.gate.compare.compare_files`."""
    from argus_edge.gate.compare import compare_files

    return compare_files(baseline, candidate, varying=varying)


def report(
    reports: Iterable[str | Path],
    html: str | Path,
    *,
    budget: str | Path | None = None,
    baseline: Sequence[str | Path] = (),
) -> Path:
    """Make one self-contained page from reports and return its path.

    Parameters
    ----------
    reports
        Files or folders.
    html
        The page.
    budget, baseline
        As the options of ``argus-edge report``.
    """
    from datetime import datetime, timezone

    from argus_edge.artifacts import write_text
    from argus_edge.report.gathered import gather
    from argus_edge.report.html import render_html
    from argus_edge.report.page import build_page

    gathered = gather(
        tuple(map(str, reports)), budget=None if budget is None else str(budget), baseline=tuple(map(str, baseline))
    )
    page = build_page(gathered)
    write_text(html, render_html(page, gathered, created=datetime.now(timezone.utc)))
    return Path(html)


def judge_fit(
    scores: Sequence[str | Path],
    *,
    labels: str | None = None,
    method: str = "integer",
    alpha: float = 0.1,
    by: str | None = None,
    seed: int = 0,
    max_width: float | None = None,
    min_correlation: float = 0.3,
) -> JudgeCalibration:
    """Calibrate a judge on labelled scores; several files are several judges' scores of the same items.

    Parameters
    ----------
    scores
        CSV files; see docs/judge.md.
    labels
        Column of the human scores.
    method, alpha, by, seed, max_width, min_correlation
        As the options of ``argus-edge judge fit``.
    """
    from argus_edge.judge.calibration import fit_calibration
    from argus_edge.judge.fitting import require_packages
    from argus_edge.judge.table import join_tables, read_table
    from argus_edge.judge.tasks import Demands

    require_packages([method])
    table = join_tables([read_table(str(path), labels=labels) for path in scores])
    return fit_calibration(
        table,
        method=method,
        alpha=alpha,
        by=by,
        seed=seed,
        demands=Demands(table.scale.span / 2 if max_width is None else max_width, min_correlation),
        paths=[str(path) for path in scores],
    )


def judge_apply(calibration: JudgeCalibration | str | Path, scores: Sequence[str | Path]) -> Applied:
    """Give each row of new scores its interval, by a calibration or its file."""
    from argus_edge.artifacts import read_artifact
    from argus_edge.judge.calibration import apply_calibration
    from argus_edge.judge.table import join_tables, read_table
    from argus_edge.schema.judge import JudgeCalibration

    file = calibration if isinstance(calibration, str | Path) else None
    fitted = calibration if isinstance(calibration, JudgeCalibration) else read_artifact(calibration, JudgeCalibration)
    names = list(fitted.judges) if len(fitted.judges) == len(scores) else [None] * len(scores)
    tables = [
        read_table(str(path), judge=name, floor=fitted.floor, lenient_labels=True, default_judge=True)
        for path, name in zip(scores, names, strict=True)
    ]
    return apply_calibration(fitted, join_tables(tables), where=str(file or "the calibration"))


def judge_evaluate(
    scores: Sequence[str | Path],
    *,
    labels: str | None = None,
    methods: Sequence[str] = ("integer",),
    splits: int = 10,
    alpha: float = 0.1,
    by: str | None = "auto",
    jobs: int = 1,
    max_width: float | None = None,
    min_correlation: float = 0.3,
    say: Say = _quiet,
) -> JudgeEvaluation:
    """Measure coverage, width and advice on labelled scores, one file a judge.

    Parameters
    ----------
    scores
        CSV files; see docs/judge.md.
    labels
        Column of the human scores.
    methods, splits, alpha, by, jobs, max_width, min_correlation
        As the options of ``argus-edge judge evaluate``.
    say
        Told what goes on.
    """
    from argus_edge.judge.evaluation import Plan, evaluate_judges
    from argus_edge.judge.fitting import require_packages
    from argus_edge.judge.table import read_table
    from argus_edge.judge.tasks import Demands

    require_packages(list(methods))
    tables = [read_table(str(path), labels=labels) for path in scores]
    demands = Demands(tables[0].scale.span / 2 if max_width is None else max_width, min_correlation)
    plan = Plan(methods=list(methods), splits=splits, alpha=alpha, by=by, demands=demands, jobs=jobs)
    return evaluate_judges(tables, plan, say)
