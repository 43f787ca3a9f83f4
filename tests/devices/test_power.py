"""Switching a board off and on: the user's own words, no shell, and a board that comes back."""

import sys

import pytest

from argus_edge.devices import power
from argus_edge.devices.mock import MockTransport
from argus_edge.devices.transport import Completed
from argus_edge.errors import DeviceError, DeviceUnreachableError, DeviceUntrustedError, UsageError
from argus_edge.schema.device import DeviceEntry


def entry(*argv):
    return DeviceEntry(name="pi5", host="pi@board", power_cycle=list(argv) or None)


def test_the_words_are_passed_as_they_are(tmp_path):
    out = tmp_path / "words"
    program = f"import sys; open({str(out)!r}, 'w').write('|'.join(sys.argv[1:]))"
    power.power_cycle(entry(sys.executable, "-c", program, "outlet 3", "$(reboot)", "; rm -rf /"))
    assert out.read_text() == "outlet 3|$(reboot)|; rm -rf /"


def test_none_is_set():
    with pytest.raises(UsageError) as caught:
        power.power_cycle(entry())
    assert "device add pi5 --power-cycle" in caught.value.next_step


def test_one_that_fails_says_why():
    program = "import sys; print('no such \\x1b[31moutlet'); sys.exit(4)"
    with pytest.raises(DeviceError, match="status 4: no such outlet"):
        power.power_cycle(entry(sys.executable, "-c", program))
    with pytest.raises(DeviceError, match="cannot be run"):
        power.power_cycle(entry("/no/such/program"))


def test_one_that_hangs_is_ended(monkeypatch):
    monkeypatch.setattr(power, "COMMAND_S", 0.1)
    with pytest.raises(DeviceError, match="did not end"):
        power.power_cycle(entry(sys.executable, "-c", "import time; time.sleep(600)"))


class Booting:
    """A board that answers after so many questions, and a clock on which pauses pass."""

    def __init__(self, after):
        self.after, self.now = after, 0.0

    def connect(self, entry):
        board = MockTransport()
        self.after -= 1
        if self.after >= 0:
            board.unreachable = "No answer."
        board.on("true", Completed(0, "", ""))
        return board

    def pause(self, seconds):
        self.now += seconds

    def wait(self):
        return power.wait_until_up(entry(), connect=self.connect, pause=self.pause, clock=lambda: self.now)


def test_it_is_waited_for():
    assert Booting(after=5).wait() == power.GOING_S + 5 * power.POLL_S


def test_not_for_ever():
    with pytest.raises(DeviceUnreachableError, match="after it was power-cycled"):
        Booting(after=10_000).wait()


def test_a_board_that_is_not_trusted_is_not_waited_for():
    def connect(entry):
        board = MockTransport()
        board.on("true", DeviceUntrustedError("The key has CHANGED."))
        return board

    with pytest.raises(DeviceUntrustedError):
        power.wait_until_up(entry(), connect=connect, pause=lambda _: None)
