"""What of a bench needs no device: the model resolved, its inputs made, its cost counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from argus_edge.bench.context import ComponentContext
from argus_edge.bench.cost import component_cost
from argus_edge.bench.end_to_end import END_TO_END, Whole, whole_context, whole_of
from argus_edge.bench.inputs import PreparedInputs, check_shapes_are_used, prepare_inputs, read_input_file
from argus_edge.bench.model_types import ResolvedModel
from argus_edge.bench.models import resolve_model
from argus_edge.bench.preflight import choose_runtime
from argus_edge.bench.request import Request
from argus_edge.bench.serving import SERVER, Served, served_model, served_of
from argus_edge.errors import UsageError


@dataclass(frozen=True)
class Prepared:
    """A model with its inputs: all that needs no device."""

    request: Request
    model: ResolvedModel
    inputs: Mapping[str, PreparedInputs]
    components: Mapping[str, ComponentContext]
    whole: Whole | None = None
    served: Served | None = None


def prepare(request: Request) -> Prepared:
    """Resolve the model, make its inputs and count its cost, before any device is asked.

    Raises
    ------
    InputError, UsageError
        The model or the inputs cannot be used.
    """
    served = served_of(request.model, request.options)
    if served is not None and (request.input_file or request.shapes.inputs):
        raise UsageError("--input and --shape belong to a model's own inputs; a server has none.")
    if served is not None:
        known = ComponentContext(unit=served.unit)
        return Prepared(request, served_model(served.model, served.url), {}, {SERVER: known}, served=served)
    model = resolve_model(request.model, runtime=request.options.runtime)
    choose_runtime(model, request.options.runtime)
    check_shapes_are_used(model, request.shapes)
    several = len(model.components) > 1
    inputs: dict[str, PreparedInputs] = {}
    components: dict[str, ComponentContext] = {}
    for part in model.components:
        given = read_input_file(request.input_file, part, several=several) if request.input_file else None
        prepared = prepare_inputs(
            part, root=model.root, shapes=request.shapes, batch=request.options.batch, given=given
        )
        inputs[part.name] = prepared
        components[part.name] = ComponentContext(
            precision=part.precision,
            cost=component_cost(part, prepared.shapes, prepared.dims),
            limits=part.parity_limits,
            largest_output=prepared.largest_output,
        )
    options = request.options
    whole = whole_of(
        model,
        inputs,
        batch=options.batch,
        prompt_tokens=options.prompt_tokens,
        output_tokens=options.output_tokens,
    )
    if whole is not None:
        components[END_TO_END] = whole_context(whole, model, components)
    return Prepared(request, model, inputs, components, whole)
