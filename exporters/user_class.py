"""A user's own class as a model to export: ``export_components()`` names its modules and an example of their inputs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from pydantic import ValidationError
from torch import nn

from argus_edge.errors import InputError, UsageError
from argus_edge.evaluate.models.user_class import find_class, make
from argus_edge.exporters.plan import ComponentPlan, Family, Piece, float_output, hide_tail
from argus_edge.exporters.quiet import quiet
from argus_edge.exporters.source import ModelSource
from argus_edge.schema.bundle import (
    ImagePreprocess,
    Role,
    Step,
    SymbolicDim,
    TensorSpec,
    UnitOfWork,
    ValueRange,
)
from argus_edge.text import first_line

GUIDE = "see docs/export.md, A class of your own"
METHOD = "export_components"
BATCH, SEQUENCE = "batch", "sequence"
LARGEST_BATCH = 64
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
# Of these two a dual encoder is made, which `eval` knows how to feed.
IMAGE, TEXT = "image", "text"
ROLES: dict[str, Role] = {IMAGE: "image-encoder", TEXT: "text-encoder"}


class UserPiece(Piece):
    """A module of the user's with its outputs as a tuple."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the module's outputs in their order."""
        return tuple(named_outputs("", self.module(*inputs)).values())


def named_outputs(component: str, found: Any) -> dict[str, torch.Tensor]:
    """Return a module's outputs by name: a dict's own; ``COMPONENT_embeds`` for one tensor; else numbered.

    Raises
    ------
    InputError
        It is neither a tensor nor a tuple or dict of tensors.
    """
    if isinstance(found, torch.Tensor):
        found = {f"{component}_embeds": found}
    elif isinstance(found, (tuple, list)):
        found = {f"output_{number}": tensor for number, tensor in enumerate(found)}
    if isinstance(found, Mapping) and found and all(isinstance(value, torch.Tensor) for value in found.values()):
        return {str(name): tensor for name, tensor in found.items()}
    raise InputError(
        f"The component {component!r} returns {type(found).__name__}, not a tensor, a tuple or a dict of tensors.",
        next_step=GUIDE,
    )


class UserFamily(Family):
    """The components that a class names."""

    name: ClassVar[str] = "class"

    def __init__(self, model: Any, reference: str) -> None:
        super().__init__(None, reference.partition(":")[2])
        self.reference = reference
        self.parts = _parts(model, reference)
        self.image_preprocess = _preprocess(model, reference)
        if self.is_dual_encoder():
            self.name = "dual-encoder"  # type: ignore[misc]

    def is_dual_encoder(self) -> bool:
        """Tell whether the components are an image and a text encoder, fed as `eval` feeds CLIP's."""
        return (
            set(self.parts) == {IMAGE, TEXT}
            and list(self.parts[IMAGE][1]) == ["pixel_values"]
            and set(self.parts[TEXT][1]) == {"input_ids", "attention_mask"}
            and self.image_preprocess is not None
        )

    def components(self) -> list[ComponentPlan]:
        """Return the plan of each component; its outputs' free axes are found by running it at two sizes."""
        return [_plan(name, module, example) for name, (module, example) in self.parts.items()]

    def unit_of_work(self) -> UnitOfWork:
        """Return one image and one text embedded, or one call of each component."""
        steps = [Step(component=name, phase="encode") for name in self.parts]
        if self.is_dual_encoder():
            return UnitOfWork(task="retrieval", description="one image plus one text embedded", steps=steps)
        return UnitOfWork(task="component", description="one call of each component, batch 1", steps=steps)

    def preprocess(self) -> ImagePreprocess | None:
        """Return the class's ``image_preprocess``."""
        return self.image_preprocess


def open_class(reference: str, *, random_weights: bool, seed: int) -> tuple[ModelSource, UserFamily]:
    """Make an object of a user's class and read what it says about its components.

    Parameters
    ----------
    reference
        ``module:Class``, looked for in the current folder first.

    Raises
    ------
    UsageError
        Random weights were asked for: a class brings its own.
    InputError
        No such class, or what it says does not hold together.
    """
    if random_weights:
        raise UsageError("A class brings its own weights.", where=reference, next_step="leave out --random-weights")
    with quiet():
        model = make(find_class(reference, os.getcwd()), reference)
    family = UserFamily(model, reference)
    processor = getattr(model, "processor", None)
    source = ModelSource(
        config=None,
        architecture=family.architecture,
        source_id=reference,
        location=None if processor is None else str(processor),
        revision=None,
        random_weights=False,
        seed=seed,
        loaded=model,
    )
    return source, family


def _parts(model: Any, reference: str) -> dict[str, tuple[nn.Module, dict[str, torch.Tensor]]]:
    method = getattr(model, METHOD, None)
    if not callable(method):
        raise InputError(f"The class has no method {METHOD}().", where=reference, next_step=GUIDE)
    try:
        found = method()
    except Exception as error:  # whatever the user's class raises is the user's to read
        raise InputError(f"{METHOD}() fails: {type(error).__name__}: {error}", where=reference) from error
    if not isinstance(found, Mapping) or not found:
        raise InputError(f"{METHOD}() returns no component.", where=reference, next_step=GUIDE)
    parts = {}
    for name, part in found.items():
        fits = (
            _NAME.fullmatch(str(name)) is not None
            and isinstance(part, tuple)
            and len(part) == 2
            and isinstance(part[0], nn.Module)
            and isinstance(part[1], Mapping)
            and bool(part[1])
            and all(isinstance(tensor, torch.Tensor) and tensor.dim() > 0 for tensor in part[1].values())
        )
        if not fits:
            raise InputError(
                f"{METHOD}() must give NAME: (torch module, {{input: example}}); {str(name)[:64]!r} is not that.",
                where=reference,
                next_step=GUIDE,
            )
        parts[str(name)] = (part[0].eval(), {str(key): tensor.cpu() for key, tensor in part[1].items()})
    return parts


