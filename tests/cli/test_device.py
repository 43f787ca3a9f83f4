"""`argus-edge device` as a user types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.support.light_python import make_light_python
from tests.support.sshd import serve


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The board's interpreter."""
    return str(make_light_python(tmp_path_factory.mktemp("python") / "venv"))


@pytest.fixture
def command(tmp_path):
    """Run the command line in a process of its own, with a home of its own."""
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    environment = {**os.environ, "HOME": str(home), "ARGUS_EDGE_CONFIG": str(home / "config")}
    environment.pop("SSH_AUTH_SOCK", None)

    def run(*arguments, code=0, answer=""):
        program = "from argus_edge.cli.main import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", program, "device", *arguments],
            env=environment,
            input=answer,
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, (done.stdout, done.stderr)
        return done

    run.home = home
    return run


@pytest.fixture
def board(command, tmp_path):
    """A server that the user's ssh_config reaches as `lab-board`, its key not yet known."""
    with serve(tmp_path / "sshd") as server:
        (command.home / ".ssh" / "config").write_text(
            f"Host lab-board\n HostName 127.0.0.1\n Port {server.port}\n IdentityFile {server.user_key}\n"
        )
        yield server


def test_adding_listing_showing_and_removing(command):
    command("add", "pi5", "--profile", "pi5", "--host", "pi@192.168.1.20", "--tag", "lab", "--label", "case=open")
    (local, pi5) = json.loads(command("list", "--json", "-").stdout)
    assert (local["name"], pi5["host"], pi5["labels"]) == ("local", "pi@192.168.1.20", {"case": "open"})
    assert "pi@192.168.1.20" in command("show", "pi5").stdout
    command("add", "pi5", "--python", "~/v/bin/python", "--replace")
    shown = json.loads(command("show", "pi5", "--json", "-").stdout)
    assert (shown["host"], shown["python"], shown["tags"]) == ("pi@192.168.1.20", "~/v/bin/python", ["lab"])
    command("remove", "pi5")
    assert "pi5" not in command("list").stdout


def test_what_is_wrong_is_said_with_the_next_step(command):
    assert "argus-edge device add nano --host" in command("probe", "nano", code=2).stderr
    assert "choose one of" in command("add", "x", "--host", "h", "--profile", "pi9", code=2).stderr
    assert "address" in command("add", "x", code=2).stderr
    for label in ("x", "=x"):
        assert "KEY=VALUE" in command("add", "x", "--host", "h", "--label", label, code=2).stderr
    assert "every quote closed" in command("add", "x", "--host", "h", "--power-cycle", "a 'b", code=2).stderr
    none = str(command.home / "none.yaml")
    for verb in (["list"], ["show", "x"], ["remove", "x"], ["probe", "x"], ["doctor", "x"], ["power-cycle", "x"]):
        assert "no such inventory" in command(*verb, "--inventory", none, code=2).stderr
    assert f"doctor x --inventory {none}" in command("add", "x", "--host", "h", "--inventory", none).stderr
    assert "argus-edge device list --inventory" in command("probe", ",", "--inventory", none, code=2).stderr
    assert "reserved" in command("add", "local", "--host", "h", code=2).stderr


def test_from_an_unknown_host_to_its_facts(command, board, python):
    command("add", "b", "--host", "lab-board", "--python", python)
    refused = command("probe", "b", code=3).stderr
    trust = refused.split("argus-edge device ")[-1].split()
    assert trust[:2] == ["trust", "lab-board"]
    assert "trusted" in command(*trust).stdout
    facts = json.loads(command("probe", "b", "--json", "-").stdout)
    assert facts["device"] == "b"
    assert facts["arch"] == os.uname().machine
    assert "RUNTIME" in command("probe", "b").stdout


def test_trusting_on_first_use_is_asked(command, board):
    assert "not accepted" in command("trust", "lab-board", answer="n\n", code=2).stderr
    command("trust", "lab-board", "--first-use")
    already = command("trust", "lab-board", "--first-use").stdout
    assert "already" in already
    assert "already" in command("trust", "lab-board", already.split()[1]).stdout
    # A key that is listed is no excuse for another one than was asked for.
    other = command("trust", "lab-board", "SHA256:other", code=3).stderr
    assert "which known_hosts has already, not SHA256:other" in other


def test_doctor_tells_what_to_do(command, board, python):
    command("trust", "lab-board", "--first-use")
    command("add", "b", "--host", "lab-board", "--python", "~/none")
    report = command("doctor", "b", code=4).stdout
    assert "✗ python" in report
    assert "--python PATH --replace" in report
    command("add", "b", "--python", python, "--replace")
    document = json.loads(command("doctor", "b", "--json", "-").stdout)
    assert document["ok"]
    assert {finding["check"] for finding in document["findings"]} >= {"login", "agent", "disk"}


def test_a_board_that_is_off(command):
    command("add", "off", "--host", "x@127.0.0.1:1")
    assert "refused the connection" in command("probe", "off", code=3).stderr
    assert "✗ login" in command("doctor", "off", code=3).stdout


def test_setup_makes_an_environment_and_uses_it(command, board, tmp_path):
    # The environment is there already; only its use is new: nothing is installed from the network.
    command("trust", "lab-board", "--first-use")
    make_light_python(board.home / ".cache" / "argus-edge" / "venv")
    bare = make_light_python(tmp_path / "bare", runtime=False)
    command("add", "b", "--host", "lab-board", "--python", str(bare))
    assert "now uses" in command("setup", "b", "--yes").stderr
    assert json.loads(command("show", "b", "--json", "-").stdout)["python"] == "~/.cache/argus-edge/venv/bin/python"


def test_one_board_of_several_that_is_off_does_not_stop_the_others(command, board, python):
    command("trust", "lab-board", "--first-use")
    command("add", "off", "--host", "x@127.0.0.1:1")
    command("add", "b", "--host", "lab-board", "--python", python)
    documents = json.loads(command("probe", "off,b", "--json", "-", code=3).stdout)
    assert "refused" in documents[0]["error"]
    assert documents[1]["arch"] == os.uname().machine


def test_doctor_releases_a_quarantined_board(command, board, python):
    command("trust", "lab-board", "--first-use")
    command("add", "b", "--host", "lab-board", "--python", python)
    path = command.home / "config" / "devices.yaml"
    path.write_text(path.read_text() + "    quarantined: true\n    failures: 3\n")
    assert "quarantined" in command("list").stdout
    assert "released" in command("doctor", "b").stderr
    assert "quarantined" not in command("list").stdout
