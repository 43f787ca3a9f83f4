"""Inputs for a timed call: golden ones of a bundle, the user's own, or made up so that they stay in range."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argus_edge.bench.model_types import BenchComponent, InputSpec, ResolvedModel
from argus_edge.bundles import check_file, load_arrays, make_inputs, resolve_dims
from argus_edge.errors import InputError, UsageError
from argus_edge.schema.bundle import GoldenCase

Arrays = dict[str, NDArray[Any]]

SEED = 1
MAX_INPUT_BYTES = 1 << 30
# Parity needs a sample of real inputs, not a day on the board.
MAX_GOLDEN_SAMPLES = 64
MAX_AXES = 16


@dataclass(frozen=True)
class Shapes:
    """What ``--shape`` bound.

    Attributes
    ----------
    inputs
        Input name (or, for TorchScript, argument in order) -> lengths.
    dtypes
        Input name -> dtype, where one was given.
    dims
        Name of a free dimension -> length.
    """

    inputs: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    dtypes: Mapping[str, str] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class PreparedInputs:
    """Arrays for one component.

    Attributes
    ----------
    arrays
        Input name -> array of the batch's size.
    origin
        Where they came from, for the report.
    golden
        Arrays ``in/<input>/<k>`` and ``out/<output>/<k>`` for parity on the board, or None.
    largest_output
        Largest magnitude among the golden outputs, which relative limits refer to.
    dims
        Of a bundle: the lengths of its free dimensions.
    notes
        What was assumed.
    """

    arrays: Arrays
    origin: str
    golden: Arrays | None = None
    largest_output: float | None = None
    dims: Mapping[str, int] | None = None
    notes: tuple[str, ...] = ()

    @property
    def shapes(self) -> dict[str, list[int]]:
        """Input name -> lengths."""
        return {name: list(array.shape) for name, array in self.arrays.items()}


def parse_shapes(given: Iterable[str]) -> Shapes:
    """Read ``NAME=1x3x224x224[:dtype]`` (an input) and ``NAME=77`` (a free dimension, or an input of one axis).

    Raises
    ------
    UsageError
        Anything else.
    """
    inputs: dict[str, tuple[int, ...]] = {}
    dtypes: dict[str, str] = {}
    dims: dict[str, int] = {}
    for text in given:
        name, equals, value = text.rpartition("=")
        lengths, _, dtype = value.partition(":")
        try:
            shape = tuple(int(length) for length in lengths.lower().split("x"))
        except ValueError:
            shape = ()
        if not equals or not name or not shape or len(shape) > MAX_AXES or min(shape) < 0:
            raise UsageError(
                f"Cannot read --shape {text!r}.",
                next_step="give an input as NAME=1x3x224x224, a free dimension as NAME=77",
            )
        if dtype:
            if dtype not in {"float32", "float16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool"}:
                raise UsageError(f"Unknown dtype {dtype!r} in --shape {text!r}.", next_step="e.g. NAME=1x77:int64")
            dtypes[name] = dtype
        inputs[name] = shape
        if len(shape) == 1 and not dtype:
            dims[name] = shape[0]
    return Shapes(inputs, dtypes, dims)


def check_shapes_are_used(model: ResolvedModel, shapes: Shapes) -> None:
    """Raise where ``--shape`` names something that no component has: a typing mistake, not to be passed over."""
    known: list[str] = []
    for component in model.components:
        if component.inputs is None:
            return
        known += [spec.name for spec in component.inputs]
        known += [axis for spec in component.inputs for axis in spec.shape if isinstance(axis, str) and axis != "?"]
        known += [dim.name for dim in component.bundled.dims] if component.bundled else []
    for name in shapes.inputs:
        if name not in known:
            raise UsageError(
                f"--shape names {name!r}, which the model does not have.",
                next_step="its inputs and free dimensions: " + (", ".join(dict.fromkeys(known)) or "none"),
            )


def prepare_inputs(
    component: BenchComponent,
    *,
    root: Path | None = None,
    shapes: Shapes = Shapes(),
    batch: int | None = None,
    given: Arrays | None = None,
    seed: int = SEED,
) -> PreparedInputs:
    """Return the arrays that a component is timed on.

    Parameters
    ----------
    component
        What is timed.
    root
        The bundle's folder, for its golden inputs.
    shapes
        What ``--shape`` bound.
    batch
        What ``--batch`` asked for; None: not asked.
    given
        The user's own arrays by input name.
    seed
        Of what is made up.

    Raises
    ------
    UsageError
        A free dimension that nobody bound, a length that the model does not take, or inputs that must be given.
    InputError
        Arrays that do not fit the model.
    """
    if component.bundled is not None and given is None:
        return _bundle_inputs(component, root, shapes, batch, seed)
    if given is not None:
        return _given_inputs(component, given, batch)
    if component.inputs is None:
        return _positional_inputs(component, shapes, seed)
    # Beside an input with a free first dimension, others may well be fixed: --batch is theirs where none is free.
    has_free = any(spec.shape and isinstance(spec.shape[0], str) for spec in component.inputs)
    bound = [
        bind(spec, shapes, batch if not has_free or (spec.shape and isinstance(spec.shape[0], str)) else None)
        for spec in component.inputs
    ]
    free = [f"{spec.name} {_shown(spec.shape)}" for spec in bound if any(isinstance(axis, str) for axis in spec.shape)]
    if free:
        raise _free_dimensions(component, bound, free)
    arrays, notes = _made_up(bound, seed)
    return PreparedInputs(arrays, f"generated (seed {seed})", notes=tuple(notes))


def bind(spec: InputSpec, shapes: Shapes, batch: int | None) -> InputSpec:
    """Return an input with its free dimensions replaced by what ``--shape`` and ``--batch`` say.

    Raises
    ------
    UsageError
        A length or a number of axes that the model does not take.
    """
    axes: list[int | str] = list(spec.shape)
    if batch is not None and axes and isinstance(axes[0], str) and axes[0] not in shapes.dims:
        axes[0] = batch
    axes = [shapes.dims.get(axis, axis) if isinstance(axis, str) else axis for axis in axes]
    wanted = shapes.inputs.get(spec.name)
    if wanted is not None:
        fits = len(wanted) == len(spec.shape) and all(
            isinstance(own, str) or own == length for own, length in zip(spec.shape, wanted, strict=True)
        )
        if not fits:
            raise UsageError(
                f"The input {spec.name} is {_shown(spec.shape)}; --shape asks for {'x'.join(map(str, wanted))}.",
                next_step="lengths that are numbers are fixed in the model; export it again to change them",
            )
        axes = list(wanted)
    if batch is not None and axes and isinstance(axes[0], int) and axes[0] != batch:
        raise UsageError(
            f"The input {spec.name} is {_shown(spec.shape)}: its first length is {axes[0]}, --batch asks for {batch}.",
            next_step=f"leave --batch out, or export the model with a batch of {batch} or a free one",
        )
    return InputSpec(spec.name, shapes.dtypes.get(spec.name, spec.dtype), tuple(axes), spec.rows, spec.values)


def _shown(shape: Sequence[int | str]) -> str:
    return "[" + ", ".join(str(axis) for axis in shape) + "]"


def _free_dimensions(component: BenchComponent, bound: Sequence[InputSpec], free: list[str]) -> UsageError:
    named = dict.fromkeys(axis for spec in bound for axis in spec.shape if isinstance(axis, str) and axis != "?")
    if any("?" in spec.shape for spec in bound) or not named:
        first = next(spec for spec in bound if any(isinstance(axis, str) for axis in spec.shape))
        lengths = "x".join(str(axis) if isinstance(axis, int) else "N" for axis in first.shape)
        example = f"--shape {first.name}={lengths}, with a number for each N"
    else:
        example = " ".join(f"--shape {axis}=N" for axis in named)
    return UsageError(
        f"{component.name} has free dimensions that nobody bound: {'; '.join(free)}.",
        next_step=f"{example}, or --input FILE.npz",
    )


def _made_up(specs: Sequence[InputSpec], seed: int) -> tuple[Arrays, list[str]]:
    generator = np.random.default_rng(seed)
    arrays: Arrays = {}
    notes: list[str] = []
    for spec in specs:
        shape = tuple(int(axis) for axis in spec.shape)
        size = int(np.prod(shape, dtype=np.float64)) * 8
        if size > MAX_INPUT_BYTES:
            raise UsageError(f"The input {spec.name} of shape {_shown(shape)} would take {size / 1e9:.1f} GB.")
        values, note = _values(spec, shape, generator)
        try:
            arrays[spec.name] = np.ascontiguousarray(values).astype(np.dtype(spec.dtype))
        except TypeError as error:
            raise UsageError(
                f"The input {spec.name} is {spec.dtype}, which numpy does not know.", next_step="export it with float32"
            ) from error
        if note:
            notes.append(note)
    return arrays, notes


def _values(spec: InputSpec, shape: tuple[int, ...], generator: np.random.Generator) -> tuple[NDArray[Any], str | None]:
    """Return plausible values: never integers out of a table's range, masks all on."""
    name = spec.name.lower()
    if "mask" in name or spec.dtype == "bool":
        return np.ones(shape), None
    if spec.dtype.startswith(("float", "bfloat")):
        return generator.standard_normal(shape), None
    if "token_type" in name or "segment" in name:
        return np.zeros(shape), None
    if "position" in name and shape:
        positions = np.arange(shape[-1])
        return np.broadcast_to(positions % spec.rows if spec.rows else positions, shape), None
    if spec.rows is not None:
        return generator.integers(min(1, spec.rows - 1), spec.rows, shape), None
    if spec.dtype in ("uint8", "int8") and len(shape) >= 3:
        limits = np.iinfo(spec.dtype)
        return generator.integers(limits.min, limits.max, shape, endpoint=True), None
    note = f"The range of {spec.name} ({spec.dtype}) is not known: it is 1 everywhere; --input gives your own."
    return np.ones(shape), note


