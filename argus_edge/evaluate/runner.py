"""One evaluation from model and datasets to the report: resumable, since every piece of work is kept by its content."""

from __future__ import annotations

import contextlib
import fcntl
import importlib.metadata
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from argus_edge._version import __version__
from argus_edge.artifacts import host_errors, read_file, write_artifact, write_text
from argus_edge.errors import InputError, UsageError
from argus_edge.evaluate.backends import BACKENDS, BackendOptions
from argus_edge.evaluate.conditions import Condition, conditions_of
from argus_edge.evaluate.content import Prepared, prepare
from argus_edge.evaluate.datasets import DATASETS
from argus_edge.evaluate.metrics import REPLICATES, DocumentFrequencies, image_weights
from argus_edge.evaluate.models.resolve import Resolved
from argus_edge.evaluate.progress import Progress, pilots_first
from argus_edge.evaluate.prompts import Prompts
from argus_edge.evaluate.records import write_records
from argus_edge.evaluate.store import Store
from argus_edge.evaluate.tasks import TASKS
from argus_edge.evaluate.tasks.base import CannotDo, Measured, Setting, Task
from argus_edge.evaluate.units import Job, Unit, unit_key
from argus_edge.evaluate.worker import ModelFacts
from argus_edge.schema.base import Source
from argus_edge.schema.evaluation import Cell, EvalReport, ModelInfo, Perturbation, Skipped

__all__ = ["REPORT_NAME", "Settings", "evaluate"]

REPORT_NAME = "eval.json"

# The same draws in every report, so that two models are resampled alike.
_BOOTSTRAP_SEED = 0
_SOFTWARE = ("torch", "transformers", "onnxruntime", "tokenizers", "numpy", "pillow", "scipy", "pyarrow")


@dataclass(frozen=True)
class Settings:
    """What is evaluated and how; see ``argus-edge eval --help``."""

    data: dict[str, Path]
    out: Path
    force: bool = False
    splits: dict[str, str] = field(default_factory=dict)
    limit: int | None = None
    tasks: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    perturbation_set: str = "none"
    perturbations: tuple[Perturbation, ...] = ()
    seed: int = 0
    batch_size: int = 32
    pair_images: int = 100
    idf: Path | None = None
    cache: Path | None = None
    backend: str = "local"
    options: BackendOptions = field(default_factory=BackendOptions)


@dataclass
class _Cell:
    task: Task
    name: str
    dataset: str
    optional: bool


def evaluate(
    model: Resolved,
    settings: Settings,
    prompts: Prompts,
    say: Callable[[str], None] = lambda message: None,
) -> EvalReport:
    """Evaluate a model and write ``eval.json`` and the records into ``settings.out``.

    A run that was killed goes on where it was when the same call is made again, and the files come out the same.

    Raises
    ------
    UsageError
        ``settings.out`` holds another evaluation, or a dataset is spoken of that is not among the data.
    InputError
        Nothing of what the datasets ask can be done by the model.
    RunFailedError
        The model fails.
    """
    _check_names(settings)
    with _claimed(settings.out):
        return _evaluate(model, settings, prompts, say)


def _check_names(settings: Settings) -> None:
    """Raise where an option is about a dataset that is not evaluated: passed over, it would be missed in the report."""
    optional = [name for name in DATASETS if getattr(DATASETS[name], "optional_tasks", ())]
    for option, names, known in (
        ("--split", settings.splits, list(settings.data)),
        ("--with", settings.optional, [name for name in optional if name in settings.data]),
    ):
        for name in names:
            if name not in known:
                what = f"{option} {name}: " + (
                    "it has no optional cells" if name in settings.data else "it is not among the datasets of --data"
                )
                raise UsageError(f"{what}.", next_step=f"choose among {', '.join(known) or 'none'}")


@contextlib.contextmanager
def _claimed(out: Path) -> Iterator[None]:
    """Hold an output folder against a second run, and clear what a killed one left half-written in it."""
    with host_errors(out):
        out.mkdir(parents=True, exist_ok=True)
        lock = open(out / ".lock", "w")  # noqa: SIM115 - held until the end, and by the kernel until a kill
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(
                "Another run is writing into this folder.",
                where=str(out),
                next_step="wait for it, or choose another --out",
            ) from error
        for folder in (out, *(out / "cache").glob("*")):
            for part in folder.glob(".*.part"):
                part.unlink(missing_ok=True)
        yield


