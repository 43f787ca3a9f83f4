"""Which reports belong together: each model with its eval and bench reports, or a refusal that names both."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from argus_edge.errors import InputError
from argus_edge.reports import Found
from argus_edge.schema.bench import BenchReport, Measurement
from argus_edge.schema.evaluation import Cell, DatasetInfo, EvalReport


@dataclass
class Benched:
    """The bench reports of one model on one device."""

    device: str
    profile: str
    latency: Found[BenchReport]
    offline: Found[BenchReport] | None = None


@dataclass
class Member:
    """A model of the cohort.

    Attributes
    ----------
    key
        sha256 that joins eval and bench: the bundle's manifest, or the model's files.
    cells
        (task, dataset) to the cell and its dataset, over all its eval reports; optional cells left out.
    """

    key: str
    name: str
    precision: str | None
    evals: list[Found[EvalReport]]
    cells: dict[tuple[str, str], tuple[Cell, DatasetInfo]]
    benches: dict[str, Benched] = field(default_factory=dict)


def headline(report: BenchReport) -> Measurement:
    """Return the first repeat of the measurement that stands for the model.

    Raises
    ------
    InputError
        The report names a headline that it does not hold.
    """
    for measurement in report.measurements:
        if measurement.component == report.headline:
            return measurement
    raise InputError(f"The bench report has no measurement of its headline {report.headline!r}.", where=report.run)


def _cut(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 120 else f"{text[:119]}…"


def _must_agree(what: str, first: tuple[str, Any], second: tuple[str, Any], next_step: str) -> None:
    if first[1] != second[1]:
        raise InputError(
            f"Reports that do not belong together: {what} differs ({_cut(first[1])} against {_cut(second[1])}).",
            where=f"{first[0]} and {second[0]}",
            next_step=next_step,
        )


def _grid(report: EvalReport) -> str:
    return (
        ", ".join(
            f"{line.name}:{'/'.join(map(str, line.severities))} ({line.modality})" for line in report.perturbations
        )
        or "none"
    )


def _images(dataset: DatasetInfo) -> str:
    # The bootstrap draws them by their place, so that they must be the same ones in the same order.
    digest = hashlib.sha256("\n".join(dataset.image_ids).encode()).hexdigest()
    return f"{len(dataset.image_ids)} images, {digest[:12]}"


DATASET_FACTS: dict[str, Callable[[DatasetInfo], Any]] = {
    "split": lambda dataset: dataset.split,
    "dataset hash": lambda dataset: dataset.sha256[:16],
    "limit": lambda dataset: dataset.limit,
    "images": _images,
}


def check_evals(evals: Sequence[Found[EvalReport]]) -> None:
    """Refuse eval reports with another dataset hash, split, prompt, gallery or perturbations than the ones before them.

    Raises
    ------
    InputError
        Naming both files and what differs.
    """
    again = "run `argus-edge eval` on the same data, prompts and perturbations"
    datasets: dict[str, tuple[str, DatasetInfo]] = {}
    prompts: dict[str, tuple[str, str]] = {}
    cells: dict[tuple[str, str], tuple[tuple[str, Any], tuple[str, Any]]] = {}
    for found in evals:
        report, name = found.artifact, str(found.path)
        first = evals[0]
        _must_agree(
            "the perturbation set",
            (str(first.path), _grid(first.artifact)),
            (name, _grid(report)),
            again,
        )
        if report.perturbations:
            _must_agree("the perturbation seed", (str(first.path), first.artifact.seed), (name, report.seed), again)
        for dataset in report.datasets:
            before = datasets.setdefault(dataset.name, (name, dataset))
            for what, read in DATASET_FACTS.items():
                _must_agree(f"the {what} of {dataset.name}", (before[0], read(before[1])), (name, read(dataset)), again)
        for prompt, text in report.prompts.items():
            before_prompt = prompts.setdefault(prompt, (name, text))
            _must_agree(f"the prompt {prompt}", before_prompt, (name, text), again)
        for cell in report.cells:
            place = (cell.task, cell.dataset)
            gallery, idf = (cell.gallery_images, cell.gallery_texts), cell.idf_sha256
            before_gallery, before_idf = cells.setdefault(place, ((name, gallery), (name, idf)))
            # Recall falls with the gallery; taking chance off does not make up for it.
            same_gallery = "give both the same --limit, at most the --pair-images of a model that scores pairs"
            _must_agree(f"the gallery (images, texts) of {cell.dataset}", before_gallery, (name, gallery), same_gallery)
            _must_agree(f"the document frequencies of {cell.dataset}", before_idf, (name, idf), again)


def _members(evals: Sequence[Found[EvalReport]]) -> dict[str, Member]:
    members: dict[str, Member] = {}
    for found in evals:
        info = found.artifact.model
        key = info.bundle_sha256 or info.sha256
        member = members.setdefault(key, Member(key, info.name, info.precision, [], {}))
        for cell in found.artifact.cells:
            if cell.optional:
                continue
            place = (cell.task, cell.dataset)
            if place in member.cells:
                raise InputError(
                    f"{info.name} has {cell.task} on {cell.dataset} in two eval reports.",
                    where=f"{member.evals[-1].path} and {found.path}",
                    next_step="leave one of them out",
                )
            member.cells[place] = (cell, found.artifact.dataset(cell.dataset))
        member.evals.append(found)
    return members


def gather(evals: Sequence[Found[EvalReport]], benches: Sequence[Found[BenchReport]]) -> list[Member]:
    """Join eval and bench reports by the hash of what was evaluated and timed.

    Raises
    ------
    InputError
        Reports that do not belong together: another dataset, prompt, split, perturbation set, unit of work or bundle.
    """
    if not evals:
        raise InputError("There is no eval report among the inputs.", next_step="argus-edge eval MODEL --data …")
    check_evals(evals)
    members = _members(evals)
    # Throughput is measured at a batch of its own: offline runs agree with one another.
    units: dict[tuple[str, bool], tuple[str, str]] = {}
    for found in benches:
        report = found.artifact
        key = report.model.sha256 or ""
        if key not in members:
            raise InputError(
                f"The bench report is of {report.model.name} ({key[:12] or 'no hash'}), which no eval report is of.",
                where=str(found.path),
                next_step="evaluate the very file that was benched: argus-edge eval BUNDLE --data …",
            )
        device = report.device.name
        offline = report.setup.scenario.name == "offline"
        before = units.setdefault((device, offline), (str(found.path), headline(report).unit_of_work))
        _must_agree(
            f"the unit of work on {device}",
            before,
            (str(found.path), headline(report).unit_of_work),
            "bench the models with the same task, batch and output length",
        )
        _add_bench(members[key], found)
    return list(members.values())


def _add_bench(member: Member, found: Found[BenchReport]) -> None:
    report = found.artifact
    device = report.device.name
    offline = report.setup.scenario.name == "offline"
    known = member.benches.get(device)
    if known is None:
        member.benches[device] = Benched(
            device, report.device.profile, latency=found, offline=found if offline else None
        )
        return
    latency_is_offline = known.offline is known.latency
    if offline and known.offline is None:
        known.offline = found
    elif not offline and latency_is_offline:
        known.latency = found
    else:
        raise InputError(
            f"{member.name} has two {report.setup.scenario.name} bench reports on {device}.",
            where=f"{known.latency.path} and {found.path}",
            next_step="leave one of them out; `argus-edge compare` is for two runs of one model",
        )


def common_cells(
    members: Sequence[Member], judged: Collection[tuple[str, str]] = ()
) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the cells that all models have in their eval reports, and a line on each that was left out.

    Parameters
    ----------
    judged
        Cells that all models have by a judge, whatever their eval reports hold.

    Raises
    ------
    InputError
        The models have no cell in common.
    """
    everywhere = [place for place in members[0].cells if all(place in member.cells for member in members)]
    seen = list(dict.fromkeys(place for member in members for place in member.cells))
    excluded = []
    for place in seen:
        if place not in everywhere and place not in judged:
            lacking = [member.name for member in members if place not in member.cells]
            excluded.append(f"{place[0]} on {place[1]}: not measured for {', '.join(lacking)}")
    if not everywhere and not judged:
        raise InputError(
            "The models have no (task, dataset) in common.",
            where=", ".join(member.name for member in members),
            next_step="evaluate them on the same datasets",
        )
    return everywhere, excluded
