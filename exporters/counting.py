"""Counting multiply-accumulates three ways, and saying why the counters disagree."""

from __future__ import annotations

import copy
import warnings
from collections import Counter
from dataclasses import dataclass

import torch
from torch.utils.flop_counter import FlopCounterMode

from argus_edge.exporters.plan import Piece
from argus_edge.exporters.quiet import quiet
from argus_edge.onnx_macs import GraphCost
from argus_edge.schema.bundle import MacCount

# Above this share the counters disagree.
TOLERANCE = 0.02
# Operators for which fvcore counts one MAC or more an element although they multiply no matrices.
FVCORE_EXTRAS = ("layer_norm", "batch_norm", "group_norm", "adaptive_avg_pool2d", "grid_sampler", "upsample")
# Operators that do multiply matrices and that fvcore has no handler for.
_PRODUCTS = ("conv", "attention", "matmul", "bmm", "addmm", "einsum")


@dataclass(frozen=True)
class Counts:
    """What the counters that need the module found; ``fvcore`` is a reason where it could not count."""

    dims: dict[str, int]
    flop_counter: int
    fvcore: tuple[int, int, dict[str, int]] | str


def skeleton(piece: Piece) -> Piece:
    """Return a copy of a piece whose tensors have shapes and no values: running it computes nothing."""
    tensors = [*piece.parameters(), *piece.buffers()]
    for original in piece.original:
        tensors += [*original.parameters(), *original.buffers()]
    bare: dict[int, object] = {}
    for tensor in tensors:
        empty = torch.empty_like(tensor, device="meta")
        bare[id(tensor)] = torch.nn.Parameter(empty, False) if isinstance(tensor, torch.nn.Parameter) else empty
    return copy.deepcopy(piece, bare)


def count_flop_counter_mode(piece: Piece, bare: Piece, inputs: tuple[torch.Tensor, ...]) -> int:
    """Return MACs as half of what torch's ``FlopCounterMode`` counts with eager attention.

    On the :func:`skeleton` ``bare``, which computes nothing; on the piece where its control flow asks for values.
    """
    try:
        return _flops(bare, tuple(tensor.to("meta") for tensor in inputs)) // 2
    except (RuntimeError, NotImplementedError) as error:
        if "meta" not in str(error):
            raise
        return _flops(piece, inputs) // 2


def _flops(module: Piece, inputs: tuple[torch.Tensor, ...]) -> int:
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        module(*inputs)
    return int(counter.get_total_flops())


def count_fvcore(module: Piece, inputs: tuple[torch.Tensor, ...]) -> tuple[int, int, dict[str, int]]:
    """Return fvcore's count, the part that is no matrix product, and the products it skipped.

    On a :func:`skeleton` nothing is computed.
    """
    from fvcore.nn import FlopCountAnalysis

    with torch.no_grad(), warnings.catch_warnings(), quiet():
        warnings.simplefilter("ignore")
        device = next(module.parameters()).device
        analysis = FlopCountAnalysis(module, tuple(tensor.to(device) for tensor in inputs))
        analysis.unsupported_ops_warnings(False).uncalled_modules_warnings(False).tracer_warnings("none")
        total = int(analysis.total())
        by_operator = analysis.by_operator()
        unsupported = Counter(analysis.unsupported_ops())
    extras = sum(int(n) for name, n in by_operator.items() if name in FVCORE_EXTRAS)
    skipped = {name: n for name, n in unsupported.items() if any(word in name for word in _PRODUCTS)}
    return total, extras, skipped


def combine(
    lengths: dict[str, int],
    flop_counter: int,
    graph: GraphCost | str,
    fvcore: tuple[int, int, dict[str, int]] | str,
) -> MacCount:
    """Put the three counts together with the reasons for what they disagree on.

    Parameters
    ----------
    graph
        The ONNX graph's cost; a string is the reason why it was not walked.
    fvcore
        As from :func:`count_fvcore`; a string is the reason why it could not count.
    """
    counts: dict[str, int | None] = {"flop_counter_mode": flop_counter, "onnx_graph": None, "fvcore": None}
    reasons: list[str] = []
    if isinstance(graph, str):
        reasons.append(f"onnx_graph: {graph}")
    else:
        counts["onnx_graph"] = graph.macs
        if graph.uncounted:
            left_out = ", ".join(f"{op} ({n}x)" for op, n in graph.uncounted.items())
            reasons.append(f"onnx_graph: left out nodes of unknown shape or kind: {left_out}")
        elif abs(graph.macs - flop_counter) > TOLERANCE * max(flop_counter, 1):
            reasons.append(
                f"onnx_graph: {graph.macs / max(flop_counter, 1) - 1:+.1%} against the original: the exporter turned "
                "some products into element-wise operators or constants, or dropped what no output depends on"
            )
    if isinstance(fvcore, str):
        reasons.append(f"fvcore: {fvcore}")
    else:
        total, extras, skipped = fvcore
        counts["fvcore"] = total
        if extras:
            reasons.append(f"fvcore: {extras} of its count are norms and pooling, which multiply no matrices")
        if skipped:
            reasons.append("fvcore: skips " + ", ".join(f"{name} ({n}x)" for name, n in sorted(skipped.items())))
    ran = [value for value in counts.values() if value is not None]
    spread = (max(ran) - min(ran)) / max(ran) if max(ran) else 0.0
    return MacCount(dims=lengths, macs=flop_counter, by_counter=counts, disagreement=spread, explanation=reasons)
