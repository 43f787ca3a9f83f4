"""Architectures that are no family of ours, through Optimum's exporter: one component, its configuration's inputs.

Optimum needs an older transformers than the families do, hence an environment of its own (extra ``optimum``).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import torch

from argus_edge.errors import InputError, UsageError
from argus_edge.exporters import onnx_precision
from argus_edge.exporters.format import Converted, Format, Request
from argus_edge.exporters.onnx_format import OnnxFormat, opset_errors
from argus_edge.exporters.plan import ComponentPlan, Family, Piece, hide_tail
from argus_edge.exporters.quiet import quiet
from argus_edge.schema.bundle import Precision, Step, SymbolicDim, TensorSpec, UnitOfWork, ValueRange
from argus_edge.text import first_line


def available() -> bool:
    """Tell whether Optimum's ONNX exporter is installed."""
    return find_spec("optimum") is not None and find_spec("optimum.exporters") is not None


class Whole(Piece):
    """A whole model whose inputs and outputs go by position."""

    def __init__(self, model: Any, inputs: list[str], outputs: list[str]) -> None:
        super().__init__()
        self.model = model
        self.inputs, self.outputs = inputs, outputs

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the outputs that the exporter's configuration names."""
        found = self.model(**dict(zip(self.inputs, tensors, strict=True)), return_dict=True)
        return tuple(getattr(found, name) for name in self.outputs)


class OptimumFamily(Family):
    """Any architecture that Optimum exports in one file, without a cache."""

    name: ClassVar[str] = "optimum"

    def __init__(self, config: Any, architecture: str) -> None:
        super().__init__(config, architecture)
        self.exporter_config = _exporter_config(config, architecture)

    @property
    def architectures(self) -> dict[str, str]:  # type: ignore[override]
        """Return the one architecture that was asked for."""
        return {self.architecture: self.architecture}

    def file_format(self, chosen: Format) -> Format:
        """Return ONNX by Optimum; it writes nothing else."""
        if chosen.name != "onnx":
            raise UsageError(
                f"{self.architecture} goes through Optimum, which does not write {chosen.name}.",
                next_step="choose --format onnx",
            )
        return OptimumOnnx(self.exporter_config)

    def components(self) -> list[ComponentPlan]:
        """Return the whole model as one component, with batch and sequence free."""
        dummy = self.exporter_config.generate_dummy_inputs(framework="pt")
        longest = int(getattr(self.config, "max_position_embeddings", 512) or 512)
        typical: dict[str, int] = {"batch": 1}
        inputs = []
        for name, axes in self.exporter_config.inputs.items():
            shape: list[int | str] = list(dummy[name].shape)
            for axis, label in axes.items():
                dim = _dim_name(label)
                if dim is not None:
                    typical.setdefault(dim, int(dummy[name].shape[axis]))
                    shape[axis] = dim
            inputs.append(self._input(name, dummy[name], shape))
        outputs = [
            TensorSpec(
                name=name, dtype="float32", shape=[_dim_name(axes.get(axis, "")) or "?" for axis in sorted(axes)]
            )
            for name, axes in self.exporter_config.outputs.items()
        ]
        dims = tuple(
            SymbolicDim(name=name, minimum=1, maximum=64 if name == "batch" else max(longest, length), typical=length)
            for name, length in typical.items()
        )
        others = {name: length for name, length in typical.items() if name != "batch"}
        cases = [
            {"batch": batch, **{name: max(1, length - 3 * index) for name, length in others.items()}}
            for index, batch in enumerate((1, 2, 3))
        ]
        input_names, output_names = [spec.name for spec in inputs], [spec.name for spec in outputs]
        masked = "attention_mask" in input_names
        return [
            ComponentPlan(
                name="model",
                role="model",
                inputs=tuple(inputs),
                outputs=tuple(outputs),
                dims=dims,
                cases=tuple(cases),
                mac_dims=(cases[0],),
                trace_dims=cases[1],
                build=lambda model: Whole(model, input_names, output_names),
                finish=hide_tail if masked else (lambda arrays: arrays),
            )
        ]

    def _input(self, name: str, tensor: torch.Tensor, shape: list[int | str]) -> TensorSpec:
        dtype = str(tensor.dtype).removeprefix("torch.")
        if tensor.is_floating_point():
            values = ValueRange(minimum=-3, maximum=3, fill="normal")
        elif "mask" in name:
            values = ValueRange(minimum=0, maximum=1, fill="ones")
        elif "type" in name:
            values = ValueRange(minimum=0, maximum=0, fill="zeros")
        else:
            values = ValueRange(minimum=0, maximum=int(self.config.vocab_size) - 1, fill="tokens")
        return TensorSpec(name=name, dtype=dtype, shape=shape, values=values)

    def unit_of_work(self) -> UnitOfWork:
        """One call."""
        return UnitOfWork(
            task="component", description="one call, batch 1", steps=[Step(component="model", phase="encode")]
        )


def _dim_name(label: str) -> str | None:
    """Return our name of a free axis of Optimum's; None for an axis that stays as it is."""
    if label.startswith("batch") or label.endswith("batch_size"):
        return "batch"
    return "sequence" if "sequence" in label else None


def _exporter_config(config: Any, architecture: str) -> Any:
    """Return Optimum's configuration for an architecture.

    Raises
    ------
    InputError
        Optimum does not know it, or exports it in several files.
    """
    import transformers
    from optimum.exporters.onnx import model_configs  # noqa: F401  (registers the configurations)
    from optimum.exporters.tasks import TasksManager

    model_class = getattr(transformers, architecture, None)
    try:
        task = TasksManager._infer_task_from_model_or_model_class(model_class=model_class)
        constructor: Callable[[Any], Any] = TasksManager.get_exporter_config_constructor(
            exporter="onnx", model_type=config.model_type, task=task, library_name="transformers"
        )
        found = constructor(config)
    except (KeyError, ValueError, AttributeError) as error:
        raise InputError(
            f"Neither a family of argus-edge nor Optimum exports {architecture} ({config.model_type}).",
            next_step=f"Optimum says: {first_line(error)}",
        ) from error
    if getattr(found, "use_past", False) or getattr(config, "is_encoder_decoder", False):
        raise InputError(
            f"{architecture} generates text; only families of argus-edge are exported with a cache.",
            next_step="choose an encoder or a classifier, or run the model in a server of its own and bench that",
        )
    return found


class OptimumOnnx(OnnxFormat):
    """ONNX as Optimum writes it."""

    precisions: ClassVar[tuple[Precision, ...]] = ("fp32", "fp16", "int8", "int8-static")

    def __init__(self, exporter_config: Any) -> None:
        self.exporter_config = exporter_config

    def convert(self, piece: Piece, plan: ComponentPlan, request: Request, folder: Path) -> Converted:
        """Let Optimum export, then bring the graph to its precision."""
        from optimum.exporters.onnx.convert import export

        assert isinstance(piece, Whole)
        path = folder / f"{plan.name}.onnx"
        with quiet(), opset_errors(request.opset):
            export(piece.model, self.exporter_config, path, opset=request.opset)
        notes: tuple[str, ...] = ()
        if request.precision != "fp32":
            notes = onnx_precision.change(path, request)
        external = tuple(sorted(p for p in folder.iterdir() if p.name.startswith(f"{plan.name}.onnx") and p != path))
        return Converted(path, external, f"optimum-onnx {version('optimum-onnx')}", notes)
