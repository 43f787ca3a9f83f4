"""`argus-edge inspect`: what a bundle or a model file holds, and which boards can run it."""

from __future__ import annotations

import click

from argus_edge.cli.output import emit_json, json_option


@click.command()
@click.argument("path")
@json_option
def inspect(path: str, json_path: str | None) -> None:
    """Show what PATH, a bundle or a model file (.onnx, .tflite, .pt2), holds, and which boards can run it."""
    import json

    from argus_edge.bench.models import resolve_model
    from argus_edge.inspection import document, text

    model = resolve_model(path)
    if json_path:
        emit_json(json.dumps(document(model), indent=1), json_path)
    if json_path != "-":
        click.echo(text(model))
