"""`argus-edge runs`: list, show, stop and prune recorded runs."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Any

import click

from argus_edge.cli.output import emit_json, json_option, say

STATES = ("starting", "running", "detached", "done", "failed", "lost", "stopped")
DAYS = {"d": 1.0, "h": 1 / 24, "w": 7.0}
# The calendar of datetime has an end.
LONGEST_DAYS = 36525.0


class Age(click.ParamType):
    """An age: ``30d``, ``12h``, ``2w``."""

    name = "age"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return days."""
        found = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*([dhw])", str(value).strip())
        if not found:
            self.fail(f"{value!r} is not an age; write 30d, 12h or 2w", param, ctx)
        days = float(found[1]) * DAYS[found[2]]
        if days > LONGEST_DAYS:
            self.fail(f"{value!r} is longer than a century", param, ctx)
        return days


class Moment(click.ParamType):
    """A moment: a date or time in UTC (``2026-11-30``, ``2026-11-30T18:00``), or an age."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Return the moment in UTC."""
        text = str(value).strip()
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            if text[-1:] not in DAYS:
                self.fail(f"{value!r} is no date and no age; write 2026-11-30, 12h, 7d or 2w", param, ctx)
            days = Age().convert(text, param, ctx)
            return datetime.now(timezone.utc) - timedelta(days=days)
        return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


@click.group()
def runs() -> None:
    """List, show, stop and prune recorded runs."""


@runs.command("list")
@click.option("--device", help="Only this device's.")
@click.option("--model", help="Only this model's.")
@click.option("--state", type=click.Choice(STATES), help="Only those that stand so.")
@click.option("--scenario", help="Only this scenario's.")
@click.option("--kind", type=click.Choice(["bench", "eval"]), help="Only benches, or only evaluations.")
@click.option("--since", type=Moment(), metavar="DATE|AGE", help="Begun since 2026-11-30, or in the last 12h, 7d, 2w.")
@click.option("--limit", type=click.IntRange(1, 1_000_000), default=30, show_default=True, help="At most so many.")
@click.option("--ask/--no-ask", default=True, help="Ask devices how unfinished runs stand.", show_default=True)
@json_option
def list_runs(
    device: str | None,
    model: str | None,
    state: str | None,
    scenario: str | None,
    kind: str | None,
    since: datetime | None,
    limit: int,
    ask: bool,
    json_path: str | None,
) -> None:
    """List runs, the newest first, and what is still running where."""
    import dataclasses
    import json

    from argus_edge.bench.elsewhere import standings
    from argus_edge.store.records import Store

    store = Store()
    records = store.list(
        device=device, model=model, state=state, scenario=scenario, kind=kind, since=since, limit=limit
    )
    standing = {run: stands.text for run, stands in standings(records, store).items()} if ask else {}
    if json_path is not None:
        rows = [{**dataclasses.asdict(record), "standing": standing.get(record.id)} for record in records]
        emit_json(json.dumps(rows, indent=1, default=lambda moment: moment.isoformat()), json_path)
    if json_path == "-":
        return
    if not records:
        chosen = any((device, model, state, scenario, kind, since))
        say("no such run" if chosen else "no runs are recorded; make one: argus-edge bench --device local")
        return
    from argus_edge.report.console import stdout_console
    from argus_edge.report.runs_table import runs_table

    stdout_console().print(runs_table(records, standing))


@runs.command()
@click.argument("run")
@json_option
def show(run: str, json_path: str | None) -> None:
    """Show the report of RUN (its id, or the beginning of it)."""
    from argus_edge.artifacts import dump_artifact
    from argus_edge.bench.elsewhere import standings
    from argus_edge.store.records import Store

    store = Store()
    record = store.find(run)
    if not record.has_report:
        stands = standings([record], store).get(record.id)
        say(f"{record.id}: {stands.text if stands else record.state}")
    if record.kind == "eval":
        from argus_edge.cli.evaluate import print_evaluation

        evaluation = store.evaluation(record.id)
        if json_path is not None:
            emit_json(dump_artifact(evaluation), json_path)
        if json_path != "-":
            print_evaluation(evaluation)
        return
    report = store.report(record.id)
    if json_path is not None:
        emit_json(dump_artifact(report), json_path)
    if json_path != "-":
        from argus_edge.report.console import stdout_console
        from argus_edge.report.terminal import print_report

        print_report(report, stdout_console())


@runs.command()
@click.argument("run")
def stop(run: str) -> None:
    """End RUN on its device; what it measured until then is kept."""
    from argus_edge.bench.elsewhere import stop as stop_run
    from argus_edge.errors import UsageError
    from argus_edge.store.records import UNFINISHED, Store

    store = Store()
    record = store.find(run)
    if record.state not in UNFINISHED:
        raise UsageError(f"The run has ended already: {record.state}.", where=record.id)
    outcome = stop_run(record, store)
    timed = sum(each.figures.count for each in outcome.report.measurements if each.figures)
    say(f"{record.id} was stopped; {timed:,} calls are kept: argus-edge runs show {record.id}")


@runs.command()
@click.option("--older-than", type=Age(), default="30d", show_default=True, help="Runs that ended longer ago.")
@click.option("--device", help="Only this device's; and clear the device of the runs that it still has.")
@click.option("--yes", is_flag=True, help="Do it; without, what would go is only listed.")
def prune(older_than: float, device: str | None, yes: bool) -> None:
    """Forget old runs with their reports; report files stay where they are."""
    from argus_edge.store.records import UNFINISHED, Store

    store = Store()
    before = datetime.now(timezone.utc) - timedelta(days=older_than)
    old = [
        record
        for record in store.list(device=device, limit=1_000_000)
        if record.state not in UNFINISHED and (record.ended or record.created) < before
    ]
    for record in old:
        say(f"{'removed' if yes else 'would remove'} {record.id} ({record.state})")
    if yes:
        store.remove([record.id for record in old])
        if device is not None:
            from argus_edge.bench.elsewhere import clear_device
            from argus_edge.devices.inventory import Inventory

            cleared = clear_device(Inventory().get(device))
            say(f"cleared {len(cleared)} ended run{'s' if len(cleared) != 1 else ''} from {device}")
    elif old:
        say("nothing was removed: add --yes")
    if not old:
        say(f"no recorded run ended before {before:%Y-%m-%d %H:%M} UTC")
