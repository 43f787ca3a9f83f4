"""Driving a bench: resolve, probe, pre-flight, deploy, start, follow, fetch, check, store."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from argus_edge.bench import preflight
from argus_edge.bench.context import Context
from argus_edge.bench.end_to_end import END_TO_END, RUNTIMES
from argus_edge.bench.energy import Meter
from argus_edge.bench.energy_pass import measure_energy
from argus_edge.bench.fetching import failure, read_result
from argus_edge.bench.model_types import RUNTIMES_OF
from argus_edge.bench.placing import place
from argus_edge.bench.plan import Placed, describe, make_job, memory_limit, new_run_id
from argus_edge.bench.prepare import Prepared
from argus_edge.bench.report import device_section, make_report, model_section
from argus_edge.bench.waiting import Queue
from argus_edge.bench.watching import (
    Link,
    Listener,
    Nobody,
    come_back,
    fetch,
    follow,
    start,
    stop_on_interrupt,
    unknown,
)
from argus_edge.devices.agent_client import AgentClient
from argus_edge.devices.connect import connect
from argus_edge.devices.deploy import deploy_agent
from argus_edge.devices.probing import profile_note, profile_of
from argus_edge.devices.transport import Transport
from argus_edge.errors import ArgusError, DeviceUnreachableError, InputError, InterruptedRunError, RunFailedError
from argus_edge.schema.agent import DeviceFacts
from argus_edge.schema.base import Source
from argus_edge.schema.bench import BenchReport, Setup
from argus_edge.schema.device import DeviceEntry, Profile
from argus_edge.store.records import Cell, Record, Store

Connect = Callable[[DeviceEntry], Transport]


@dataclass(frozen=True)
class Outcome:
    """What came of a bench on one device: the report, and the error where the run failed."""

    report: BenchReport
    error: ArgusError | None = None


def bench(
    prepared: Prepared,
    entry: DeviceEntry,
    store: Store,
    *,
    listener: Listener | None = None,
    meter: Callable[[], Meter] | None = None,
    connect: Connect = connect,
    queue: Queue | None = None,
    cell: Cell | None = None,
) -> Outcome:
    """Bench on one device, from the probe to the report.

    Parameters
    ----------
    prepared
        Model and inputs.
    entry
        The device.
    store
        Where the run is recorded before it starts, and its report afterwards.
    listener
        Told what happens.
    meter
        Reads an external meter's log when the run has ended.
    connect
        Makes the transport.
    queue
        Waits for a busy device; None: a busy device is an error.
    cell
        Where the run stands in a matrix; None: it is none's.

    Raises
    ------
    DeviceError, MisfitError
        Not reachable, not trusted, busy; or model and device do not fit.
    InterruptedRunError
        Ctrl-C; the run on the device was stopped, or the error says how to come back to it.
    """
    told = listener or Nobody()
    options = prepared.request.options
    queue = queue or Queue()
    link = Link(entry, connect)
    try:
        told.say(f"looking at {link.transport.description}")
        wanted = RUNTIMES_OF[prepared.model.format] if options.runtime == "auto" else (options.runtime,)
        client = deploy_agent(link.transport, entry)
        # Asked before anything else: a probe imports runtimes, and would disturb a run that is being timed.
        queue.when_free(client.check_free, told)
        facts = client.probe(runtimes=wanted)
        profile = profile_of(entry, facts)
        note = profile_note(entry, facts)
        runtime = preflight.choose_runtime(prepared.model, options.runtime, facts)
        provider = preflight.choose_provider(runtime, options.provider)
        warnings = preflight.check(
            prepared.model, facts=facts, profile=profile, runtime=runtime, provider=provider, device=entry.name
        )
        for warning in [*([f"{entry.name}: {note}"] if note else []), *warnings]:
            told.say(f"note: {warning}")
        if runtime not in RUNTIMES and prepared.whole is not None:
            prepared = replace(prepared, whole=None)
            warnings.append(
                f"With {runtime} the components are timed one by one; end to end is the sum of their medians."
            )
        placed = place(link.transport, entry, prepared, told)
        context = _context(prepared, entry, facts, profile, placed, runtime, provider, warnings)
        told.say(describe(prepared.model, context.job, device=entry.name, known=prepared.components))
        store.add(
            context.run,
            device=entry.name,
            profile=profile.name,
            model=prepared.model.name,
            model_sha256=prepared.model.sha256,
            scenario=options.scenario.name,
            entry=entry.model_dump_json(),
            context=context.to_json(),
            batch=cell.batch if cell else None,
            cell=cell.key if cell else None,
        )
        queue.ours.add(context.run)
        try:
            told.started(context.run, link.stopper(client.agent, context.run))
            queue.when_free(lambda: start(link, context.job, told), told)
            store.set_state(context.run, "running")
            told.say(f"run {context.run} (if this ends early: {come_back(context.run)})")
            follow(link, client.agent, context.run, told)
        except KeyboardInterrupt:
            told.quiet()
            raise _interrupted(link, client.agent, context.run, store, told) from None
        except ArgusError as error:
            told.quiet()
            store.set_state(context.run, _state_after(error), error=error.what)
            raise
        outcome = conclude(link, client.agent, context, store, told, meter)
        return _with_energy(link, client.agent, context, outcome, store, told)
    finally:
        told.quiet()
        link.close()


def resume(
    record: Record,
    store: Store,
    *,
    listener: Listener | None = None,
    meter: Callable[[], Meter] | None = None,
    connect: Connect = connect,
) -> Outcome:
    """Come back to a run: follow it if it still goes on, then fetch it and make its report.

    A run that was finished before is given from the store.
    """
    told = listener or Nobody()
    if record.has_report:
        return recorded(record, store)
    entry_json, context_json = store.documents(record.id)
    entry = DeviceEntry.model_validate_json(entry_json)
    context = Context.from_json(context_json)
    link = Link(entry, connect)
    try:
        client = deploy_agent(link.transport, entry)
        check_known(client, record, store, context)
        try:
            told.say(f"coming back to {record.id} on {link.transport.description}")
            told.started(record.id, link.stopper(client.agent, record.id))
            follow(link, client.agent, record.id, told)
        except KeyboardInterrupt:
            told.quiet()
            raise _interrupted(link, client.agent, record.id, store, told) from None
        outcome = conclude(link, client.agent, context, store, told, meter)
        return _with_energy(link, client.agent, context, outcome, store, told)
    finally:
        told.quiet()
        link.close()


def check_known(client: AgentClient, record: Record, store: Store, context: Context) -> None:
    """Raise where the device does not have a run: it never began, or was cleared.

    Raises
    ------
    RunFailedError
        With the command that runs it again.
    """
    if any(status.run == record.id for status in client.list_runs()):
        return
    store.set_state(record.id, "lost", error="the device has no such run")
    began = "It never began" if record.state == "starting" else "It never began, or was cleared there"
    again = f"run it again: {context.setup.command}" if context.setup.command else "run it again"
    raise RunFailedError(f"The device has no such run. {began}.", where=record.id, next_step=again)


def _with_energy(link: Link, agent: str, context: Context, outcome: Outcome, store: Store, told: Listener) -> Outcome:
    """Return the outcome of a good run with the energies of a pass of its own, where one was asked for."""
    if not context.energy or outcome.error is not None:
        return outcome
    try:
        report = measure_energy(link, agent, context, outcome.report, told)
    except KeyboardInterrupt:
        raise InterruptedRunError(
            "Interrupted in the pass for energy; the report without it is kept.",
            where=link.transport.description,
            next_step=f"argus-edge runs show {context.run}",
        ) from None
    store.finish(context.run, report, state="done")
    return Outcome(report)


def _state_after(error: ArgusError) -> str:
    """Return how a run stands after an error between its start and its end: with a lost link it goes on."""
    return "detached" if error.exit_code == 3 and "goes on" in error.what else "failed"


def _interrupted(link: Link, agent: str, run: str, store: Store, told: Listener) -> InterruptedRunError:
    error = stop_on_interrupt(link, agent, run, told)
    store.set_state(run, "detached" if error.next_step else "stopped", error=error.what)
    return error


def _context(
    prepared: Prepared,
    entry: DeviceEntry,
    facts: DeviceFacts,
    profile: Profile,
    placed: Mapping[str, Placed],
    runtime: str,
    provider: str,
    warnings: list[str],
) -> Context:
    options, model = prepared.request.options, prepared.model
    run = new_run_id(model.name, entry.name)
    sensors = [name for name in profile.sensors if name != "pmic"]
    job = make_job(
        run,
        model,
        options,
        placed,
        runtime=runtime,
        provider=provider,
        sensors=sensors,
        whole=prepared.whole,
        served=prepared.served,
        memory_limit_bytes=memory_limit(facts),
    )
    total = _macs(prepared)
    notes = [*model.notes, *warnings]
    if entry.container:
        notes.append(f"The agent ran in a container of the image {entry.container}.")
    for name, inputs in prepared.inputs.items():
        notes += [*inputs.notes, *prepared.components[name].cost.notes]
    if prepared.whole is not None:
        notes += [note for note in prepared.components[END_TO_END].cost.notes if note not in notes]
    shapes = {
        input_name if len(model.components) == 1 else f"{name}/{input_name}": lengths
        for name, inputs in prepared.inputs.items()
        for input_name, lengths in inputs.shapes.items()
    }
    setup = Setup(
        scenario=options.scenario,
        warmup=options.warmup,
        runtime=runtime,
        provider="its own" if prepared.served is not None else provider,
        threads=options.threads,
        repeats=options.runs,
        background=list(options.background),
        inputs=", ".join(dict.fromkeys(inputs.origin for inputs in prepared.inputs.values())) or "generated",
        shapes=shapes,
        command=prepared.request.command,
    )
    return Context(
        run=run,
        job=job,
        model=model_section(model, total),
        device=device_section(entry, profile, facts, options.labels),
        setup=setup,
        profile=profile,
        components=prepared.components,
        sources=[Source(name=model.name, sha256=model.sha256)],
        notes=notes,
        energy=options.energy,
    )


def _macs(prepared: Prepared) -> float | None:
    """Return the multiply-accumulates of a unit of work: the whole's, else the sum over the components."""
    whole = prepared.components.get(END_TO_END)
    if whole is not None:
        return whole.cost.macs
    macs = [known.cost.macs for known in prepared.components.values()]
    return sum(value for value in macs if value is not None) if macs and None not in macs else None


