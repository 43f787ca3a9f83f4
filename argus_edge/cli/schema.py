"""`argus-edge schema`: print the JSON Schema of an artefact."""

from __future__ import annotations

import click

from argus_edge.cli.output import emit_json, json_option


@click.command()
@click.argument("name", required=False)
@json_option
def schema(name: str | None, json_path: str | None) -> None:
    """Print the JSON Schema of the artefact NAME; without one, list the names."""
    import json

    from argus_edge.registry import Registry
    from argus_edge.schema.registry import ARTIFACTS

    if name is None:
        if json_path is not None:
            emit_json(json.dumps(list(ARTIFACTS)), json_path)
        else:
            click.echo("\n".join(ARTIFACTS))
        return
    artifact = Registry("artefact", ARTIFACTS)[name]
    emit_json(json.dumps(artifact.model_json_schema(), indent=1), json_path or "-")
