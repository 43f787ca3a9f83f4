"""Per-item records of a cell: one Parquet file, one row group a condition, the same bytes for the same records."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from argus_edge.artifacts import atomic_open, sha256_file
from argus_edge.errors import MissingDependencyError
from argus_edge.evaluate.conditions import Condition

__all__ = ["write_records"]


def write_records(path: Path, parts: Iterable[tuple[Condition, dict[str, Any]]]) -> str:
    """Write the records of every condition and return the file's hash.

    Parameters
    ----------
    parts
        (condition, column name -> values), in order; the condition's three fields become columns, too.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingDependencyError("pyarrow", "eval", needed_for="argus-edge eval") from error
    with atomic_open(path) as file:
        writer = None
        for condition, columns in parts:
            rows = len(next(iter(columns.values())))
            table = pa.table(
                {
                    "modality": pa.array([condition.modality] * rows, pa.string()),
                    "perturbation": pa.array([condition.perturbation] * rows, pa.string()),
                    "severity": pa.array([condition.severity] * rows, pa.int8()),
                    **{name: pa.array(values) for name, values in columns.items()},
                }
            )
            writer = writer or pq.ParquetWriter(file, table.schema, compression="zstd")
            writer.write_table(table)
        if writer is not None:
            writer.close()
    return sha256_file(path)
