"""The command itself: what no command of its own handles."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from argus_edge.cli import main as cli
from argus_edge.errors import GateFailedError


def leaves_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(cli.cli, "main", fail)
    with pytest.raises(SystemExit) as caught:
        cli.main([])
    return int(caught.value.code or 0)


def test_a_fault_of_our_own_is_told_from_a_failed_gate(monkeypatch, capsys):
    assert leaves_with(monkeypatch, GateFailedError("too slow")) == 1
    assert "Traceback" not in capsys.readouterr().err
    assert leaves_with(monkeypatch, ZeroDivisionError("by zero")) == 70
    said = capsys.readouterr().err
    assert "ZeroDivisionError" in said
    assert "report it" in said


def test_a_full_disk_met_anywhere_is_no_fault_of_ours(monkeypatch, capsys):
    assert leaves_with(monkeypatch, OSError(28, "No space left on device", "/tmp/x")) == 7
    assert "disk is full" in capsys.readouterr().err


def test_a_package_of_an_extra_that_is_not_installed_is_no_fault_of_ours(monkeypatch, capsys):
    assert leaves_with(monkeypatch, ModuleNotFoundError("No module named 'PIL'", name="PIL.Image")) == 2
    assert 'pip install "argus-edge[eval]"' in capsys.readouterr().err
    assert leaves_with(monkeypatch, ModuleNotFoundError("No module named 'argus_edge.x'", name="argus_edge.x")) == 70


def commands(group: click.Group, path: str = "argus-edge") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def test_every_command_and_option_says_what_it_is_for():
    silent = [name for name, command in commands(cli.cli) if not command.help]
    silent += [
        f"{name} {parameter.opts[0]}"
        for name, command in commands(cli.cli)
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.help
    ]
    assert silent == []
