"""The memory figure that stands for a run, and its kind."""

from __future__ import annotations

from argus_edge.schema.agent import MemoryFigures
from argus_edge.schema.bench import MemoryHeadline


def headline(memory: MemoryFigures, *, unified: bool, gpu: bool, served: bool = False) -> MemoryHeadline:
    """Return the figure that enters E and budgets.

    Parameters
    ----------
    memory
        Of the worker.
    unified
        CPU and GPU share the memory (a Jetson): the system's delta, since a process's own RSS misses the GPU's part.
    gpu
        The model ran on a GPU with memory of its own: that memory's peak.
    served
        A server was driven: its processes' memory, or nothing; the worker is but its client.

    Returns
    -------
    MemoryHeadline
        Else the larger of the two peaks of the resident set, over load and over the timed window.
    """
    if served:
        known = memory.server_tree is not None
        return MemoryHeadline(bytes=memory.server_tree, memory_kind="server-tree" if known else None)
    if unified and memory.system_delta is not None:
        return MemoryHeadline(bytes=memory.system_delta, memory_kind="system-delta")
    if gpu and memory.device_peak is not None:
        return MemoryHeadline(bytes=memory.device_peak, memory_kind="device-peak")
    peaks = [peak for peak in (memory.peak_rss_load, memory.peak_rss_steady) if peak is not None]
    if not peaks:
        return MemoryHeadline(bytes=None)
    return MemoryHeadline(bytes=max(peaks), memory_kind="peak-rss")
