"""The command itself: what no command of its own handles."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from argus_edge.artifacts import write_artifact
from argus_edge.cli import main as cli
from argus_edge.errors import GateFailedError, InputError, shipped_folder
from tests.support.commands import commands
from tests.support.reports import bench


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


def test_messages_and_the_help_say_where_pages_and_starters_are(tmp_path, monkeypatch):
    # Who installed the tool has no checkout to find `docs/` in.
    monkeypatch.chdir(tmp_path)
    said = str(InputError("x", where="docs/budgets.md", next_step="see docs/budgets.md, Quorum, or profiles/budgets/"))
    assert f"see {shipped_folder()}/docs/budgets.md, Quorum, or {shipped_folder()}/profiles/budgets" in said
    assert "where: docs/budgets.md" in said  # the user's own
    for own in ("docs/none.md", "/a/docs/budgets.md", "~/docs/budgets.md", "argus-edge bench profiles/"):
        assert f"next:  {own}" in str(InputError("x", next_step=own))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/score.md").touch()
    assert "next:  docs/score.md" in str(InputError("x", next_step="docs/score.md"))
    folder = Path(CliRunner().invoke(cli.cli, ["--help"]).stdout.splitlines()[-1].strip())
    assert (folder / "docs/README.md").is_file()
    assert (folder / "profiles/budgets/pi5.yaml").is_file()


@pytest.mark.parametrize(
    ("command", "starters"),
    [
        (["validate", "x.json", "--budget", "none.yaml"], "profiles/budgets"),
        (["size", "x.json", "--budget", "none.yaml"], "profiles/budgets"),
        (["score", "x.json", "--score-weights", "none.yaml"], "profiles/weights"),
        (["run", "none.yaml"], "docs/plans.md"),
    ],
)
def test_a_missing_file_that_the_user_must_write_names_one_to_copy(command, starters, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_artifact(bench("m").artifact, tmp_path / "x.json")
    with pytest.raises(SystemExit) as caught:
        cli.main(command)
    assert caught.value.code == 2
    assert f"{shipped_folder()}/{starters}" in capsys.readouterr().err


def test_every_command_and_option_says_what_it_is_for():
    silent = [" ".join(path) for path, command in commands() if not command.help]
    silent += [
        f"{' '.join(path)} {parameter.opts[0]}"
        for path, command in commands()
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.help
    ]
    assert silent == []
