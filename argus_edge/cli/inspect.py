"""`argus-edge inspect`: what a bundle or a model file holds, and which boards can run it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from argus_edge.cli.output import emit_json, json_option

if TYPE_CHECKING:
    from argus_edge.schema.bundle import BundleManifest


def bundle_table(manifest: BundleManifest) -> str:
    """Return a bundle in words."""
    lines = [f"{manifest.name}: {manifest.source_id}, {manifest.format} {manifest.precision}"]
    return "\n".join(lines)


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@json_option
def inspect(path: Path, json_path: str | None) -> None:
    """Show what a bundle or a model file holds, and which boards can run it."""
    from argus_edge.artifacts import dump_artifact
    from argus_edge.bundles import read_bundle

    manifest = read_bundle(path)
    if json_path:
        emit_json(dump_artifact(manifest), json_path)
    if json_path != "-":
        click.echo(bundle_table(manifest))
