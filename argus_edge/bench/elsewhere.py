"""Runs that go on without us: how they stand on their devices, ending them, and clearing what they left there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from argus_edge.bench.context import Context
from argus_edge.bench.drive import Outcome, check_known, conclude
from argus_edge.bench.watching import Link, Nobody, come_back
from argus_edge.devices.agent_client import AgentClient
from argus_edge.devices.connect import connect
from argus_edge.devices.deploy import deploy_agent
from argus_edge.devices.transport import Transport
from argus_edge.errors import ArgusError, RunFailedError
from argus_edge.schema.agent import RunStatus
from argus_edge.schema.device import DeviceEntry
from argus_edge.store.records import UNFINISHED, Record, Store
from argus_edge.text import clean

Connect = Callable[[DeviceEntry], Transport]


@dataclass(frozen=True)
class Standing:
    """How an unfinished run stands on its device.

    Attributes
    ----------
    state
        As the agent says; ``"gone"`` where the device does not know it, ``"unreachable"``.
    text
        For a person, with what to type next.
    """

    state: str
    text: str


def standings(records: Iterable[Record], store: Store, *, connect: Connect = connect) -> dict[str, Standing]:
    """Ask the devices of unfinished runs how these stand, each device once."""
    by_device: dict[str, list[Record]] = {}
    for record in records:
        if record.state in UNFINISHED:
            entry_json, _ = store.documents(record.id)
            by_device.setdefault(entry_json, []).append(record)
    found: dict[str, Standing] = {}
    for entry_json, waiting in by_device.items():
        entry = DeviceEntry.model_validate_json(entry_json)
        link = Link(entry, connect)
        try:
            known = {status.run: status for status in deploy_agent(link.transport, entry).list_runs()}
            for record in waiting:
                found[record.id] = _standing(known.get(record.id), record.id)
        except ArgusError as error:
            for record in waiting:
                found[record.id] = Standing("unreachable", f"cannot be asked: {error.what}")
        finally:
            link.close()
    return found


def _standing(status: RunStatus | None, run: str) -> Standing:
    if status is None:
        return Standing("gone", "the device has no such run any more")
    if status.state == "running":
        part = f", part {status.part + 1} of {status.parts}" if status.part is not None and status.parts else ""
        phase = clean(status.phase or "starting", limit=20)
        return Standing("running", f"running: {phase}{part}; {come_back(run)}")
    return Standing(status.state, f"ended ({status.state}), not fetched; {come_back(run)}")


def stop(record: Record, store: Store, *, connect: Connect = connect) -> Outcome:
    """End a run on its device and keep what it measured until then.

    Raises
    ------
    RunFailedError
        The device has no such run.
    """
    entry_json, context_json = store.documents(record.id)
    entry = DeviceEntry.model_validate_json(entry_json)
    link = Link(entry, connect)
    try:
        client = deploy_agent(link.transport, entry)
        context = Context.from_json(context_json)
        check_known(client, record, store, context)
        try:
            client.stop(record.id)
        except RunFailedError:
            # Whoever followed it may have fetched and cleared it between its end and the agent's answer.
            if not store.find(record.id).has_report:
                raise
        return conclude(link, client.agent, context, store, Nobody())
    finally:
        link.close()


def clear_device(entry: DeviceEntry, *, connect: Connect = connect) -> list[str]:
    """Remove the files of every run that has ended from a device; return their ids."""
    link = Link(entry, connect)
    try:
        client: AgentClient = deploy_agent(link.transport, entry)
        ended = [status.run for status in client.list_runs() if status.state != "running"]
        for run in ended:
            client.remove(run)
        return ended
    finally:
        link.close()
