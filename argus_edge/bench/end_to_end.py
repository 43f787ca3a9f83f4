"""A bundle's unit of work: how its components work together, on which inputs, and what that costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argus_edge.bench.context import ComponentContext, Cost
from argus_edge.bench.cost import component_cost
from argus_edge.bench.inputs import SEED, Arrays, PreparedInputs
from argus_edge.bench.model_types import BenchComponent, ResolvedModel
from argus_edge.bundles import multimodal_positions, tensor_shape
from argus_edge.errors import InputError, UsageError
from argus_edge.schema.bundle import BundleManifest, Component, Step
from argus_edge.schema.bundle import Generation as HowToGenerate
from argus_edge.schema.pipeline import Decoding, Pipeline, PipelineComponent, Preparation

END_TO_END = "end-to-end"
OUTPUT_TOKENS = 32
# Where the bundle does not say how long a typical prompt is: text beside an image, or the start of a caption.
TEXT_TOKENS = 32
CAPTION_TOKENS = 4
# A camera's frame: height and width.
PICTURE = (480, 640)
# Runtimes in which several models can be called on each other's outputs.
RUNTIMES = ("onnxruntime", "litert", "torch")


@dataclass(frozen=True)
class Whole:
    """The unit of work of a bundle.

    Attributes
    ----------
    steps
        As in the manifest.
    inputs
        ``component/input`` -> array, for every input that no other component feeds.
    unit
        What one call is, in words; equal across a comparison.
    generation
        Of a model that writes text.
    prompt_tokens, image_tokens
        Length of its prompt, and how much of that is the image.
    preparation
        How a picture becomes the vision's input, where that can be timed.
    """

    steps: tuple[Step, ...]
    inputs: Arrays
    unit: str
    generation: Decoding | None = None
    prompt_tokens: int | None = None
    image_tokens: int | None = None
    preparation: Preparation | None = None

    def pipeline(self, components: Mapping[str, BenchComponent], paths: Mapping[str, str]) -> Pipeline:
        """Return what the agent needs; ``paths`` are the components' model files on the device."""
        names = dict.fromkeys(step.component for step in self.steps)
        return Pipeline(
            components=[
                PipelineComponent(
                    name=name,
                    model=paths[name],
                    format=components[name].format,
                    input_names=components[name].input_names,
                    outputs=components[name].outputs,
                )
                for name in names
            ],
            steps=list(self.steps),
            generation=self.generation,
        )


def whole_of(
    model: ResolvedModel,
    inputs: Mapping[str, PreparedInputs],
    *,
    batch: int | None = None,
    prompt_tokens: int | None = None,
    output_tokens: int | None = None,
) -> Whole | None:
    """Return a bundle's unit of work; None where that is a call of one component.

    Parameters
    ----------
    model
        Resolved.
    inputs
        Of its components: what encodes is called on the same arrays as when it is timed alone.
    batch
        What ``--batch`` asked for.
    prompt_tokens, output_tokens
        Lengths asked for; None: the bundle's typical prompt, and 32.

    Raises
    ------
    UsageError
        Lengths for a model that writes nothing, or that are not possible; a batch for one that does.
    InputError
        The manifest does not hold together.
    """
    manifest = model.manifest
    how = manifest.generation if manifest else None
    if how is None and (prompt_tokens is not None or output_tokens is not None):
        raise UsageError(
            "--prompt-tokens and --output-tokens belong to a model that writes text.",
            where=model.name,
            next_step="bench the bundle of a captioning or answering model, or leave them out",
        )
    if manifest is None or len(manifest.unit_of_work.steps) < 2:
        return None
    if END_TO_END in {component.name for component in manifest.components}:
        raise InputError(f"A component must not be called {END_TO_END}.", where=model.name)
    steps = tuple(manifest.unit_of_work.steps)
    arrays: Arrays = {}
    for step in steps:
        if step.phase == "encode":
            own = inputs[step.component].arrays
            arrays |= {f"{step.component}/{name}": own[name] for name in own if name not in step.bindings}
    task = manifest.unit_of_work.task
    if how is None:
        count = batch or 1
        words = {"retrieval": "one image plus one text embedded", "matching": "one image held against one text"}
        unit = f"{words.get(task, 'every component called once')}, batch {count}"
        return Whole(steps, arrays, unit, preparation=preparation(manifest))
    if (batch or 1) > 1:
        raise UsageError(
            "A model that writes text is timed at batch 1.", where=model.name, next_step="leave --batch out"
        )
    decoder = manifest.component(how.decoder)
    decoding = Decoding.model_validate(
        {**how.model_dump(), "output_tokens": output_tokens or OUTPUT_TOKENS, "past": fixed_past(decoder, how)}
    )
    length = prompt_length(decoder, decoding, prompt_tokens)
    prompt = prompt_arrays(decoder, decoding, length, steps)
    arrays |= {f"{decoder.name}/{name}": array for name, array in prompt.items()}
    asked = f"a prompt of {length} tokens" if prompt_tokens is not None else "its own prompt"
    return Whole(
        steps,
        arrays,
        f"one image seen, {asked} read, {decoding.output_tokens} tokens written; batch 1, preprocessing apart",
        generation=decoding,
        prompt_tokens=length,
        image_tokens=how.image_tokens if how.image_features else 0,
        preparation=preparation(manifest),
    )