def _evaluate(model: Resolved, settings: Settings, prompts: Prompts, say: Callable[[str], None]) -> EvalReport:
    store = Store(settings.cache or settings.out / "cache")
    threads = model.spec.threads
    frequencies = DocumentFrequencies.load(settings.idf) if settings.idf else None
    prepared = {
        name: prepare(
            name,
            folder,
            store=store,
            split=settings.splits.get(name),
            limit=settings.limit,
            frequencies=frequencies,
            threads=threads,
            say=say,
        )
        for name, folder in settings.data.items()
    }
    say(f"loading {model.name} …")
    backend = BACKENDS[settings.backend](model.spec, settings.options)
    try:
        facts: ModelFacts = backend.facts
        job = _job(model, settings, prompts, prepared, facts)
        cells, skipped = _cells(job, settings, prepared, facts)
        if facts.takes_image_ids and any(line.modality == "image" for line in settings.perturbations):
            reason = "not applicable: the model is given region features that were computed before"
            skipped.append(Skipped(what="image perturbations", reason=reason))
        if not cells:
            reasons = "; ".join(f"{item.what}: {item.reason}" for item in skipped)
            raise InputError(
                f"Nothing can be evaluated: {reasons}.", where=model.name, next_step="give other data, or another model"
            )
        created = _begin(model, settings, job, prepared)
        conditions = _Conditions(conditions_of(settings.perturbations), facts)
        _compute(job, cells, conditions, store, backend, say)
    finally:
        backend.close()
    report_cells = [_measure(cell, conditions, job, prepared, settings, store, say) for cell in cells]
    report = _report(model, settings, job, prepared, facts, report_cells, skipped, created)
    write_artifact(report, settings.out / REPORT_NAME)
    return report


@dataclass(frozen=True)
class _Conditions:
    """The conditions of a run, and which of them a cell can be measured under."""

    all: Sequence[Condition]
    facts: ModelFacts

    def of(self, cell: _Cell) -> list[Condition]:
        return [
            condition
            for condition in self.all
            if cell.task.applies(condition) and not (condition.modality == "image" and self.facts.takes_image_ids)
        ]


def _job(
    model: Resolved, settings: Settings, prompts: Prompts, prepared: dict[str, Prepared], facts: ModelFacts
) -> Job:
    return Job(
        model=model.spec,
        contents={name: each.content for name, each in prepared.items()},
        prompts=prompts,
        seed=settings.seed,
        batch_size=settings.batch_size,
        choose_free="answer" not in facts.capabilities,
        pair_images=settings.pair_images,
        software=_software(),
    )


def _software() -> dict[str, str]:
    found = {"argus-edge": __version__}
    for name in _SOFTWARE:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # not installed: nothing of it is used
    return found


def _cells(
    job: Job, settings: Settings, prepared: dict[str, Prepared], facts: ModelFacts
) -> tuple[list[_Cell], list[Skipped]]:
    """Return the cells that the model can do, and what is left out and why."""
    cells, skipped = [], []
    for name, each in prepared.items():
        dataset = each.content.dataset
        for task_name in TASKS:
            what = f"{task_name} on {name}"
            if task_name not in dataset.tasks:
                continue
            optional = task_name in dataset.optional_tasks
            if settings.tasks and task_name not in settings.tasks:
                skipped.append(Skipped(what=what, reason="not asked for (--tasks)"))
            elif optional and name not in settings.optional:
                skipped.append(Skipped(what=what, reason=f"optional: ask for it with --with {name}"))
            else:
                try:
                    task = TASKS[task_name](Setting(job, name, facts.capabilities, each.frequencies))
                except CannotDo as error:
                    skipped.append(Skipped(what=what, reason=str(error)))
                else:
                    cells.append(_Cell(task, task_name, name, optional))
    return cells, skipped


def _begin(model: Resolved, settings: Settings, job: Job, prepared: dict[str, Prepared]) -> datetime:
    """Claim the output folder for this evaluation and return when it was begun; a resumed one keeps its time.

    ``SOURCE_DATE_EPOCH`` sets the time, so that two runs can be compared byte by byte.
    """
    plan = {
        "model": vars(model) | {"spec": vars(model.spec)},
        "datasets": {name: each.info.sha256 for name, each in prepared.items()},
        "prompts": job.prompts.templates,
        "perturbations": [line.model_dump() for line in settings.perturbations],
        "settings": [settings.seed, settings.batch_size, settings.pair_images, settings.tasks, settings.optional],
        "idf": [each.frequencies.sha256 if each.frequencies else None for each in prepared.values()],
        "software": job.software,
    }
    text = json.dumps(plan, indent=1, sort_keys=True, default=str)
    path = settings.out / "plan.json"
    if path.is_file():
        try:
            found = json.loads(read_file(path))
            created = found.pop("created", None)
        except (ValueError, AttributeError, TypeError):
            created = None  # not a plan of ours
        if created and json.dumps(found, indent=1, sort_keys=True) == text:
            return datetime.fromisoformat(created)
        if (settings.out / REPORT_NAME).exists() and not settings.force:
            raise UsageError(
                "The folder holds an evaluation of something else, or with other settings.",
                where=str(settings.out),
                next_step="choose another --out (pieces that are the same are shared with --cache), "
                "or replace it: --force",
            )
        # The report first: records without one are an evaluation that was not finished.
        records = [old for name in DATASETS for old in settings.out.glob(f"{name}.*.parquet")]
        for old in (settings.out / REPORT_NAME, *records):
            with host_errors(old):
                old.unlink(missing_ok=True)
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if epoch and not epoch.isdigit():
        raise UsageError(f"SOURCE_DATE_EPOCH is {epoch[:40]!r}, not a number of seconds.", where="environment")
    now = datetime.fromtimestamp(int(epoch), timezone.utc) if epoch else datetime.now(timezone.utc)
    write_text(path, json.dumps({"created": now.isoformat(), **json.loads(text)}, indent=1, sort_keys=True) + "\n")
    return now


