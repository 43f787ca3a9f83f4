"""Options that take a number take a finite one: with nan every limit would be passed over in silence."""

from __future__ import annotations

import click
import pytest
from click.types import FloatParamType

from argus_edge.cli.numbers import Finite
from tests.support.commands import commands


def test_no_option_of_any_command_takes_nan():
    numbers = {
        f"{' '.join(path)} {option.name}": option.type
        for path, command in commands()
        for option in command.params
        if isinstance(option.type, FloatParamType)
    }
    assert "score efficiency_weight" in numbers
    assert [name for name, kind in numbers.items() if not isinstance(kind, Finite)] == []


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e999", "two"])
def test_what_is_no_number_is_refused(text):
    with pytest.raises(click.BadParameter):
        Finite().convert(text, None, None)


def test_the_time_that_a_proposed_command_counts_on_is_what_the_option_has():
    from argus_edge.gate.commands import MOST_S
    from argus_edge.times import parse_seconds

    (option,) = (each for each in dict(commands())[("bench",)].params if each.name == "max_duration")
    assert parse_seconds(str(option.default)) == MOST_S
