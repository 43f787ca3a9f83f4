"""Whether the host has the memory for an export, before an hour is spent to find out."""

from __future__ import annotations

import psutil
import torch

from argus_edge.errors import HostError, InputError
from argus_edge.exporters.plan import Family
from argus_edge.exporters.quiet import quiet
from argus_edge.exporters.source import ModelSource
from argus_edge.schema.bundle import Precision

# Below this a machine that runs Python at all has room enough, whatever the estimate says.
SMALL = 1 << 30


def parameter_count(source: ModelSource, family: Family) -> int:
    """Return the parameters of the whole model; nothing is allocated.

    Raises
    ------
    InputError
        The configuration does not describe a model.
    """
    import transformers

    model_class = getattr(transformers, family.architectures[source.architecture])
    try:
        with quiet(), torch.device("meta"):
            model = model_class(source.config)
    except Exception as error:
        raise InputError(
            f"The configuration does not hold together: {' '.join(str(error).split())[:300]}",
            where=source.source_id,
            next_step="correct the model's config.json",
        ) from error
    return sum(parameter.numel() for parameter in model.parameters())


def needed_bytes(parameters: int, precision: Precision, dtype: torch.dtype) -> int:
    """Return an estimate of the peak memory of an export in bytes.

    The model in its stored type, plus a copy in the file's: fp32 files are made from, and beside, fp32 models, and
    quantised from there; 4-bit weights are made matrix by matrix (0.66 bytes a value with scale and zero point).
    """
    stored = parameters * (2 if dtype is torch.bfloat16 else 4)
    return round(stored + 2 * 0.66 * parameters if precision == "int4" else stored + 2 * 4 * parameters)


def check_memory(source: ModelSource, family: Family, precision: Precision, dtype: torch.dtype) -> None:
    """Raise where the export would not fit into the memory that is available now.

    Raises
    ------
    HostError
        With the estimate and what is there.
    """
    if source.loaded is not None:
        return  # it fitted; what a copy of it needs is not known before its components are
    needed = needed_bytes(parameter_count(source, family), precision, dtype)
    available = psutil.virtual_memory().available
    if needed > max(available, SMALL):
        hint = "" if precision == "int4" else ", or choose --precision int4, which needs the least"
        raise HostError(
            f"Exporting {source.source_id} in {precision} needs about {needed / 1e9:.1f} GB of memory, "
            f"{available / 1e9:.1f} GB are available.",
            next_step=f"close other programs, use a larger machine{hint}",
        )