def _compute(
    job: Job,
    cells: Sequence[_Cell],
    conditions: _Conditions,
    store: Store,
    backend: Any,
    say: Callable[[str], None],
) -> None:
    """Carry out every unit whose result is not in the store yet."""
    wanted: dict[str, Unit] = {}
    for cell in cells:
        for condition in conditions.of(cell):
            for unit in cell.task.units(condition):
                wanted.setdefault(unit_key(job, unit), unit)
    missing = {key: unit for key, unit in wanted.items() if key not in store}
    kept = len(wanted) - len(missing)
    say(f"{len(wanted)} pieces of work" + (f", {kept} of them done already" if kept else ""))
    if not missing:
        return
    keys = {unit: key for key, unit in missing.items()}
    order = pilots_first(list(keys))
    progress = Progress(order, say)
    for unit, result in backend.run(job, order):
        store.put(keys[unit], result)
        progress.step(unit)


def _measure(
    cell: _Cell,
    conditions: _Conditions,
    job: Job,
    prepared: dict[str, Prepared],
    settings: Settings,
    store: Store,
    say: Callable[[str], None],
) -> Cell:
    """Make a cell's figures and write its records, one condition at a time."""
    say(f"{cell.name} on {cell.dataset}: figures and intervals …")
    info = prepared[cell.dataset].info
    weights = image_weights(cell.dataset, info.images, REPLICATES, _BOOTSTRAP_SEED)
    measurements = []

    def measured() -> Iterator[tuple[Condition, dict[str, Any]]]:
        for condition in conditions.of(cell):
            results = {unit: store.get(unit_key(job, unit)) for unit in cell.task.units(condition)}
            found: Measured = cell.task.measure(condition, results, weights)
            measurements.append(found.measurement)
            yield condition, found.records

    records = f"{cell.dataset}.{cell.name}.parquet"
    sha256 = write_records(settings.out / records, measured())
    facts = cell.task.facts
    return Cell(
        task=cell.name,  # type: ignore[arg-type]  # a key of TASKS
        dataset=cell.dataset,
        optional=cell.optional,
        method=facts.method,
        headline=facts.headline,
        chance=facts.chance,
        chance_is=facts.chance_is,
        prompt_ids=list(facts.prompt_ids),
        gallery_images=facts.gallery_images,
        gallery_texts=facts.gallery_texts,
        idf_sha256=facts.idf_sha256,
        records=records,
        records_sha256=sha256,
        measurements=measurements,
    )


def _report(
    model: Resolved,
    settings: Settings,
    job: Job,
    prepared: dict[str, Prepared],
    facts: ModelFacts,
    cells: list[Cell],
    skipped: list[Skipped],
    created: datetime,
) -> EvalReport:
    used = sorted({prompt for cell in cells for prompt in cell.prompt_ids})
    return EvalReport(
        created=created,
        sources=[
            Source(name=model.name, sha256=model.sha256, revision=model.revision),
            *([Source(name="features", sha256=model.features_sha256)] if model.features_sha256 else []),
            *(Source(name=each.info.name, sha256=each.info.sha256) for each in prepared.values()),
        ],
        model=ModelInfo(
            name=model.name,
            kind=model.spec.kind,  # type: ignore[arg-type]  # one of three by construction
            family=model.spec.family,
            precision=model.precision,
            sha256=model.sha256,
            revision=model.revision,
            source_id=model.source_id,
            bundle_sha256=model.bundle_sha256,
            capabilities=list(facts.capabilities),
        ),
        datasets=[each.info for each in prepared.values()],
        cells=cells,
        skipped=skipped,
        perturbation_set=settings.perturbation_set,
        perturbations=list(settings.perturbations),
        seed=settings.seed,
        prompts={name: job.prompts.templates[name.partition(".")[0]][name.partition(".")[2]] for name in used},
        compute=model.spec.compute,
        dtype=model.spec.dtype,
        batch_size=job.batch_size,
        threads=model.spec.threads,
        software=dict(job.software),
    )