def _positional_inputs(component: BenchComponent, shapes: Shapes, seed: int) -> PreparedInputs:
    if not shapes.inputs:
        raise UsageError(
            f"{component.name} does not say what inputs it takes (TorchScript files do not).",
            next_step="--shape NAME=1x3x224x224[:int64] for each argument of forward, in order, or --input FILE.npz",
        )
    specs = [InputSpec(name, shapes.dtypes.get(name, "float32"), shape) for name, shape in shapes.inputs.items()]
    arrays, notes = _made_up(specs, seed)
    return PreparedInputs(arrays, f"generated (seed {seed})", notes=tuple(notes))


def read_input_file(path: Path, component: BenchComponent, *, several: bool) -> Arrays:
    """Read ``--input``: arrays by input name; for a bundle of several components by ``component/input``.

    Raises
    ------
    InputError
        Not an ``.npz`` of plain arrays, or too large.
    """
    if path.is_file() and path.stat().st_size > MAX_INPUT_BYTES:
        raise InputError(f"The inputs are larger than {MAX_INPUT_BYTES >> 20} MiB.", where=str(path))
    arrays: Arrays = load_arrays(path)
    if not several:
        return arrays
    prefix = f"{component.name}/"
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _given_inputs(component: BenchComponent, given: Arrays, batch: int | None) -> PreparedInputs:
    if component.inputs is None:
        return PreparedInputs(given, "file")
    names = [spec.name for spec in component.inputs]
    missing = [name for name in names if name not in given]
    unknown = [name for name in given if name not in names]
    if missing or unknown:
        said = [f"lacks {', '.join(missing)}"] if missing else []
        said += [f"has {', '.join(unknown)}, which the model does not take"] if unknown else []
        raise InputError(
            f"The inputs for {component.name}: the file {' and '.join(said)}.",
            next_step=f"np.savez(FILE, {', '.join(f'{name}=…' for name in names)})",
        )
    for spec in component.inputs:
        _check_array(spec, given[spec.name], batch)
    return PreparedInputs({name: np.ascontiguousarray(given[name]) for name in names}, "file")


