"""What a file format offers: converting a component, running the file, describing it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import torch

from argus_edge.bundles import make_inputs
from argus_edge.errors import MissingDependencyError, UsageError
from argus_edge.exporters.plan import Arrays, ComponentPlan, Piece
from argus_edge.schema.bundle import Precision

Runner = Callable[[Arrays], Arrays]


@dataclass(frozen=True)
class Request:
    """How a component shall be converted.

    ``samples`` are inputs for calibration: made up, or the user's own images and texts. ``fp16_embeddings`` keeps the
    embedding table of an int4 export in fp16. ``opset`` is ONNX's.
    """

    precision: Precision
    opset: int
    samples: tuple[Arrays, ...] = ()
    fp16_embeddings: bool = False


@dataclass(frozen=True)
class FileFacts:
    """What an exported file says about itself."""

    weight_bytes: int
    ops: dict[str, int]
    dtypes: dict[str, str]
    opset: int | None = None
    opset_imports: dict[str, int] = field(default_factory=dict)
    ir_version: int | None = None


@dataclass(frozen=True)
class Converted:
    """A component's file, the files beside it, and who wrote it."""

    file: Path
    external: tuple[Path, ...]
    converter: str
    notes: tuple[str, ...] = ()


class Format(ABC):
    """One file format with its converter and its runtime."""

    name: ClassVar[str]
    suffix: ClassVar[str]
    precisions: ClassVar[tuple[Precision, ...]]
    # Module, package and extra that the converter needs beside the export extra.
    needs: ClassVar[tuple[str, str, str] | None] = None

    def check_precision(self, precision: Precision) -> None:
        """Raise :class:`UsageError` for a precision that this format's converter cannot write."""
        if precision not in self.precisions:
            raise UsageError(
                f"{self.name} files are not written in {precision}.",
                next_step=f"choose one of: {', '.join(self.precisions)}",
            )

    def check_installed(self) -> None:
        """Raise :class:`MissingDependencyError` where a package of this format's converter is not there."""
        if self.needs is not None and find_spec(self.needs[0]) is None:
            raise MissingDependencyError(*self.needs[1:], needed_for=f"Writing {self.name} files")

    def adapt(self, plan: ComponentPlan) -> ComponentPlan:
        """Return the plan as this format can carry it out."""
        return plan

    def tensor_name(self, name: str) -> str:
        """Return a tensor's name as this format can write it."""
        return name

    @abstractmethod
    def convert(self, piece: Piece, plan: ComponentPlan, request: Request, folder: Path) -> Converted:
        """Write the component's file into ``folder``. May change ``piece``: nothing is computed with it afterwards."""

    @abstractmethod
    def runner(self, path: Path, plan: ComponentPlan) -> Runner:
        """Return a function that runs the file in its target runtime on named arrays."""

    @abstractmethod
    def runtime(self) -> str:
        """Return the target runtime's name and version."""

    @abstractmethod
    def facts(self, converted: Converted) -> FileFacts:
        """Return what the file says about itself."""


def example_inputs(plan: ComponentPlan, lengths: dict[str, int]) -> tuple[torch.Tensor, ...]:
    """Return made-up inputs as tensors, in the plan's order."""
    arrays = plan.finish(make_inputs(plan.inputs, lengths))
    return as_tensors(plan, arrays)


def as_tensors(plan: ComponentPlan, arrays: Arrays) -> tuple[torch.Tensor, ...]:
    """Return named inputs as tensors in the plan's order; integers as the original takes them, in 64 bits."""
    tensors = (torch.from_numpy(arrays[spec.name]) for spec in plan.inputs)
    return tuple(tensor if tensor.is_floating_point() else tensor.long() for tensor in tensors)


def as_arrays(plan: ComponentPlan, outputs: tuple[torch.Tensor, ...]) -> Arrays:
    """Return a piece's outputs as named float32 (or integer) arrays."""
    named = {}
    for spec, tensor in zip(plan.outputs, outputs, strict=True):
        named[spec.name] = (tensor.float() if tensor.is_floating_point() else tensor).detach().cpu().numpy()
    return named
