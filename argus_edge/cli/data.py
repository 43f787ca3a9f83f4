"""`argus-edge data`: check datasets, and write the sample photographs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from argus_edge.cli.output import emit_json, json_option, say
from argus_edge.errors import located
from argus_edge.text import pasted

if TYPE_CHECKING:
    from argus_edge.evaluate.datasets.check import DatasetCheck

_SHOWN = 5


@click.group()
def data() -> None:
    """Check datasets, or write a small sample of real photographs."""


@data.command()
@click.argument("datasets", nargs=-1, required=True, metavar="NAME=PATH…")
@click.option("--split", "splits", multiple=True, metavar="NAME=SPLIT", help="Another split than the published test.")
@json_option
@click.pass_context
def check(ctx: click.Context, datasets: tuple[str, ...], splits: tuple[str, ...], json_path: str | None) -> None:
    """Count what is there, find what is missing or broken, and say where it comes from.

    NAME is coco, flickr30k, vg, clevr, vcr, mine or sample; all=FOLDER checks every dataset found in FOLDER. Every
    image is decoded. Exit code 2 where something is missing or broken.
    """
    import json
    import os

    from argus_edge.cli.evaluate import parse_splits
    from argus_edge.evaluate.datasets import parse_data_option
    from argus_edge.evaluate.datasets.check import check_dataset

    chosen = parse_splits(splits)
    findings = []
    for name, folder in parse_data_option(datasets).items():
        say(f"checking {name} in {folder} …")
        findings.append(check_dataset(name, folder, split=chosen.get(name), threads=os.cpu_count() or 1))
    if json_path:
        emit_json(json.dumps([asdict(finding) | {"ok": finding.ok} for finding in findings], indent=1), json_path)
    if json_path != "-":
        for finding in findings:
            click.echo(_describe(finding))
    if not all(finding.ok for finding in findings):
        ctx.exit(2)


@data.command()
@click.option("--out", required=True, type=click.Path(), help="Folder to write; it must not exist or be empty.")
def sample(out: str) -> None:
    """Write about 20 real photographs with captions and questions, for a first run offline.

    The folder has the layout of a user's own images (docs/your-own-images.md), so it is an example of that, too.
    """
    import os
    import shutil
    import tempfile

    from argus_edge.artifacts import host_errors
    from argus_edge.errors import UsageError
    from argus_edge.evaluate.datasets import sample_folder

    target = Path(out)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError("The folder is not empty.", where=out, next_step="choose another --out")
    with host_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        files = sorted(path for path in sample_folder().iterdir() if path.suffix in (".jpg", ".jsonl", ".md"))
        # Whole or not at all: a disk that is full half-way leaves nothing.
        with tempfile.TemporaryDirectory(prefix=".sample-", dir=target.parent) as made:
            folder = Path(made) / "sample"
            folder.mkdir()
            for path in files:
                shutil.copyfile(path, folder / path.name)
            os.replace(folder, target)
    click.echo(f"{out}: {sum(path.suffix == '.jpg' for path in files)} photographs, data.jsonl, LICENCES.md")
    say(f"next: argus-edge eval MODEL --data {pasted(f'mine={out}')} --out runs/first")


@data.command()
@click.argument("dataset", metavar="NAME=PATH")
@click.option("--split", "split", metavar="SPLIT", help="Another split than the published test.")
@click.option("--out", required=True, type=click.Path(), help="File to write (.json.gz).")
def idf(dataset: str, split: str | None, out: str) -> None:
    """Write a dataset's document frequencies: CIDEr's word weights, for `eval --idf` on fewer images."""
    from argus_edge.errors import UsageError
    from argus_edge.evaluate.datasets import parse_data_option, read_dataset
    from argus_edge.evaluate.metrics import DocumentFrequencies

    found = parse_data_option([dataset])
    if len(found) != 1:
        raise UsageError("One dataset at a time.", where=dataset)
    ((name, folder),) = found.items()
    captions = [texts for texts in read_dataset(name, folder, split=split).captions if texts]
    frequencies = DocumentFrequencies.from_references(captions)
    frequencies.save(out)
    click.echo(f"{out}: {len(frequencies.counts)} n-grams over {frequencies.images} images, {frequencies.sha256}")


def _describe(finding: DatasetCheck) -> str:
    from argus_edge.evaluate.datasets.base import folder_within

    counts = f"{finding.images} images, {finding.captions} captions, {finding.questions} questions"
    lines = [f"{finding.name} ({finding.folder}): {'good' if finding.ok else 'NOT COMPLETE'}"]
    if finding.images:
        lines.append(f"  split {finding.split}: {counts}; tasks: {', '.join(finding.tasks)}")
    if not Path(finding.folder).is_dir():
        lines.append("  there is no such folder")
    for requirement in finding.missing_files:
        source = requirement.source
        place = located(source) if source.startswith("see ") else f"from {source}"
        lines.append(f"  missing: {requirement.path} ({requirement.what}); {place}")
    inner = folder_within(Path(finding.folder), finding.missing_files)
    if inner:
        lines.append(f"  it is one folder deeper: {pasted(f'{finding.name}={inner}')}")
    if finding.missing_images:
        shown = ", ".join(finding.missing_images[:_SHOWN])
        lines.append(f"  {len(finding.missing_images)} image(s) missing: {shown}{_more(len(finding.missing_images))}")
    if finding.broken:
        lines.append(f"  {len(finding.broken)} image(s) broken{':' if finding.broken else ''}")
        lines += [f"    {image}: {reason}" for image, reason in finding.broken[:_SHOWN]]
        if len(finding.broken) > _SHOWN:
            lines.append(f"    … and {len(finding.broken) - _SHOWN} more (all of them with --json)")
    if finding.sha256:
        lines.append(f"  sha256 {finding.sha256}")
    return "\n".join(lines)


def _more(count: int) -> str:
    return f" … and {count - _SHOWN} more (all of them with --json)" if count > _SHOWN else ""
