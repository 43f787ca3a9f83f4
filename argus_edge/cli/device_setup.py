"""`argus-edge device setup`: runs the commands that doctor found, asking before them."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from argus_edge.cli.device_view import print_diagnosis
from argus_edge.cli.output import say
from argus_edge.text import clean

if TYPE_CHECKING:
    from argus_edge.devices.doctor import Diagnosis
    from argus_edge.devices.inventory import Inventory
    from argus_edge.schema.device import DeviceEntry


def run_setup(inventory: Inventory, name: str, *, yes: bool, privileged: bool) -> int:
    """Diagnose, run what mends, diagnose again; return the last diagnosis's exit code."""
    from argus_edge.devices.connect import connect, connected
    from argus_edge.devices.doctor import diagnose, exit_code, mend

    entry = inventory.get(name)
    tried: set[str] = set()
    # What one command mends (Python) may let the next round find more (runtimes).
    while True:
        diagnoses = list(diagnose(entry, connect))
        adopted = _adopt(inventory, entry, diagnoses)
        if adopted:
            entry = adopted
            continue
        todo = [item for item in diagnoses if item.runnable and item.finding.command not in tried]
        if not todo:
            break
        with connected(entry) as transport:
            for item in todo:
                command = item.finding.command or ""
                tried.add(command)
                print_diagnosis(item, entry)
                asked = not (privileged if item.finding.privileged else yes)
                if asked and not click.confirm("      run it?", default=True, err=True):
                    continue
                say("      running …")
                done = mend(transport, command)
                if done.status == 0:
                    say("      done")
                    continue
                said = clean(done.stderr.strip() or done.stdout.strip(), limit=2000, lines=True)
                say(f"      failed with status {done.status}: {said}")
                if item.finding.privileged:
                    say(f"      run it yourself: {_by_hand(entry, clean(command, limit=1000))}")
    for item in diagnoses:
        print_diagnosis(item, entry)
    return exit_code(diagnoses)


def _adopt(inventory: Inventory, entry: DeviceEntry, diagnoses: list[Diagnosis]) -> DeviceEntry | None:
    """Let a saved entry use the environment that was made on the board, where its own interpreter has no runtime."""
    from argus_edge.agents.check import VENV

    python = f"{entry.home}/{VENV}/bin/python"
    made = any(item.finding.check == "python-environment" and not item.ok for item in diagnoses)
    if not made or entry.name not in inventory.entries or entry.python == python:
        return None
    say(f"{entry.name} now uses {python}")
    return inventory.change(entry.name, python=python)


def _by_hand(entry: DeviceEntry, command: str) -> str:
    if entry.host is None:
        return command
    from argus_edge.devices.address import parse_address

    user, host, port = parse_address(entry.host)
    address = shlex.quote(f"{user}@{host}" if user else host)
    return f"ssh -t {f'-p {port} ' if port else ''}{address} {shlex.quote(command)}"
