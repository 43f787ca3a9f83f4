"""Torch exported programs (.pt2), for hosts that run torch itself."""

from __future__ import annotations

import inspect
from collections import Counter
from pathlib import Path
from typing import ClassVar

import torch

from argus_edge.exporters.format import Converted, FileFacts, Format, Request, Runner, example_inputs
from argus_edge.exporters.onnx_format import dynamic_shapes
from argus_edge.exporters.plan import Arrays, ComponentPlan, Piece
from argus_edge.exporters.quiet import quiet
from argus_edge.schema.bundle import Precision


class HalfPiece(Piece):
    """A piece in fp16 whose inputs and outputs stay fp32, a decoder's keys and values among them."""

    def __init__(self, piece: Piece, plan: ComponentPlan) -> None:
        super().__init__()
        self.piece = piece.half()
        self.plan = plan

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Narrow floating inputs, run, widen floating outputs."""
        halved = (tensor.half() if tensor.is_floating_point() else tensor for tensor in inputs)
        return tuple(tensor.float() if tensor.is_floating_point() else tensor for tensor in self.piece(*halved))


def unguarded(program: torch.export.ExportedProgram) -> torch.nn.Module:
    """Return a program's module without the tracer's guards, as the agent runs it.

    A guard such as "this axis is not 1" says which branch the tracer took, not that the other computes something else:
    the past of a decoder starts empty. What does differ is what the comparison at three shapes finds. The axes' own
    ranges stay checked. torch before 2.9 has no guards to leave out.
    """
    leave_out = {"check_guards": False} if "check_guards" in inspect.signature(program.module).parameters else {}
    return program.module(**leave_out)


class TorchFormat(Format):
    """``torch.export`` programs."""

    name: ClassVar[str] = "torch"
    suffix: ClassVar[str] = ".pt2"
    precisions: ClassVar[tuple[Precision, ...]] = ("fp32", "fp16")

    def __init__(self) -> None:
        # The last program that was read, and its file: reading takes as long as tracing.
        self._read: tuple[Path, torch.export.ExportedProgram] | None = None

    def _program(self, path: Path) -> torch.export.ExportedProgram:
        """Read a file that has just been written, once for its facts and its run."""
        if self._read is None or self._read[0] != path:
            self._read = None  # one model's weights at a time
            self._read = path, torch.export.load(path)
        return self._read[1]

    def convert(self, piece: Piece, plan: ComponentPlan, request: Request, folder: Path) -> Converted:
        """Export with dynamic axes and save."""
        path = folder / f"{plan.name}.pt2"
        self._read = None
        notes: tuple[str, ...] = ()
        shapes = dynamic_shapes(piece, plan)
        module: Piece = piece
        if request.precision == "fp16":
            module = HalfPiece(piece, plan)
            shapes = dynamic_shapes(module, plan)
            notes = ("weights and arithmetic in fp16; inputs and outputs in fp32",)
        named = torch.export.Dim.DYNAMIC
        free = torch.utils._pytree.tree_map(lambda axis: named if isinstance(axis, str) else axis, shapes)
        with quiet(), torch.no_grad():
            program = torch.export.export(
                module, example_inputs(plan, plan.trace_dims), dynamic_shapes=free, strict=False
            )
            torch.export.save(program, path)
        return Converted(path, (), f"torch.export {torch.__version__}", notes)

    def runner(self, path: Path, plan: ComponentPlan) -> Runner:
        """Return a function that runs the program."""
        program = unguarded(self._program(path))
        names = [spec.name for spec in plan.outputs]

        @torch.no_grad()
        def run(arrays: Arrays) -> Arrays:
            outputs = program(*(torch.from_numpy(arrays[spec.name]) for spec in plan.inputs))
            return {name: tensor.numpy() for name, tensor in zip(names, outputs, strict=True)}

        return run

    def runtime(self) -> str:
        """Return torch's version."""
        return f"torch {torch.__version__}"

    def facts(self, converted: Converted) -> FileFacts:
        """Read operators and the size of the constants from the program."""
        program = self._program(converted.file)
        ops = Counter(
            str(node.target).removesuffix(".default")
            for node in program.graph.nodes
            if node.op == "call_function" and "aten" in str(node.target)
        )
        kept = [*program.state_dict.values(), *program.constants.values()]
        # Tied weights are two names of one storage: a vocabulary's table is in the file, and in memory, once.
        stored = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in kept if hasattr(t, "numel")}
        return FileFacts(sum(stored.values()), dict(ops.most_common()), {})
