"""What a family says about its model: which components, with which inputs, and how to call them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from argus_edge.schema.bundle import (
    Generation,
    ImagePreprocess,
    Role,
    SymbolicDim,
    TensorSpec,
    UnitOfWork,
    ValueRange,
)

Arrays = dict[str, np.ndarray]


class Piece(nn.Module):
    """A component as a module: tensors in, a tuple of tensors out, in the order of the plan's inputs and outputs.

    ``original`` holds the whole model where ``reference`` calls it; a list, so that it is no submodule of the piece.
    """

    def __init__(self, original: nn.Module | None = None) -> None:
        super().__init__()
        self.original: list[Any] = [] if original is None else [original]

    def reference(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Compute the same by the original model's own public call, for the comparison; ``forward`` by default."""
        outputs: tuple[torch.Tensor, ...] = self(*inputs)
        return outputs


@dataclass(frozen=True)
class ComponentPlan:
    """A component before it is exported.

    Parameters
    ----------
    build
        Makes the component's module from the loaded model.
    cases
        Lengths of the symbolic dims at the three golden shapes; the first is the one that gets many samples.
    mac_dims
        Lengths at which multiply-accumulates are counted.
    trace_dims
        Lengths of the example that exporters trace: all different and above one, so that none is taken for a constant.
    finish
        Corrects made-up inputs so that they mean something (an end token in its place, matching image slots).
    text_input, image_input
        Names of the inputs that a calibration folder's texts and images feed.
    """

    name: str
    role: Role
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    dims: tuple[SymbolicDim, ...]
    cases: tuple[dict[str, int], ...]
    mac_dims: tuple[dict[str, int], ...]
    trace_dims: dict[str, int]
    build: Callable[[Any], Piece]
    finish: Callable[[Arrays], Arrays] = lambda arrays: arrays
    notes: tuple[str, ...] = ()


class Family(ABC):
    """One model architecture: how it splits into components and how they work together."""

    name: ClassVar[str]
    # Architecture in config.json -> the class of transformers that is loaded for it.
    architectures: ClassVar[dict[str, str]]
    encoder_only: ClassVar[bool] = False

    def __init__(self, config: Any, architecture: str) -> None:
        self.config = config
        self.architecture = architecture

    @abstractmethod
    def components(self) -> list[ComponentPlan]:
        """Return the components in the order in which they run."""

    @abstractmethod
    def unit_of_work(self) -> UnitOfWork:
        """Return what one end-to-end inference is."""

    def file_format(self, chosen: Any) -> Any:
        """Return the format to write: the chosen one, unless the family has an exporter of its own."""
        return chosen

    def generation(self) -> Generation | None:
        """Return how to generate text, for families that do."""
        return None

    def preprocess(self) -> ImagePreprocess | None:
        """Return the image preprocessing that the vision input expects."""
        return None


def image_input(name: str, size: tuple[int, int], batch: str = "batch") -> TensorSpec:
    """Return the spec of normalised images, shape (batch, 3, height, width)."""
    return TensorSpec(
        name=name,
        dtype="float32",
        shape=[batch, 3, *size],
        values=ValueRange(minimum=-3.0, maximum=3.0, fill="normal"),
    )


def token_input(name: str, vocab_size: int, shape: tuple[str, ...] = ("batch", "sequence")) -> TensorSpec:
    """Return the spec of token ids below ``vocab_size``."""
    return TensorSpec(
        name=name,
        dtype="int64",
        shape=list(shape),
        values=ValueRange(minimum=0, maximum=vocab_size - 1, fill="tokens"),
    )


def mask_input(name: str, shape: tuple[str, ...] = ("batch", "sequence")) -> TensorSpec:
    """Return the spec of a mask: 1 keeps a position, 0 hides it."""
    return TensorSpec(name=name, dtype="int64", shape=list(shape), values=ValueRange(minimum=0, maximum=1, fill="ones"))


def feature_input(name: str, shape: tuple[str | int, ...], bound: float = 3.0) -> TensorSpec:
    """Return the spec of real-valued features."""
    return TensorSpec(
        name=name, dtype="float32", shape=list(shape), values=ValueRange(minimum=-bound, maximum=bound, fill="normal")
    )


def float_output(name: str, *shape: str | int) -> TensorSpec:
    """Return the spec of a float32 output."""
    return TensorSpec(name=name, dtype="float32", shape=list(shape))


def hide_tail(arrays: Arrays, mask: str = "attention_mask") -> Arrays:
    """Mask the last position of every row but the first, so that a mask folded into a constant cannot pass."""
    if arrays[mask].shape[0] > 1:
        arrays[mask][1:, -1] = 0
    return arrays