def preparation(manifest: BundleManifest) -> Preparation | None:
    """Return how a picture is prepared, where an image goes into the model and the way is known."""
    how = manifest.preprocess
    return Preparation(**how.model_dump(), picture=PICTURE) if how is not None and how.layout == "NCHW" else None


def fixed_past(decoder: Component, how: HowToGenerate) -> int | None:
    """Return the one length that the past has in the decoder's file; None where it is free.

    Raises
    ------
    InputError
        The decoder has no such input.
    """
    name = how.kv.past_key.format(layer=0)
    spec = next((spec for spec in decoder.inputs if spec.name == name), None)
    if spec is None or len(spec.shape) != len(how.kv.layout) or "past" not in how.kv.layout:
        raise InputError(f"The decoder has no input {name} of the layout that the manifest gives.", where=decoder.name)
    axis = spec.shape[how.kv.layout.index("past")]
    return axis if isinstance(axis, int) else None


def prompt_length(decoder: Component, how: Decoding, asked: int | None) -> int:
    """Return the length of the prompt, image placeholders included.

    Raises
    ------
    UsageError
        Too short for the image, or too long for what is written after it.
    """
    image = how.image_tokens if how.image_features else 0
    typical = next((dim.typical for dim in decoder.dims if dim.name == "sequence"), None)
    length = asked or typical or (image + TEXT_TOKENS if how.image_features else CAPTION_TOKENS)
    if length < image + 1:
        raise UsageError(
            f"The image alone takes {image} tokens of the prompt; --prompt-tokens asks for {length} in all.",
            next_step=f"--prompt-tokens {image + TEXT_TOKENS}",
        )
    longest = how.context_length if how.past is None else min(how.context_length, how.past + 1)
    if length + how.output_tokens - 1 > longest:
        raise UsageError(
            f"A prompt of {length} tokens and {how.output_tokens} written ones do not fit: the decoder holds {longest}"
            + (" (its file has one fixed shape)." if how.past is not None else "."),
            next_step="ask for fewer with --prompt-tokens and --output-tokens",
        )
    return length


