"""A sizing for a person at a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from argus_edge.gate.units import format_quantity
from argus_edge.report.console import stdout_console
from argus_edge.report.tables import titled_table
from argus_edge.schema.sizing import Combination, Sizing

STYLE = {"fits": "bold green", "does not fit": "red", "cannot fit": "red", "undecided": "yellow", "unlikely": "yellow"}


def latency(combination: Combination) -> str:
    """Return the latency that was measured, else the least that is possible."""
    if combination.latency_s is None and combination.floor_s is not None:
        return f"≥ {format_quantity(combination.floor_s, 's')}"
    return format_quantity(combination.latency_s, "s")


def print_sizing(sizing: Sizing, console: Console | None = None) -> None:
    """Print every combination, those that fit first, and what to do about the undecided ones."""
    console = console or stdout_console()
    numbers = ("margin", "latency", "memory", "energy", "ARGUS")
    columns = ("fit", "model", "precision", "runtime", "device", *numbers, "front", "why")
    table = titled_table(f"Budget {sizing.budget}", columns, numbers)
    for each in sizing.combinations:
        threads = f", {each.threads} threads" if each.threads else ""
        table.add_row(
            Text(each.fit, style=STYLE.get(each.fit, "")),
            Text(each.model),
            Text(each.precision or "–"),
            Text(f"{each.runtime or '–'}{threads}"),
            Text(each.device),
            Text("–" if each.margin is None else f"{each.margin:+.0%}"),
            Text(latency(each)),
            Text(format_quantity(each.memory_bytes, "bytes")),
            Text(format_quantity(each.energy_j, "J")),
            Text("–" if each.argus is None else f"{each.argus:.3f}"),
            Text("*" if each.pareto else ""),
            Text(each.reason),
        )
    console.print(table)
    if sizing.pareto_over:
        console.print(Text(f"front: nothing else is at least as good in {', '.join(sizing.pareto_over)}."))
    for note in sizing.notes:
        console.print(Text(note))
    for step in dict.fromkeys(each.next_step for each in sizing.combinations if each.next_step):
        console.print(Text(f"to decide: {step}"))
