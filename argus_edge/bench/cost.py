"""What one call of a component costs: multiply-accumulates, and bytes read and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from argus_edge.bench.context import Cost
from argus_edge.bench.model_types import BenchComponent


def component_cost(
    component: BenchComponent, shapes: Mapping[str, Sequence[int]], dims: Mapping[str, int] | None = None
) -> Cost:
    """Return what one call costs: the MACs by the bundle's count at these lengths, else by a walk over the ONNX graph.

    Parameters
    ----------
    component
        What is called.
    shapes
        Input name -> lengths.
    dims
        Of a bundle: the lengths of its free dimensions.
    """
    bundled = component.bundled
    counted = next((float(count.macs) for count in bundled.macs if count.dims == dims), None) if bundled else None
    if component.format != "onnx" or component.model is None:
        return Cost(counted, float(bundled.weight_bytes) if bundled else None)
    from argus_edge.onnx_macs import file_cost

    # Where the bundle has the count, the walk is for the bytes alone.
    cost = file_cost(str(component.model.path), shapes, fold=counted is None)
    traffic = float(cost.weight_bytes + cost.io_bytes)
    if counted is not None:
        return Cost(counted, traffic)
    notes = tuple(
        f"{component.name}: the MACs of {nodes} x {op} could not be counted" for op, nodes in cost.uncounted.items()
    )
    return Cost(None if cost.uncounted else float(cost.macs), traffic, notes)
