"""What is kept below the user's folders is the user's alone; no secret comes into a file, a message, a process list."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from argus_edge.judge.asking.server import KEY_VARIABLES

ARGUS_EDGE = [sys.executable, "-c", "from argus_edge.cli.main import main; main()"]
SECRET = "correct-horse-battery-staple"


@pytest.fixture
def argus(tmp_path):
    """A function that runs argus-edge with a home of its own and an ordinary umask."""
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    work = tmp_path / "work"
    work.mkdir()
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("ARGUS_EDGE", "XDG_"))}

    def run(*words, **environment):
        return subprocess.run(
            [*ARGUS_EDGE, *words],
            cwd=work,
            env={**clean, "HOME": str(home), **environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            umask=0o022,
        )

    run.home, run.work = home, work
    return run


def test_files_below_the_users_folders_are_the_users_alone(argus):
    assert argus("device", "add", "pi", "--host", "pi@10.0.0.9", "--label", "room=7").returncode == 0
    done = argus("bench", "--device", "local", "--runtime", "null", "--duration", "0.2s")
    assert done.returncode == 0, done.stderr
    files = [path for path in argus.home.rglob("*") if path.is_file()]
    names = {path.name for path in files}
    assert {"devices.yaml", "argus-edge.db"} <= names
    assert any(name.endswith(".pyz") for name in names)
    open_to_others = [path for path in files if stat.S_IMODE(path.stat().st_mode) & 0o077]
    assert not open_to_others
    # What is not 0600 by itself lies in a folder that nobody else can enter.
    for name in (".config/argus-edge", ".local/share/argus-edge"):
        assert stat.S_IMODE((argus.home / name).stat().st_mode) == 0o700


def test_a_database_password_is_in_no_message_and_no_file(argus):
    url = f"postgresql+psycopg://ann:{SECRET}@127.0.0.1:9/argus"
    done = argus("bench", "--device", "local", "--runtime", "null", "--duration", "0.2s", ARGUS_EDGE_STORE=url)
    assert done.returncode != 0
    assert SECRET not in done.stdout + done.stderr
    assert not [path for path in written(argus) if SECRET.encode() in path.read_bytes()]


@pytest.mark.parametrize("variable", KEY_VARIABLES)
def test_a_judges_key_is_in_no_message_and_no_file(argus, variable):
    items = argus.work / "items.csv"
    items.write_text("sample_id,prompt\na,Is it good?\n")
    words = ("judge", "run", str(items), "--judge", "http://127.0.0.1:9/v1", "--out", "scores.csv")
    done = argus(*words, **{variable: SECRET})
    assert done.returncode != 0
    assert SECRET not in done.stdout + done.stderr
    assert not [path for path in written(argus) if SECRET.encode() in path.read_bytes()]


def written(argus) -> list[Path]:
    return [path for folder in (argus.home, argus.work) for path in folder.rglob("*") if path.is_file()]


def test_no_command_takes_a_secret_as_a_word(argus):
    """Words stand in the process list, in the shell's history and in reports."""
    from argus_edge.cli.main import COMMANDS, cli

    def options(command):
        yield from command.params
        for name in getattr(command, "commands", {}):
            yield from options(command.commands[name])

    for name in COMMANDS:
        for option in options(cli.get_command(None, name)):
            words = {word for part in option.opts for word in part.strip("-").split("-")}
            assert not words & {"password", "passphrase", "secret", "key", "token"}, (name, option.opts)
