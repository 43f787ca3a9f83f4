"""One device with the real agent on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from argus_edge.devices.zipapp import build_agent
from tests.support.agent_device import Agent, leftovers, null_part, onnx_part

FAKES = Path(__file__).parent / "fakes"


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_agent(tmp_path_factory.mktemp("archive")).path


@pytest.fixture
def agent(archive: Path, tmp_path: Path) -> Iterator[Agent]:
    device = Agent(archive, tmp_path / "home")
    yield device
    for run in device.call("list")["runs"]:
        if run["state"] == "running":
            device.stop(run["run"])
        device.call("remove", run["run"])
    assert not leftovers(device.home), "the agent left shared memory behind"


@pytest.fixture
def broken(agent: Agent) -> Agent:
    """A device whose onnxruntime misbehaves as ``FAKE_FAULT`` says; see fakes/onnxruntime.py."""
    agent.environment["PYTHONPATH"] = str(FAKES)
    return agent


@pytest.fixture
def parts() -> type:
    """Builders of parts."""

    class Parts:
        null = staticmethod(null_part)
        onnx = staticmethod(onnx_part)

    return Parts
