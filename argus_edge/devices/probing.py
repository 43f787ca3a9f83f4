"""What a device is: sends the agent if need be and asks it; what can be told of the profile from the answer."""

from __future__ import annotations

from collections.abc import Sequence

from argus_edge.devices import profiles
from argus_edge.devices.agent_client import AgentClient
from argus_edge.devices.deploy import deploy_agent
from argus_edge.devices.transport import Transport
from argus_edge.schema.agent import DeviceFacts
from argus_edge.schema.device import DeviceEntry, Profile


def probe(
    transport: Transport, entry: DeviceEntry, *, runtimes: Sequence[str] | None = None
) -> tuple[AgentClient, DeviceFacts]:
    """Return the agent's client and the device's facts.

    Parameters
    ----------
    transport, entry
        The device.
    runtimes
        The only ones to look for: importing a runtime takes seconds on a board, and warms it. None: every one.

    Raises
    ------
    ArgusError
        As of deployment and of the agent's call: not reachable, not trusted, no Python, no room.
    """
    agent = deploy_agent(transport, entry)
    return agent, agent.probe(runtimes=runtimes)


def profile_of(entry: DeviceEntry, facts: DeviceFacts) -> Profile:
    """Return the profile that holds for a device: the one its entry names, or for a generic entry the best match."""
    return profiles.match(facts) if entry.profile == profiles.GENERIC else profiles.load(entry.profile)


def profile_note(entry: DeviceEntry, facts: DeviceFacts) -> str | None:
    """Return a remark where the entry's profile is not the one that the device looks like, else None."""
    found = profiles.match(facts)
    named = profiles.load(entry.profile)
    if found.name in (named.name, profiles.GENERIC):
        return None
    if named.name == profiles.GENERIC:
        return f"it looks like {found.name} ({found.title}), whose figures are used"
    return f"its profile is {named.name}, but it looks like {found.name} ({found.title})"
