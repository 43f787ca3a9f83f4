"""A pass of its own that reads power with tools that disturb the timing: its energy counts, its latencies do not."""

from __future__ import annotations

import tempfile
from pathlib import Path

from argus_edge.bench import energy as energies
from argus_edge.bench.context import Context
from argus_edge.bench.fetching import read_result
from argus_edge.bench.samples import read_samples
from argus_edge.bench.watching import Link, Listener, follow
from argus_edge.devices.agent_client import AgentClient
from argus_edge.errors import ArgusError
from argus_edge.schema.agent import DeviceFacts, Job, PartResult, SeriesPoint
from argus_edge.schema.bench import BenchReport, Energy

# Sensors that start a process at each reading, and so belong to no profile.
DISTURBING = ("pmic",)
MAX_RUN_ID = 80


def available(facts: DeviceFacts) -> list[str]:
    """Return the disturbing power sensors that the device has."""
    return [fact.name for fact in facts.sensors if fact.name in DISTURBING and fact.available]


def energy_job(job: Job, sensors: list[str]) -> Job:
    """Return the job of the pass: every component once more, without parity and operators."""
    parts = [
        part.model_copy(update={"golden": None, "preprocess": None})
        for part in job.parts
        if part.repeat == 0 and not part.profile_ops
    ]
    suffix = "-energy"
    run = job.run[: MAX_RUN_ID - len(suffix)] + suffix
    return job.model_copy(update={"run": run, "parts": parts, "sensors": [*sensors, *job.sensors]})


def measure_energy(link: Link, agent: str, context: Context, report: BenchReport, told: Listener) -> BenchReport:
    """Run the pass and return the report with its energies, or with a note on why there are none.

    A pass that fails takes nothing from the report. Ctrl-C goes through to the caller, after the pass was stopped.
    """
    sensors = available(context.device.facts)
    if not sensors:
        note = "no pass for energy: the device has no power sensor that needs one (see `argus-edge device probe`)"
        return report.model_copy(update={"notes": [*report.notes, note]})
    job = energy_job(context.job, sensors)
    client = AgentClient(link.transport, link.entry, agent)
    told.say(f"measuring energy in a pass of its own ({', '.join(sensors)})")
    try:
        told.started(job.run, link.stopper(agent, job.run))
        client.start(job)
        try:
            follow(link, agent, job.run, told)
        except KeyboardInterrupt:
            AgentClient(link.transport, link.entry, agent).stop(job.run)
            raise
        client = AgentClient(link.transport, link.entry, agent)
        with tempfile.TemporaryDirectory(prefix="argus-edge-") as folder:
            files = client.fetch(job.run, Path(folder))
            result = read_result(files, job.run)
            found = {part.name: _energy(part, files) for part in result.parts if part.state == "done"}
        client.remove(job.run)
    except ArgusError as error:
        note = f"the pass for energy failed: {error.what}"
        told.say(f"note: {note}")
        return report.model_copy(update={"notes": [*report.notes, note]})
    measurements = [
        each.model_copy(update={"energy": found[each.component]}) if found.get(each.component) else each
        for each in report.measurements
    ]
    return report.model_copy(update={"measurements": measurements})


def _energy(part: PartResult, files: dict[str, Path]) -> Energy | None:
    if part.samples_file is None or part.samples_file not in files:
        return None
    samples = read_samples(files[part.samples_file], count=part.samples_count)
    if not len(samples):
        return None
    begin, end = float(samples.start[0]), float(samples.end[-1])
    series = [SeriesPoint(t=point.t - begin, took_s=point.took_s, values=point.values) for point in part.series]
    found = energies.energy(part, series, window_s=end - begin, inferences=len(samples) * part.batch)
    return found and found.model_copy(update={"source": f"{found.source}, in a pass of its own"})
