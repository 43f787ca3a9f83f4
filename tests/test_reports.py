"""Reports found in files and folders: what is no report is passed over, what is damaged is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from argus_edge.artifacts import write_artifact
from argus_edge.errors import InputError
from argus_edge.reports import find_reports
from argus_edge.schema.bench import BenchReport
from tests.support.reports import bench


def test_other_documents_in_a_folder_are_passed_over(tmp_path: Path) -> None:
    write_artifact(bench("a").artifact, tmp_path / "a.json")
    (tmp_path / "steps.json").write_text("[1, 2]")
    (tmp_path / "notes.txt").write_text("{")
    assert [found.path.name for found in find_reports([tmp_path], (BenchReport,))] == ["a.json"]


@pytest.mark.parametrize("kept", [0, 1, 1000, -3])
def test_half_a_report_in_a_folder_is_not_passed_over(tmp_path: Path, kept: int) -> None:
    """Without the report that fails, a gate would pass."""
    for name in ("a", "b"):
        write_artifact(bench(name).artifact, tmp_path / f"{name}.json")
    half = tmp_path / "b.json"
    half.write_bytes(half.read_bytes()[:kept])
    with pytest.raises(InputError, match="Not a JSON document") as found:
        find_reports([tmp_path], (BenchReport,))
    assert found.value.where == str(half)
