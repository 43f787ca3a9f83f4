"""`argus-edge device`: the inventory of boards, and what they are and lack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from argus_edge.cli.output import emit_json, json_option, say

if TYPE_CHECKING:
    from argus_edge.devices.doctor import Diagnosis
    from argus_edge.devices.inventory import Inventory
    from argus_edge.schema.device import DeviceEntry

inventory_option = click.option(
    "--inventory", "inventory_path", type=click.Path(dir_okay=False), metavar="FILE", help="Another inventory file."
)


def _inventory(path: str | None, *, existing: bool = True) -> Inventory:
    from pathlib import Path

    from argus_edge.devices.inventory import Inventory

    return Inventory(Path(path) if path else None, existing=existing)


@click.group()
def device() -> None:
    """The inventory of boards: add, probe, diagnose, set up.

    NAME is an entry of the inventory, `local` (this machine), or user@host[:port], which works unsaved.
    """


@device.command()
@click.argument("name")
@click.option("--host", metavar="[USER@]HOST[:PORT]", help="Address, or an alias of your ssh_config.")
@click.option("--profile", help="Kind of board: pi5, jetson-nano … (default: told from the board).")
@click.option("--python", metavar="PATH", help="Python on the device, e.g. a venv's (default: python3).")
@click.option("--home", metavar="DIR", help="Where agent, models and runs are kept there (~/.cache/argus-edge).")
@click.option("--container", metavar="IMAGE", help="Docker image there to run the agent in (Jetson: docs/devices.md).")
@click.option("--tag", "tags", multiple=True, help="For --tag of other commands; may be repeated.")
@click.option("--label", "labels", multiple=True, metavar="K=V", help="Goes into every report; may be repeated.")
@click.option("--power-cycle", metavar="COMMAND", help="Command on this machine that power-cycles the board.")
@click.option("--replace", is_flag=True, help="Change an existing entry: what is not named stays.")
@inventory_option
def add(
    name: str,
    host: str | None,
    profile: str | None,
    python: str | None,
    home: str | None,
    container: str | None,
    tags: tuple[str, ...],
    labels: tuple[str, ...],
    power_cycle: str | None,
    replace: bool,
    inventory_path: str | None,
) -> None:
    """Save a board under NAME, or change it with --replace. Nothing is sent to it.

    \b
    argus-edge device add pi5 --profile pi5 --host pi@192.168.1.20
    argus-edge device add pi5 --python '~/argus-venv/bin/python' --replace
    """  # noqa: D301  (click wants the backspace itself)
    from argus_edge.cli.bench import read_labels
    from argus_edge.devices import profiles
    from argus_edge.devices.inventory import make_entry

    inventory = _inventory(inventory_path, existing=False)
    changes = {
        "host": host,
        "profile": profiles.load(profile).name if profile else None,
        "python": python,
        "home": home,
        "container": container,
        "tags": list(tags) or None,
        "labels": read_labels(labels) or None,
        "power_cycle": _words(power_cycle) if power_cycle else None,
    }
    named = {key: value for key, value in changes.items() if value is not None}
    known = replace and name in inventory.entries
    if known:
        inventory.change(name, **named)
    else:
        inventory.add(make_entry(name, named))
    click.echo(f"{'changed' if known else 'added'} {name} in {inventory.path}")
    say(f"next: argus-edge device doctor {name}{inventory.option}")


def _words(command: str) -> list[str]:
    import shlex

    from argus_edge.errors import UsageError

    try:
        return shlex.split(command)
    except ValueError as error:
        raise UsageError(
            f"Cannot read --power-cycle {command!r}: {str(error)[:1].lower()}{str(error)[1:]}.",
            next_step="write it as for a shell, every quote closed",
        ) from error


@device.command("list")
@click.option("--tag", help="Only those with this tag.")
@inventory_option
@json_option
def list_(tag: str | None, inventory_path: str | None, json_path: str | None) -> None:
    """List the boards."""
    import json

    from argus_edge.devices.inventory import local_entry

    inventory = _inventory(inventory_path)
    entries = [local_entry(), *inventory.entries.values()]
    if tag is not None:
        entries = [entry for entry in entries if tag in entry.tags]
    if json_path:
        emit_json(json.dumps([entry.model_dump() for entry in entries], indent=1), json_path)
    if json_path != "-":
        rows = [
            [
                entry.name,
                entry.profile,
                entry.host or "this machine",
                " ".join(entry.tags),
                "quarantined: `argus-edge device doctor` releases it" if entry.quarantined else "",
            ]
            for entry in entries
        ]
        _table(["NAME", "PROFILE", "ADDRESS", "TAGS", ""], rows)
        if not inventory.entries:
            say(f"no boards yet: argus-edge device add NAME --host USER@HOST{inventory.option}")


@device.command()
@click.argument("name")
@inventory_option
@json_option
def show(name: str, inventory_path: str | None, json_path: str | None) -> None:
    """Show an entry, and how its address is reached under your ssh_config."""
    import json

    entry = _inventory(inventory_path).get(name)
    way = _way(entry)
    if json_path:
        emit_json(json.dumps({**entry.model_dump(), "ssh": way}, indent=1), json_path)
    if json_path != "-":
        fields = {key: value for key, value in entry.model_dump().items() if value not in (None, [], {}, False, 0)}
        _pairs({**fields, **way})


def _way(entry: DeviceEntry) -> dict[str, Any]:
    """Return how SSH reaches a device: only what it is, no keys."""
    if entry.host is None:
        return {}
    from argus_edge.devices.ssh_config import load_config, resolve

    target = resolve(entry.host, load_config())
    return {
        "reached as": str(target),
        "through": list(target.jumps),
        "keys": [str(path) for path in target.identity_files if path.exists()]
        + (["ssh agent"] if target.agent else []),
        "known hosts": [str(path) for path in target.known_hosts_files if path.exists()],
    }


@device.command()
@click.argument("name")
@inventory_option
def remove(name: str, inventory_path: str | None) -> None:
    """Forget a board. What is on it stays there."""
    inventory = _inventory(inventory_path)
    entry = inventory.remove(name)
    click.echo(f"removed {name} from {inventory.path}")
    say(f"its files are still in {entry.home} on {entry.host}")


@device.command()
@click.argument("names", metavar="NAME[,NAME…]")
@inventory_option
@json_option
@click.pass_context
def probe(ctx: click.Context, names: str, inventory_path: str | None, json_path: str | None) -> None:
    """Tell what a board is: system, Python, runtimes, clocks, sensors, throttle state.

    Of several boards, one that cannot be asked does not stop the others; the exit code is then its error's.
    """
    import json

    from argus_edge.cli.device_view import facts_table
    from argus_edge.devices.connect import connected
    from argus_edge.devices.probing import probe as probe_device
    from argus_edge.devices.probing import profile_note
    from argus_edge.errors import ArgusError

    entries = _inventory(inventory_path).select(names)
    documents: list[dict[str, Any]] = []
    code = 0
    for entry in entries:
        try:
            with connected(entry) as transport:
                say(f"{entry.name}: asking {transport.description} …")
                _, facts = probe_device(transport, entry)
        except ArgusError as error:
            if len(entries) == 1:
                raise
            say(f"{entry.name}: error: {error}")
            documents.append({"device": entry.name, "error": error.what})
            code = code or error.exit_code
            continue
        documents.append({"device": entry.name, **facts.model_dump(mode="json")})
        if json_path != "-":
            facts_table(entry, facts, profile_note(entry, facts))
    if json_path:
        emit_json(json.dumps(documents if len(documents) > 1 else documents[0], indent=1), json_path)
    ctx.exit(code)


@device.command()
@click.argument("names", metavar="NAME[,NAME…]")
@inventory_option
@json_option
@click.pass_context
def doctor(ctx: click.Context, names: str, inventory_path: str | None, json_path: str | None) -> None:
    """Look for what is missing or wrong, each with the command that mends it.

    Exit code 0 when nothing stands in the way, 3 when the board cannot be reached or trusted, 4 when something on it
    is missing. A quarantined board that passes is released.
    """
    import json

    from argus_edge.cli.device_view import document, print_diagnosis
    from argus_edge.devices.connect import connect
    from argus_edge.devices.doctor import diagnose, exit_code

    inventory = _inventory(inventory_path)
    reports, worst = [], 0
    for entry in inventory.select(names):
        if json_path != "-":
            click.echo(f"{entry.name}  {entry.host or 'this machine'}")
        diagnoses: list[Diagnosis] = []
        for diagnosis in diagnose(entry, connect):
            diagnoses.append(diagnosis)
            if json_path != "-":
                print_diagnosis(diagnosis, entry)
        code = exit_code(diagnoses)
        worst = worst or code
        reports.append({"device": entry.name, "ok": code == 0, "findings": [document(item) for item in diagnoses]})
        if code == 0 and entry.name in inventory.entries and (entry.quarantined or entry.failures):
            inventory.change(entry.name, quarantined=False, failures=0)
            say(f"{entry.name} is released from quarantine")
        if any(item.runnable for item in diagnoses):
            say(
                f"next: argus-edge device setup {entry.name}{inventory.option}   "
                "(runs the commands above, asking before each)"
            )
    if json_path:
        emit_json(json.dumps(reports if len(reports) > 1 else reports[0], indent=1), json_path)
    ctx.exit(worst)


@device.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask before commands that need no root.")
@click.option("--privileged", is_flag=True, help="With --yes: do not ask before commands that need root either.")
@inventory_option
@click.pass_context
def setup(ctx: click.Context, name: str, yes: bool, privileged: bool, inventory_path: str | None) -> None:
    """Run doctor's commands on a board, asking before each; --yes asks only before those that need root."""
    from argus_edge.cli.device_setup import run_setup

    ctx.exit(run_setup(_inventory(inventory_path), name, yes=yes, privileged=yes and privileged))


