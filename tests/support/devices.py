"""Devices in tests."""

import pytest

from argus_edge.devices.agent_client import AgentClient

# Facts by device: a probe imports every runtime, torch too, which takes its time.
FACTS = {}


@pytest.fixture
def probed_once(monkeypatch):
    """A device is probed once a session."""
    probe = AgentClient.probe

    def cached(client, **options):
        key = client.entry.python, client.entry.host, str(options)
        if key not in FACTS:
            FACTS[key] = probe(client, **options)
        return FACTS[key]

    monkeypatch.setattr(AgentClient, "probe", cached)
