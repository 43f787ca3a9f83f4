"""What is wrong with a board, and what mends it: on a scripted board, and on real logins that lack something."""

from __future__ import annotations

import re
import sys
import time

import pytest

from argus_edge.devices.doctor import diagnose, exit_code
from argus_edge.devices.mock import MockTransport
from argus_edge.devices.ssh import SshTransport
from argus_edge.devices.transport import Completed
from argus_edge.errors import DeviceUnreachableError, DeviceUntrustedError
from argus_edge.schema.device import DeviceEntry
from tests.support.light_python import make_light_python
from tests.support.sshd import free_port, serve

ENTRY = DeviceEntry(name="board", host="board", python=sys.executable)


@pytest.fixture(scope="module")
def light(tmp_path_factory):
    """The board, with an interpreter that is quickly probed."""
    python = make_light_python(tmp_path_factory.mktemp("python") / "venv")
    return ENTRY.model_copy(update={"python": str(python)})


def findings(board, entry=ENTRY):
    return {item.finding.check: item for item in diagnose(entry, lambda _: board)}


@pytest.fixture
def board():
    """A board on which all is well."""

    clock = time.time

    def shell(argv):
        if "date" in argv[2]:
            return Completed(0, f"{argv[3]} {int(clock())}\n", "")
        return mock._script(argv)

    mock = MockTransport()
    mock.on("/bin/sh", shell)
    mock.on("-c", lambda argv: Completed(0, argv[2].split("'")[1] + " 3 11 2\n", ""))
    mock.on_agent("check", {"findings": [{"check": "disk", "ok": True, "severity": "info", "detail": "fine"}]})
    return mock


def test_a_board_where_all_is_well(board):
    found = findings(board)
    assert list(found) == ["login", "agent", "disk"]
    assert all(item.ok for item in found.values())
    assert exit_code(list(found.values())) == 0
    assert board.closed


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DeviceUnreachableError("off", next_step="switch it on"), 3),
        (DeviceUntrustedError("changed", next_step="look"), 3),
    ],
)
def test_a_board_that_is_not_reached(error, code):
    board = MockTransport()
    board.on("/bin/sh", error)
    found = findings(board)
    assert found["login"].error is error
    assert exit_code(list(found.values())) == code


def first(board, word, answer):
    """Put a rule before those of the good board."""
    board._rules.insert(0, (word, answer))


def test_no_python_names_the_command_and_stops_there(board):
    first(board, "python3", Completed(127, "", "sh: python3: not found"))
    found = findings(board, ENTRY.model_copy(update={"python": "python3"}))
    assert list(found) == ["login", "python"]
    assert found["python"].finding.command == "sudo apt-get install -y python3"
    assert found["python"].finding.privileged
    assert exit_code(list(found.values())) == 4


def test_a_clock_that_is_off(board, monkeypatch):
    now = time.time()
    monkeypatch.setattr("argus_edge.devices.doctor.time.time", lambda: now + 4000)
    found = findings(board)
    assert re.search(r"(399|400)\d s behind", found["clock"].finding.detail)
    assert found["clock"].finding.severity == "warning"
    assert exit_code(list(found.values())) == 0


def test_too_little_room(board):
    board.free_bytes = 100 << 20
    assert "105 MB are free" in findings(board)["room"].finding.detail


class TestRealLogins:
    def connect(self, server, **options):
        return lambda entry: SshTransport("board", config=server.config(**options))

    def test_all_is_well(self, sshd, light):
        found = list(diagnose(light, self.connect(sshd)))
        assert [item.finding.check for item in found][:2] == ["login", "agent"]
        assert len(found) > 3

    def test_a_board_that_is_off(self, sshd):
        (only,) = diagnose(ENTRY, self.connect(sshd, name="off", port=free_port()))
        assert only.finding.check == "login"
        assert exit_code([only]) == 3

    def test_no_python(self, sshd):
        found = list(diagnose(ENTRY.model_copy(update={"python": "~/none/python3"}), self.connect(sshd)))
        assert found[-1].finding.check == "python"
        assert "--python PATH --replace" in found[-1].finding.detail
        assert exit_code(found) == 4

    def test_a_python_that_is_too_old(self, sshd):
        old = sshd.home / "old-python"
        old.write_text('#!/bin/sh\necho "$(printf %s "$2" | sed "s/.*print(\'\\([^\']*\\)\'.*/\\1/") 2 7 18"\n')
        old.chmod(0o755)
        found = list(diagnose(ENTRY.model_copy(update={"python": "~/old-python"}), self.connect(sshd)))
        assert "2.7.18" in found[-1].finding.detail

    def test_a_login_that_talks_is_remarked_on_and_harmless(self, tmp_path, light):
        noisy = 'echo "Welcome to Ubuntu"; exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"'
        with serve(tmp_path / "s", force_command=noisy) as server:
            found = {item.finding.check: item for item in diagnose(light, self.connect(server))}
        assert "Welcome to Ubuntu" in found["shell"].finding.detail
        assert found["shell"].ok
        assert found["agent"].ok