@device.command("power-cycle")
@click.argument("names", metavar="NAME[,NAME…]")
@click.option("--no-wait", is_flag=True, help="Do not wait until it answers again.")
@inventory_option
@click.pass_context
def power_cycle(ctx: click.Context, names: str, no_wait: bool, inventory_path: str | None) -> None:
    """Switch a board off and on by its own command, and wait until it answers again.

    The command is yours (device add NAME --power-cycle COMMAND) and runs on this machine, without a shell. A run that
    the board has at hand is lost with it.
    """
    from argus_edge.devices import power
    from argus_edge.errors import ArgusError

    entries = _inventory(inventory_path).select(names)
    code = 0
    for entry in entries:
        try:
            say(f"{entry.name}: switching it off and on …")
            power.power_cycle(entry)
            waited = None if no_wait else power.wait_until_up(entry)
        except ArgusError as error:
            if len(entries) == 1:
                raise
            say(f"{entry.name}: error: {error}")
            code = code or error.exit_code
            continue
        click.echo(f"{entry.name} was power-cycled" + (f", answers after {waited:.0f} s" if waited is not None else ""))
    ctx.exit(code)


@device.command()
@click.argument("name")
@click.argument("fingerprint", required=False)
@click.option("--first-use", is_flag=True, help="Accept whatever key it shows, if none is known for it yet.")
@click.option("--replace", is_flag=True, help="The key has changed and I know why: drop the old one.")
@inventory_option
def trust(name: str, fingerprint: str | None, first_use: bool, replace: bool, inventory_path: str | None) -> None:
    """Accept a board's host key into your known_hosts: the one with FINGERPRINT, or the one you confirm.

    Compare it on the board: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub
    """
    from argus_edge.devices.trust import trust as trust_host

    entry = _inventory(inventory_path).entries.get(name)
    question = f"{name} shows {{}}. Is that its key?"
    path, shown = trust_host(
        entry.host if entry and entry.host else name,
        fingerprint=fingerprint,
        replace=replace,
        confirm=lambda key: (first_use and not replace) or click.confirm(question.format(key), default=False, err=True),
    )
    click.echo(f"trusted {shown}" + (f", added to {path}" if path else " already"))


def _table(headers: list[str], rows: list[list[str]]) -> None:
    from argus_edge.cli.device_view import table

    table(headers, rows)


def _pairs(values: dict[str, Any]) -> None:
    from argus_edge.cli.device_view import pairs

    pairs(values)