def recorded(record: Record, store: Store) -> Outcome:
    """Return what is recorded of a run that was concluded."""
    return Outcome(store.report(record.id), RunFailedError(record.error, where=record.id) if record.error else None)


def conclude(
    link: Link,
    agent: str,
    context: Context,
    store: Store,
    told: Listener,
    meter: Callable[[], Meter] | None = None,
) -> Outcome:
    """Fetch what a run left, make the report, keep it, and clear the device.

    Where another command of ours, which followed the run that this one stopped, was quicker, its outcome is given.
    """
    told.quiet()
    try:
        with tempfile.TemporaryDirectory(prefix="argus-edge-") as folder:
            files = fetch(link, context.run, Path(folder), told)
            result = read_result(files, context.run)
            report = make_report(context, result, files, _log_of(meter, context.run) if meter else None)
            error = failure(result, files, context, link.transport.description)
    except RunFailedError:
        record = store.find(context.run)
        if not record.has_report:
            raise
        return recorded(record, store)
    except KeyboardInterrupt:
        raise InterruptedRunError(
            f"Interrupted; the run {context.run} has ended on the device and was not fetched.",
            where=link.transport.description,
            next_step=come_back(context.run),
        ) from None
    store.finish(context.run, report, state=result.state, error=str(error.what) if error else None)
    clear(link, agent, context.run, told)
    return Outcome(report, error)


def _log_of(meter: Callable[[], Meter], run: str) -> Meter:
    """Return an external meter's log; where it cannot be read any more, the run is left where it is."""
    try:
        return meter()
    except ArgusError as error:
        where = shlex.quote(error.where) if error.where else "FILE"
        raise InputError(
            f"{error.what} The run {run} has ended, and what it measured is kept on the device.",
            where=error.where,
            next_step=f"mend the log, then {come_back(run)} --meter {where}; or leave it out",
        ) from error


def clear(link: Link, agent: str, run: str, told: Listener) -> None:
    """Remove a run's files from the device; where it cannot be reached, the report is there all the same."""
    try:
        AgentClient(link.transport, link.entry, agent).remove(run)
    except RunFailedError:
        if not unknown(link, agent, run):  # else another command of ours was quicker
            raise
    except DeviceUnreachableError as error:
        told.say(
            f"note: {error.what} What the run {run} left there is still there: "
            f"argus-edge runs prune --device {link.entry.name} --yes"
        )