def _preprocess(model: Any, reference: str) -> ImagePreprocess | None:
    given = getattr(model, "image_preprocess", None)
    if given is None:
        return None
    try:
        return ImagePreprocess.model_validate({"rescale": 1 / 255, "layout": "NCHW", **given})
    except (ValidationError, TypeError) as error:
        raise InputError(
            f"image_preprocess does not hold together: {error}", where=reference, next_step=GUIDE
        ) from error


def _spec(name: str, example: torch.Tensor) -> TensorSpec:
    """Return an input's spec: its first axis is the batch, the second one of integers the sequence."""
    shape: list[int | str] = [BATCH, *example.shape[1:]]
    if example.is_floating_point():
        values = ValueRange(minimum=-3.0, maximum=3.0, fill="normal")
        return TensorSpec(name=name, dtype="float32", shape=shape, values=values)
    if example.dim() > 1:
        shape[1] = SEQUENCE
    if "mask" in name:
        values = ValueRange(minimum=0, maximum=1, fill="ones")
    else:
        low, high = int(example.min()), int(example.max())
        values = ValueRange(minimum=low, maximum=high, fill="tokens" if high > low else "zeros")
    return TensorSpec(name=name, dtype="int64", shape=shape, values=values)


def _at(example: Mapping[str, torch.Tensor], specs: tuple[TensorSpec, ...], lengths: Mapping[str, int]) -> list[Any]:
    """Return the example's tensors at other lengths of the free axes."""
    tensors = []
    for spec in specs:
        tensor = example[spec.name][:1].expand(lengths[BATCH], *example[spec.name].shape[1:])
        tensors.append(tensor[:, : lengths[SEQUENCE]] if SEQUENCE in spec.shape else tensor)
    return [tensor.contiguous() for tensor in tensors]


@torch.no_grad()
def _plan(name: str, module: nn.Module, example: dict[str, torch.Tensor]) -> ComponentPlan:
    specs = tuple(_spec(key, tensor) for key, tensor in example.items())
    lengths = {tensor.shape[1] for spec in specs if SEQUENCE in spec.shape for tensor in [example[spec.name]]}
    if len(lengths) > 1:
        raise InputError(
            f"The integer inputs of {name!r} are of different lengths: {sorted(lengths)}.", next_step=GUIDE
        )
    longest = max(lengths, default=1)
    if lengths and longest < 5:
        raise InputError(f"The example of {name!r} is only {longest} long: give the longest sequence.", next_step=GUIDE)
    sizes = ({BATCH: 2, SEQUENCE: longest}, {BATCH: 3, SEQUENCE: max(1, longest - 1)})
    try:
        first, second = (named_outputs(name, module(*_at(example, specs, size))) for size in sizes)
    except (RuntimeError, IndexError, TypeError, ValueError) as error:
        raise InputError(
            f"The component {name!r} does not run on its example at batch 2: {first_line(error)}",
            next_step=GUIDE,
        ) from error
    dims = [SymbolicDim(name=BATCH, minimum=1, maximum=LARGEST_BATCH, typical=1)]
    if lengths:
        dims.append(SymbolicDim(name=SEQUENCE, minimum=1, maximum=longest, typical=longest))
    free = {dim.name for dim in dims}

    def case(batch: int, sequence: int) -> dict[str, int]:
        return {key: value for key, value in ((BATCH, batch), (SEQUENCE, sequence)) if key in free}

    return ComponentPlan(
        name=name,
        role=ROLES.get(name, "model"),
        inputs=specs,
        outputs=tuple(
            float_output(key, *_axes(name, key, tensor, second[key], sizes, free)) for key, tensor in first.items()
        ),
        dims=tuple(dims),
        cases=(case(1, longest), case(2, max(2, longest // 2)), case(3, max(2, longest // 4))),
        mac_dims=(case(1, longest),),
        trace_dims=case(2, max(3, longest - 1)),
        build=lambda _: UserPiece(module),
        finish=hide_tail if "attention_mask" in example and lengths else (lambda arrays: arrays),
    )


def _axes(
    component: str,
    output: str,
    first: torch.Tensor,
    second: torch.Tensor,
    sizes: tuple[dict[str, int], dict[str, int]],
    free: set[str],
) -> list[int | str]:
    """Return an output's shape: an axis that followed a free axis from one size to the other has its name."""
    shape: list[int | str] = []
    for before, after in zip(first.shape, second.shape, strict=True):
        if before == after:
            shape.append(before)
            continue
        names = [
            name for name in (BATCH, SEQUENCE) if name in free and (before, after) == (sizes[0][name], sizes[1][name])
        ]
        if not names:
            raise InputError(
                f"An axis of {output!r} of {component!r} is {before} long for {sizes[0]} and {after} for {sizes[1]}: "
                "it follows neither the batch nor the sequence.",
                next_step=GUIDE,
            )
        shape.append(names[0])
    return shape
