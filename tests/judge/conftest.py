"""Fixtures of the judge's tests, and the published data where it is at hand."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("sklearn", reason="the judge's methods need the extra `judge`")
pytest.importorskip("scipy", reason="the judge's methods need the extra `judge`")
# The helper module beside this file (tests are imported without a package).
sys.path.insert(0, str(Path(__file__).parent))

from judge_simulation import write_scores


@pytest.fixture
def scores(tmp_path):
    return write_scores(tmp_path / "scores.csv")


@pytest.fixture
def published(shared_data):
    """Return a function that finds a file of the results published with arXiv 2604.25235, or skips."""

    def find(name: str) -> Path:
        path = shared_data / "judge" / name
        if not path.is_file():
            pytest.skip(f"the published judge scores are not here: {path}")
        return path

    return find
