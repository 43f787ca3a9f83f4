"""`argus-edge run`: carry out a whole plan, resumable."""

from __future__ import annotations

import signal
import sys

import click

from argus_edge.cli.output import say
from argus_edge.text import pasted


@click.command()
@click.argument("plan_file", metavar="PLAN.yaml")
@click.option("--dry-run", is_flag=True, help="Print the commands and run none.")
def run(plan_file: str, dry_run: bool) -> int:
    """Export, bench, evaluate, score, validate, size and report: models x precisions x devices x data.

    Called again, it goes on where it was: a step whose inputs and output are unchanged is not repeated.
    """
    from argus_edge.devices.inventory import Inventory
    from argus_edge.pipeline.plan import read_plan, steps_of
    from argus_edge.pipeline.runner import command_line, run_plan

    plan = read_plan(plan_file)
    if dry_run:
        for step in steps_of(plan):
            click.echo(command_line(step))
        return 0
    boards = Inventory()
    for device in plan.devices:
        boards.get(device)  # a name that is not known would show only once everything is exported
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the command at work is ended as well
    try:
        outcome = run_plan(plan, tell=say)
    except KeyboardInterrupt:
        say(f"interrupted; to go on: argus-edge run {pasted(plan_file)}")
        return 130
    done = sum(state in ("done", "kept") for state in outcome.states.values())
    say(f"{done} of {len(outcome.states)} steps done; results in {plan.out}")
    for name, state in outcome.states.items():
        if state in ("failed", "left out"):
            say(f"  {state}: {name}")
    return outcome.exit_code