def prompt_arrays(decoder: Component, how: Decoding, length: int, steps: tuple[Step, ...]) -> Arrays:
    """Make up a prompt: plain tokens with the image's placeholders after the first, and what goes with it.

    Raises
    ------
    InputError
        The decoder has an input that nobody feeds.
    """
    specs = {spec.name: spec for spec in decoder.inputs}
    fed = {name for step in steps if step.component == decoder.name for name in step.bindings}
    cache = {
        pattern.format(layer=layer)
        for layer in range(how.kv.layers)
        for pattern in (how.kv.past_key, how.kv.past_value)
    }
    own = {how.input_ids, how.attention_mask, how.position_ids} - {None}
    unknown = set(specs) - fed - cache - own
    missing = (own | cache) - set(specs)
    if unknown or missing:
        said = [f"nobody feeds {', '.join(sorted(unknown))}"] if unknown else []
        said += [f"it has no input {', '.join(sorted(map(str, missing))[:3])}"] if missing else []
        raise InputError(f"The decoder cannot be called as the manifest says: {'; '.join(said)}.", where=decoder.name)
    ids_spec = specs[how.input_ids]
    low, high = (int(ids_spec.values.minimum), int(ids_spec.values.maximum)) if ids_spec.values else (1, 1)
    ids = np.random.default_rng(SEED).integers(low, high, (1, length), endpoint=True)
    is_image = np.zeros(length, bool)
    if how.image_token_id is not None:
        ids[ids == how.image_token_id] = low + 1 if how.image_token_id == low else low
        if how.image_features:
            is_image[1 : 1 + how.image_tokens] = True
            ids[0, is_image] = how.image_token_id
    arrays: dict[str, NDArray[Any]] = {how.input_ids: ids.astype(ids_spec.dtype)}
    if how.attention_mask:
        arrays[how.attention_mask] = np.ones((1, length), specs[how.attention_mask].dtype)
    if how.position_ids:
        axes = multimodal_positions(is_image) if how.position_axes == 3 else np.arange(length)
        shape = (how.position_axes, 1, length) if how.position_axes > 1 else (1, length)
        spread = np.broadcast_to(axes.reshape(-1, 1, length), shape) if how.position_axes > 1 else axes.reshape(shape)
        arrays[how.position_ids] = np.ascontiguousarray(spread).astype(specs[how.position_ids].dtype)
    return arrays


def whole_context(whole: Whole, model: ResolvedModel, components: Mapping[str, ComponentContext]) -> ComponentContext:
    """Return what the host knows of the unit of work: its cost, summed over all calls of it."""
    by_name = {component.name: component for component in model.components}
    costs = [components[step.component].cost for step in whole.steps if step.phase == "encode"]
    if whole.generation is not None and whole.prompt_tokens is not None:
        costs += _writing_costs(by_name[whole.generation.decoder], whole.generation, whole.prompt_tokens, whole)
    macs = [cost.macs for cost in costs if cost.macs is not None]
    traffic = [cost.traffic_bytes for cost in costs if cost.traffic_bytes is not None]
    return ComponentContext(
        precision=model.manifest.precision if model.manifest else None,
        unit=whole.unit,
        prompt_tokens=whole.prompt_tokens,
        image_tokens=whole.image_tokens,
        cost=Cost(
            sum(macs) if len(macs) == len(costs) else None,
            sum(traffic) if len(traffic) == len(costs) else None,
            list(dict.fromkeys(note for cost in costs for note in cost.notes)),
        ),
    )


def _writing_costs(decoder: BenchComponent, how: Decoding, prompt: int, whole: Whole) -> list[Cost]:
    """Return the costs of reading the prompt and of writing after it.

    MACs are linear in the length of the past, so that one call at the mean length stands for each.
    """
    written = how.output_tokens - 1
    if how.past is not None:
        return [_times(component_cost(decoder, {}, {}), prompt + written)]
    image = whole.image_tokens or 0
    costs = [_decoder_cost(decoder, sequence=prompt, past=0, image_tokens=image)]
    if written:
        mean = prompt + (written - 1) // 2
        costs.append(_times(_decoder_cost(decoder, sequence=1, past=mean, image_tokens=0), written))
    return costs


def _decoder_cost(decoder: BenchComponent, **lengths: int) -> Cost:
    bundled = decoder.bundled
    assert bundled is not None
    known = {dim.name: dim.typical for dim in bundled.dims}
    dims = {**known, "batch": 1, "total": lengths["past"] + lengths["sequence"], **lengths}
    dims = {name: dims[name] for name in known}
    shapes = {spec.name: list(tensor_shape(spec, dims)) for spec in bundled.inputs}
    cost = component_cost(decoder, shapes, dims)
    near = [count for count in bundled.macs if count.dims.get("sequence") == lengths["sequence"] == 1]
    if cost.macs is None and near:
        # A graph that cannot be counted at any length: the past's share in a token's MACs is well below a percent.
        nearest = min(near, key=lambda count: abs(count.dims.get("past", 0) - lengths["past"]))
        note = f"a token's MACs are counted with a past of {nearest.dims.get('past', 0)}"
        return Cost(float(nearest.macs), cost.traffic_bytes, (note,))
    return cost


def _times(cost: Cost, calls: int) -> Cost:
    return Cost(
        cost.macs * calls if cost.macs is not None else None,
        cost.traffic_bytes * calls if cost.traffic_bytes is not None else None,
        cost.notes,
    )
