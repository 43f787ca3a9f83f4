"""What bench tests share: hypothesis without a deadline, a device of their own, a record of runs of their own."""

import sys
from pathlib import Path

import onnx
import psutil
import pytest
from hypothesis import settings

from argus_edge.bench.watching import Nobody
from argus_edge.schema.device import DeviceEntry
from argus_edge.store.records import Store
from tests.support.devices import probed_once  # noqa: F401

# A busy machine is no fault of the code's.
settings.register_profile("bench", deadline=None)
settings.load_profile("bench")

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


@pytest.fixture(autouse=True)
def _quick_probe(probed_once):  # noqa: F811
    """Every bench test probes a device once a session."""


@pytest.fixture
def entry(tmp_path):
    """This machine, with a home of the test's own."""
    return DeviceEntry(name="local", python=sys.executable, home=str(tmp_path / "device"))


@pytest.fixture
def store(tmp_path):
    """A record of runs."""
    opened = Store(f"sqlite:///{tmp_path / 'store' / 'runs.db'}")
    yield opened
    opened.close()


@pytest.fixture
def squeezenet():
    return str(LIGHT / "light_squeezenet.onnx")


@pytest.fixture
def processes(tmp_path):
    """A function that returns the processes that a run of this test has on the device."""

    def find():
        found = []
        for process in psutil.process_iter(["cmdline"]):
            if str(tmp_path / "device") in " ".join(process.info["cmdline"] or []):
                found.append(process)
        return found

    return find


class Hook(Nobody):
    """A listener that calls a function on the first event for which a test is true, and keeps all."""

    def __init__(self, when=lambda event: False, then=lambda: None):
        self.when, self.then = when, then
        self.events, self.said = [], []
        self.fired = False

    def say(self, text):
        self.said.append(text)

    def event(self, event):
        self.events.append(event)
        if not self.fired and self.when(event):
            self.fired = True
            self.then()


@pytest.fixture
def hook():
    return Hook


def steady(event):
    """True of the event with which the timed window begins."""
    return event.event == "phase" and event.phase == "steady"