def _check_array(spec: InputSpec, array: NDArray[Any], batch: int | None) -> None:
    fits = len(array.shape) == len(spec.shape) and all(
        isinstance(own, str) or own == length for own, length in zip(spec.shape, array.shape, strict=True)
    )
    if not fits:
        raise InputError(f"The input {spec.name} is {_shown(spec.shape)}; the file's array is {_shown(array.shape)}.")
    if array.dtype.name != spec.dtype:
        raise InputError(
            f"The input {spec.name} is {spec.dtype}; the file's array is {array.dtype.name}.",
            next_step=f"save it with .astype({spec.dtype!r})",
        )
    if batch is not None and array.ndim and array.shape[0] != batch:
        raise InputError(f"The input {spec.name} has a batch of {array.shape[0]}, --batch asks for {batch}.")
    if spec.rows is not None and array.size and (array.min() < -spec.rows or array.max() >= spec.rows):
        raise InputError(
            f"The input {spec.name} holds ids from {array.min()} to {array.max()}; its table has {spec.rows} rows."
        )


def _bundle_inputs(
    component: BenchComponent, root: Path | None, shapes: Shapes, batch: int | None, seed: int
) -> PreparedInputs:
    bundled = component.bundled
    if bundled is None or root is None:
        raise ValueError("a bundle's inputs need its manifest and its folder")
    known = {dim.name for dim in bundled.dims}
    chosen = {name: length for name, length in shapes.dims.items() if name in known}
    if batch is not None and "batch" in known:
        chosen.setdefault("batch", batch)
    lengths = resolve_dims(bundled.dims, chosen)
    # A whole shape of an input binds each of its free dimensions.
    for tensor in bundled.inputs:
        wanted = shapes.inputs.get(tensor.name)
        if wanted is not None and len(wanted) == len(tensor.shape):
            named = {axis: n for axis, n in zip(tensor.shape, wanted, strict=True) if isinstance(axis, str)}
            lengths = resolve_dims(bundled.dims, {**chosen, **named})
    for spec in component.inputs or ():
        bind(
            InputSpec(spec.name, spec.dtype, tuple(lengths.get(str(axis), axis) for axis in spec.shape)), shapes, batch
        )
    golden, largest = _golden(root, bundled.golden)
    for case in bundled.golden:
        if case.dims == lengths:
            arrays = load_arrays(check_file(root, case.inputs))
            first = {name: np.ascontiguousarray(array[0]) for name, array in arrays.items()}
            return PreparedInputs(first, f"golden ({case.origin})", golden, largest, lengths)
    arrays = make_inputs(bundled.inputs, lengths, seed=seed)
    origin = f"generated by the bundle's ranges (seed {seed})"
    return PreparedInputs(arrays, origin, golden, largest, lengths)


def _golden(root: Path, cases: Sequence[GoldenCase]) -> tuple[Arrays | None, float | None]:
    """Return golden arrays under the agent's names: the host's outputs, not the original model's, are what to match."""
    packed: Arrays = {}
    largest = 0.0
    k = 0
    for case in cases:
        inputs = load_arrays(check_file(root, case.inputs))
        outputs = load_arrays(check_file(root, case.host_outputs))
        for sample in range(min(case.samples, MAX_GOLDEN_SAMPLES - k)):
            for side, arrays in (("in", inputs), ("out", outputs)):
                for name, array in arrays.items():
                    if sample >= len(array):
                        raise InputError(f"A golden array of {name} has fewer samples than the manifest says.")
                    packed[f"{side}/{name}/{k}"] = array[sample]
            k += 1
        if outputs:
            largest = max([largest, *(float(np.abs(array).max(initial=0)) for array in outputs.values())])
    return (packed, largest) if packed else (None, None)
