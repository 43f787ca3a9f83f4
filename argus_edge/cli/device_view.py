"""How `argus-edge device` shows what it found: tables for a person, documents for `--json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from argus_edge.text import clean

if TYPE_CHECKING:
    from argus_edge.devices.doctor import Diagnosis
    from argus_edge.schema.agent import DeviceFacts
    from argus_edge.schema.device import DeviceEntry

_GAP = "  "
_MARKS = {"error": ("✗", "red"), "warning": ("!", "yellow"), "info": ("·", "blue")}


def table(headers: list[str], rows: list[list[str]]) -> None:
    """Print left-aligned columns; every cell is made fit for the terminal."""
    cells = [headers, *([clean(cell, limit=100) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headers))]
    for number, row in enumerate(cells):
        line = _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        click.secho(line, bold=number == 0)


def pairs(values: dict[str, Any]) -> None:
    """Print names and values, one a line."""
    width = max((len(name) for name in values), default=0)
    for name, value in values.items():
        if isinstance(value, dict):
            shown = ", ".join(f"{key}={item}" for key, item in value.items())
        else:
            shown = ", ".join(str(item) for item in value) if isinstance(value, list) else str(value)
        if shown:
            click.echo(f"{click.style(name.ljust(width), bold=True)}{_GAP}{clean(shown, limit=400)}")


def facts_table(entry: DeviceEntry, facts: DeviceFacts, note: str | None) -> None:
    """Print what a device is."""
    clock = facts.clock_khz
    ghz = "–".join(f"{khz / 1e6:.2f}" for key in ("min", "max") if (khz := clock.get(key)))
    memory = _size(facts.memory_total_bytes)
    available = _size(facts.memory_available_bytes)
    rows: dict[str, Any] = {
        "device": f"{entry.name} ({facts.hostname})" if facts.hostname else entry.name,
        "profile": f"{entry.profile}; {note}" if note else entry.profile,
        "model": facts.model,
        "system": _joined(facts.os, f"kernel {facts.kernel}" if facts.kernel else None, facts.arch, facts.libc),
        "firmware": facts.firmware,
        "emulated": facts.emulation_detail or "yes" if facts.emulated else None,
        "virtual machine": "yes" if facts.virtual_machine else None,
        "cpu": _joined(
            facts.cpu_model,
            f"{facts.cores_usable or facts.cores} cores" if facts.cores else None,
            f"{ghz} GHz" if ghz else None,
            facts.governor,
        ),
        "memory": f"{memory}, {available} available" if memory else None,
        "disk": f"{_size(facts.disk_free_bytes)} free at {entry.home}" if facts.disk_free_bytes is not None else None,
        "gpu": _joined(facts.gpu, f"CUDA {facts.cuda}" if facts.cuda else None),
        "unused": facts.accelerators_unused or None,
        "power mode": facts.power_mode,
        "throttle": facts.throttle,
        "load": f"{facts.load_1m:.2f}" if facts.load_1m is not None else None,
        "python": _joined(facts.python, facts.python_executable),
    }
    pairs({name: value for name, value in rows.items() if value})
    click.echo()
    runtimes = [
        [item.name, item.version or "–", ", ".join(item.providers), item.error or ""] for item in facts.runtimes
    ]
    if runtimes:
        table(["RUNTIME", "VERSION", "PROVIDERS", ""], runtimes)
        click.echo()
    available_sensors = [[item.name, item.detail] for item in facts.sensors if item.available]
    if available_sensors:
        table(["SENSOR", ""], available_sensors)


def _joined(*parts: str | None) -> str | None:
    return ", ".join(part for part in parts if part) or None


def _size(size: int | None) -> str:
    return "" if size is None else f"{size / 1e9:.1f} GB"


def print_diagnosis(diagnosis: Diagnosis, entry: DeviceEntry) -> None:
    """Print one finding and its remedy."""
    finding = diagnosis.finding
    mark, colour = ("✓", "green") if finding.ok and finding.severity != "warning" else _MARKS[finding.severity]
    click.echo(
        f"  {click.style(mark, fg=colour)} {clean(finding.check, limit=40):<16} {clean(finding.detail, limit=600)}"
    )
    step = remedy(diagnosis)
    if step:
        where = " (on the device)" if diagnosis.runnable and entry.host is not None else ""
        click.echo(f"      {click.style('mend:', bold=True)} {step}{where}")


def remedy(diagnosis: Diagnosis) -> str | None:
    """Return what mends a finding: a command of the device, or the host's next step."""
    if diagnosis.ok:
        return None
    if diagnosis.error is not None:
        return diagnosis.error.next_step
    return clean(diagnosis.finding.command, limit=1000) if diagnosis.finding.command else None


def document(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return a finding for `--json`."""
    return {**diagnosis.finding.model_dump(), "remedy": remedy(diagnosis)}
