"""Following a run to its end: a lost link is taken up again, and whoever watches is told what happens."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from argus_edge.devices.agent_client import AgentClient
from argus_edge.devices.connect import connect
from argus_edge.devices.deploy import deploy_agent
from argus_edge.devices.transport import Transport
from argus_edge.errors import ArgusError, DeviceUnreachableError, InterruptedRunError
from argus_edge.schema.agent import Event, Job
from argus_edge.schema.device import DeviceEntry

T = TypeVar("T")

# Waits between attempts to reach a device again; after the last the run is left to itself.
RETRY_S = (1.0, 2.0, 5.0, 10.0, 20.0)


class Listener(Protocol):
    """Whoever watches a run: a progress line, a log, nobody."""

    def say(self, text: str) -> None:
        """Take a message for a person."""

    def transfer(self, done: int, total: int) -> None:
        """Take the bytes sent so far, and in all."""

    def started(self, run: str, stop: Callable[[], object]) -> None:
        """Take it that a run is about to start, or is come back to; ``stop`` ends it on the device, from any thread."""

    def event(self, event: Event) -> None:
        """Take an event of the run's journal."""

    def quiet(self) -> None:
        """Take it that nothing more will come for now: a progress line goes away."""

    def pause(self, seconds: float) -> None:
        """Let the time pass; whoever watches may cut it short by raising KeyboardInterrupt."""


class Nobody:
    """A listener that does not listen."""

    def say(self, text: str) -> None:
        """Pass over a message."""

    def transfer(self, done: int, total: int) -> None:
        """Pass over a transfer."""

    def started(self, run: str, stop: Callable[[], object]) -> None:
        """Pass over a start."""

    def event(self, event: Event) -> None:
        """Pass over an event."""

    def quiet(self) -> None:
        """Do nothing."""

    def pause(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)


class Link:
    """The link to one device, which can be made anew.

    Parameters
    ----------
    entry
        The device.
    connect
        Makes a transport.
    """

    def __init__(self, entry: DeviceEntry, connect: Callable[[DeviceEntry], Transport] = connect) -> None:
        self.entry = entry
        self._connect = connect
        self.transport = connect(entry)

    def reconnect(self) -> None:
        """Give the old link back and make a new one."""
        self.transport.close()
        self.transport = self._connect(self.entry)

    def close(self) -> None:
        """Give the link back."""
        self.transport.close()

    def stopper(self, agent: str, run: str) -> Callable[[], object]:
        """Return what ends a run on the device, over the link as it is then."""
        return lambda: AgentClient(self.transport, self.entry, agent).stop(run)


def come_back(run: str) -> str:
    """Return what to type to come back to a run."""
    return f"argus-edge bench --resume {run}"


def follow(link: Link, agent: str, run: str, listener: Listener) -> Event:
    """Follow a run until it has ended and return its last event.

    Raises
    ------
    DeviceUnreachableError
        The link was lost, and the device could not be reached again; the run goes on, and the next step says how to
        come back to it.
    """
    offset = 0
    failures = 0
    while True:
        try:
            client = AgentClient(link.transport, link.entry, agent)
            for chunk in client.follow(run, offset):
                failures = 0
                offset = chunk.offset
                for event in chunk.events:
                    listener.event(event)
                    if event.event == "ended":
                        return event
            lost = DeviceUnreachableError("The agent fell silent.", where=link.transport.description)
        except DeviceUnreachableError as error:
            lost = error
        if failures == len(RETRY_S):
            raise DeviceUnreachableError(
                f"{lost.what} The run {run} goes on there without us.",
                where=lost.where or link.transport.description,
                next_step=come_back(run),
            ) from lost
        listener.say(f"{lost.what} The run goes on; trying again in {RETRY_S[failures]:g} s.")
        listener.pause(RETRY_S[failures])
        failures += 1
        link.reconnect()
        # It may have been killed, or another one been put in its place: what answers next is ours, by its hash.
        with contextlib.suppress(DeviceUnreachableError):
            deploy_agent(link.transport, link.entry)


def start(link: Link, job: Job, listener: Listener) -> None:
    """Start a run; where the link is lost meanwhile, ask the device whether it has begun, and else start it again.

    Raises
    ------
    DeviceUnreachableError
        The device could not be reached again. Whether the run was started is not known; the next step finds out.
    """
    asked = False

    def begin(client: AgentClient) -> None:
        nonlocal asked
        if asked and any(status.run == job.run for status in client.list_runs()):
            return
        asked = True
        client.start(job)

    unknown = f"Whether the run {job.run} was started is not known; if it was, it goes on there without us."
    _over_lost_links(link, begin, listener, unknown, job.run)


def fetch(link: Link, run: str, folder: Path, listener: Listener) -> dict[str, Path]:
    """Fetch what a run that has ended left on the device; a lost link is taken up again.

    Raises
    ------
    DeviceUnreachableError
        The device could not be reached again; what the run measured is kept there.
    """
    kept = f"The run {run} has ended there, and what it measured is kept."
    return _over_lost_links(link, lambda client: client.fetch(run, folder), listener, kept, run)


def _over_lost_links(link: Link, action: Callable[[AgentClient], T], listener: Listener, given_up: str, run: str) -> T:
    """Do something over the link, again and again while it is lost; ``given_up`` says what it means in the end.

    Each time the agent is looked at first: another one may have been put in its place, and what answers must be ours.
    """
    for wait in (*RETRY_S, None):
        try:
            return action(deploy_agent(link.transport, link.entry))
        except DeviceUnreachableError as error:
            if wait is None:
                where = error.where or link.transport.description
                raise DeviceUnreachableError(
                    f"{error.what} {given_up}", where=where, next_step=come_back(run)
                ) from error
            listener.say(f"{error.what} Trying again in {wait:g} s.")
        listener.pause(wait)
        link.reconnect()
    raise AssertionError("unreachable")


def stop_on_interrupt(link: Link, agent: str, run: str, listener: Listener) -> InterruptedRunError:
    """Stop a run after Ctrl-C and return the error to end with; a second Ctrl-C leaves it running.

    The agent ends a run within 5 s.
    """
    where = link.transport.description
    listener.say(f"stopping the run on {where} (Ctrl-C again leaves at once and lets it go on)")
    left = f"it may still be running: argus-edge runs stop {run}, or come back with {come_back(run)}"
    try:
        client = AgentClient(link.transport, link.entry, agent)
        client.stop(run)
        client.remove(run)
    except KeyboardInterrupt:
        return InterruptedRunError(f"Left the run {run} at once.", where=where, next_step=left)
    except ArgusError as error:
        if unknown(link, agent, run):
            return InterruptedRunError("Interrupted before the run was started.", where=where)
        return InterruptedRunError(
            f"Interrupted, and the run {run} could not be stopped: {error.what}", where=where, next_step=left
        )
    return InterruptedRunError(f"Interrupted; the run {run} was stopped.", where=where)


def unknown(link: Link, agent: str, run: str) -> bool:
    """Return whether the device says that it has no such run."""
    try:
        return all(status.run != run for status in AgentClient(link.transport, link.entry, agent).list_runs())
    except (ArgusError, KeyboardInterrupt):
        return False
