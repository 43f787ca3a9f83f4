"""Every command of the command line, for what must hold of all of them."""

from __future__ import annotations

from collections.abc import Iterator

import click

from argus_edge.cli.main import cli


def commands(group: click.Group = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Return each command with its words, ("device", "add") for one of a group's."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command
