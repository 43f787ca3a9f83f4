"""Options that take a number take a finite one: with nan every limit would be passed over in silence."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.types import FloatParamType

from argus_edge.cli.main import cli
from argus_edge.cli.numbers import Finite


def commands(group: click.Group, name: str = "") -> Iterator[tuple[str, click.Command]]:
    for each in group.list_commands(context := click.Context(group)):
        command = group.get_command(context, each)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{name} {each}")
        else:
            yield f"{name} {each}".strip(), command


def test_no_option_of_any_command_takes_nan():
    numbers = {
        f"{name} {option.name}": option.type
        for name, command in commands(cli)
        for option in command.params
        if isinstance(option.type, FloatParamType)
    }
    assert "score efficiency_weight" in numbers
    assert [name for name, kind in numbers.items() if not isinstance(kind, Finite)] == []


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e999", "two"])
def test_what_is_no_number_is_refused(text):
    with pytest.raises(click.BadParameter):
        Finite().convert(text, None, None)
