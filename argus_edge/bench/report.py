"""From what the agent left to a bench report: figures, verdicts and every sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from argus_edge.bench import energy as energies
from argus_edge.bench import validity
from argus_edge.bench.context import ComponentContext, Context
from argus_edge.bench.end_to_end import END_TO_END
from argus_edge.bench.figures import spread, window_figures
from argus_edge.bench.memory import headline
from argus_edge.bench.model_types import GPU_PROVIDERS, ResolvedModel
from argus_edge.bench.roofline import roofline
from argus_edge.bench.samples import Samples, encode, read_samples
from argus_edge.bench.steps import encoders, generation_of, preprocessing, served_generation, step_figures
from argus_edge.errors import RunFailedError
from argus_edge.schema.agent import DeviceFacts, Part, PartResult, RunResult, SeriesPoint
from argus_edge.schema.bench import (
    BenchedDevice,
    BenchedModel,
    BenchReport,
    Energy,
    Estimate,
    Figures,
    Generation,
    Measurement,
    MemoryHeadline,
    Roofline,
    Validity,
)
from argus_edge.schema.device import DeviceEntry, Profile
from argus_edge.text import clean

SUMMARISED = ("p50", "p90", "p95", "p99", "throughput")
SUMMARISED_OF_TOKENS = ("ttft", "inter_token", "tokens_per_s")


def make_report(
    context: Context, result: RunResult, files: Mapping[str, Path], meter: energies.Meter | None = None
) -> BenchReport:
    """Assemble the report of a run that has ended, however it ended.

    Parameters
    ----------
    context
        What the host knew.
    result
        What the agent made of the run.
    files
        Fetched files by name: the samples.
    meter
        An external meter's log, which then stands for the device's own power sensor.

    Raises
    ------
    RunFailedError
        The samples do not fit the result.
    """
    profiles_of_ops = {part.name: part.ops for part in result.parts if part.ops}
    measurements = []
    for index, part in enumerate(result.parts):
        asked = context.job.parts[index] if index < len(context.job.parts) else None
        if asked is None or asked.name != part.name:
            raise RunFailedError("The result's parts are not the job's.", where=context.run)
        if asked.profile_ops and part.state == "done":
            continue
        measurements.append(_measurement(context, asked, part, result, files, meter))
    for measurement in measurements:
        if measurement.repeat == 0 and measurement.component in profiles_of_ops:
            measurement.ops = profiles_of_ops[measurement.component]
    names = list(dict.fromkeys(part.name for part in context.job.parts))
    head = names[0] if len(names) == 1 else END_TO_END
    parts = names if END_TO_END not in names else [END_TO_END]
    verdict = validity.together([(each.component, each.validity) for each in measurements])
    if len(measurements) < sum(not part.profile_ops for part in context.job.parts) and verdict.valid is not False:
        missing = validity.ValidityCause(code="incomplete", detail="not every part was run", remedy="run it again")
        verdict = Validity(valid=False, causes=[*verdict.causes, missing])
    return BenchReport(
        run=context.run,
        device=context.device,
        model=_model(context, result),
        setup=context.setup,
        measurements=measurements,
        validity=verdict,
        summary=summarise(measurements, head, parts),
        headline=head,
        labels=context.device.labels,
        sources=list(context.sources),
        notes=[*context.notes, *(f"{part.name}: {_shown(note)}" for part in result.parts for note in part.notes)],
    )


def _model(context: Context, result: RunResult) -> BenchedModel:
    """Return what was timed; a server is asked by the agent what it serves."""
    served = next((part.served_model for part in result.parts if part.served_model), None)
    if not served:
        return context.model
    # llama.cpp's server says the path of its file: folders of the board are nobody's business.
    name = served.rpartition("/")[2] if served.startswith("/") else served
    return context.model.model_copy(update={"name": clean(name, limit=200)})


def _shown(text: str) -> str:
    return clean(text, limit=300)


def _measurement(
    context: Context,
    asked: Part,
    part: PartResult,
    result: RunResult,
    files: Mapping[str, Path],
    meter: energies.Meter | None,
) -> Measurement:
    known = context.components.get(part.name, ComponentContext())
    samples = _samples(part, files)
    begin = float(samples.start[0] - _waited(samples)) if samples is not None else part.window_start
    series = [
        SeriesPoint(t=point.t - begin, took_s=point.took_s, values=point.values)
        for point in part.series
        if begin is not None
    ]
    figures = None
    if samples is not None:
        figures = window_figures(
            samples,
            asked.scenario,
            per_call=part.batch,
            series=part.series,
            dropped=part.dropped,
            held_qps=part.server.get("qps") if part.server.get("held") else None,
        )
    steps, generation = [], None
    if samples is not None and figures is not None and asked.pipeline is not None and calls_per_query(asked) == 1:
        how, names = asked.pipeline.generation, encoders(asked.pipeline)
        steps = step_figures(samples, names, how.output_tokens if how else 0, figures.window_s)
        generation = generation_of(
            samples,
            asked.pipeline,
            window_s=figures.window_s,
            prompt_tokens=known.prompt_tokens,
            image_tokens=known.image_tokens,
            kv_cache_bytes=part.kv_cache_bytes,
        )
    if samples is not None and figures is not None and asked.server is not None:
        generation = served_generation(
            samples,
            asked=asked.server.output_tokens,
            window_s=figures.window_s,
            prompt_tokens=part.prompt_tokens,
            image=bool(asked.server.images),
        )
    seen = validity.Observed(
        part=part,
        series=series,
        figures=figures,
        facts=context.device.facts,
        scenario=asked.scenario,
        throttle_temperature_c=_throttle_temperature(context.profile),
        limits=known.limits,
        largest_output=known.largest_output,
    )
    return Measurement(
        component=part.name,
        repeat=part.repeat,
        state=part.state,
        error=part.error,
        unit_of_work=unit_of_work(asked, known.unit),
        runtime=part.runtime,
        runtime_version=part.runtime_version,
        provider_requested=part.provider_requested,
        providers_used=part.providers_used,
        provider_fell_back=part.provider_fell_back,
        threads=part.threads,
        batch=part.batch,
        import_s=part.import_s,
        build_s=part.build_s,
        load_s=part.load_s,
        first_s=part.first_s,
        warmup_calls=part.warmup_calls,
        warmup_s=part.warmup_s,
        warmup_steady=part.warmup_steady,
        window_wall=part.window_wall,
        stopped_by=part.stopped_by,
        latency=encode(samples.latency, "ns") if samples is not None else None,
        start=encode(samples.start - samples.start[0] + _waited(samples), "us") if samples is not None else None,
        figures=figures,
        steps=steps,
        generation=generation,
        preprocessing=preprocessing(part.preprocess_s, asked.preprocess, part.preprocess_with)
        if asked.preprocess
        else None,
        memory=part.memory,
        memory_headline=_memory(context, part),
        energy=_energy(part, result, series, figures, meter),
        series=series,
        vendor_before=part.vendor_before,
        vendor_after=part.vendor_after,
        other_load=[_shown(text) for text in part.other_load],
        parity=part.parity,
        roofline=_roofline(context, known, asked, part, figures, seen),
        validity=validity.judge(seen),
        notes=[_shown(note) for note in part.notes],
    )


def _waited(samples: Samples) -> float:
    """Return how long the first call waited after its scheduled time."""
    return float(samples.latency[0] - (samples.end[0] - samples.start[0]))


def _samples(part: PartResult, files: Mapping[str, Path]) -> Samples | None:
    if part.samples_file is None or part.samples_count == 0:
        return None
    if part.samples_file not in files:
        raise RunFailedError("The run's samples were not fetched.", where=part.samples_file)
    samples = read_samples(files[part.samples_file], count=part.samples_count)
    return samples if len(samples) else None


def calls_per_query(part: Part) -> int:
    """Return how many calls of the model are timed as one: several serve a query of several streams."""
    if part.scenario.name != "multi-stream":
        return 1
    return -(-part.scenario.streams // part.scenario.batch)


def unit_of_work(part: Part, unit: str | None = None) -> str:
    """Return what one sample of a part is, where a call does ``unit``; equal across a comparison."""
    if part.scenario.name == "multi-stream":
        return f"one query of {part.scenario.streams} samples, one after the other" + (
            f"; each call: {unit}" if unit else ""
        )
    return unit or f"one call, batch {part.scenario.batch}"


def _throttle_temperature(profile: Profile) -> float | None:
    return profile.throttle_temperature_c.value if profile.throttle_temperature_c else None


def _memory(context: Context, part: PartResult) -> MemoryHeadline:
    gpu = any(provider in GPU_PROVIDERS for provider in part.providers_used)
    served = part.runtime == "server"
    return headline(part.memory, unified=context.profile.unified_memory, gpu=gpu, served=served)


def _energy(
    part: PartResult,
    result: RunResult,
    series: Sequence[SeriesPoint],
    figures: Figures | None,
    meter: energies.Meter | None,
) -> Energy | None:
    if figures is None or figures.count == 0:
        return None
    inferences = figures.count * part.batch
    if meter is not None and part.window_wall is not None:
        return meter.energy(
            window_wall=part.window_wall,
            window_s=figures.window_s,
            started_wall=result.started_wall,
            inferences=inferences,
        )
    return energies.energy(part, series, window_s=figures.window_s, inferences=inferences)


def _roofline(
    context: Context,
    known: ComponentContext,
    asked: Part,
    part: PartResult,
    figures: Figures | None,
    seen: validity.Observed,
) -> Roofline | None:
    if part.runtime in ("null", "server") or figures is None:
        return None
    calls = calls_per_query(asked)  # a batch is in the count of a call already
    provider = next((name for name in part.providers_used if name in GPU_PROVIDERS), "cpu")
    clocks = sorted(value for _, value in seen.values("clock_khz"))
    return roofline(
        profile=context.profile,
        macs=known.cost.macs * calls if known.cost.macs is not None else None,
        traffic_bytes=known.cost.traffic_bytes * calls if known.cost.traffic_bytes is not None else None,
        precision=known.precision,
        provider=provider,
        threads=part.threads,
        clock_khz=clocks[len(clocks) // 2] if clocks else None,
        mode=context.device.facts.power_mode,
        p50_s=figures.p50.value,
    )


def summarise(measurements: Sequence[Measurement], head: str, names: Sequence[str]) -> dict[str, Estimate]:
    """Return run-to-run figures over the repeats of the headline.

    ``names`` are the measurements that the headline is made of. Where several models could not be called as one unit
    of work (TensorRT), they are all components: the figure of a repeat is the sum of their medians, which is the
    latency as long as they run one after the other. Other percentiles do not add.
    """
    by_repeat: dict[int, dict[str, Figures]] = {}
    writing: list[Generation] = []
    for each in measurements:
        if each.figures is not None and each.state == "done":
            by_repeat.setdefault(each.repeat, {})[each.component] = each.figures
            if each.component == head and each.generation is not None:
                writing.append(each.generation)
    whole = [figures for _, figures in sorted(by_repeat.items()) if all(name in figures for name in names)]
    if len(names) > 1:
        sums = [[figures[name].p50.value for name in names] for figures in whole]
        known = [sum(value for value in row if value is not None) for row in sums if None not in row]
        return {"p50": spread(known)} if known else {}
    found: dict[str, Estimate] = {}
    for figure in SUMMARISED:
        values = [getattr(figures[head], figure).value for figures in whole]
        if values and None not in values:
            found[figure] = spread(values)
    for figure in SUMMARISED_OF_TOKENS:
        values = [getattr(generation, figure).value for generation in writing]
        if values and None not in values:
            found[figure] = spread(values)
    return found


def model_section(model: ResolvedModel, macs: float | None) -> BenchedModel:
    """Return the report's section on the model."""
    manifest = model.manifest
    precision = manifest.precision if manifest else model.components[0].precision
    return BenchedModel(
        name=model.name,
        sha256=model.sha256,
        format=model.format,
        precision=precision,
        bytes=model.bytes,
        is_bundle=manifest is not None,
        family=manifest.family if manifest else None,
        task=manifest.unit_of_work.task if manifest else None,
        random_weights=manifest.random_weights if manifest else False,
        constant_weights=model.constant_weights,
        source_id=manifest.source_id if manifest else None,
        params=sum(component.params for component in manifest.components) if manifest else None,
        macs=macs,
    )


def device_section(
    entry: DeviceEntry, profile: Profile, facts: DeviceFacts, labels: Mapping[str, str]
) -> BenchedDevice:
    """Return the report's section on the device: the inventory's labels under the command's."""
    return BenchedDevice(name=entry.name, profile=profile.name, facts=facts, labels={**entry.labels, **labels})
