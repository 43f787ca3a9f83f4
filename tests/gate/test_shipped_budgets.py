"""The starters that are shipped hold together: budgets are read and name known boards, weights sum to 1."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest

from argus_edge.devices import profiles
from argus_edge.gate.budget import read_budget
from argus_edge.score.files import read_weights

FOLDER = Path(str(resources.files("argus_edge.profiles")))
BUDGETS = sorted((FOLDER / "budgets").glob("*.yaml"))
WEIGHTS = sorted((FOLDER / "weights").glob("*.yaml"))


@pytest.mark.parametrize("path", BUDGETS, ids=lambda path: path.stem)
def test_a_shipped_budget_is_for_a_known_board(path: Path) -> None:
    budget = read_budget(path)
    assert budget.device in profiles.names()
    assert budget.description


@pytest.mark.parametrize("path", WEIGHTS, ids=lambda path: path.stem)
def test_shipped_weights_sum_to_one(path: Path) -> None:
    assert sum(read_weights(path).values()) == pytest.approx(1)


def test_each_board_has_a_starter() -> None:
    covered = {read_budget(path).device for path in BUDGETS}
    assert {"pi5", "cm5", "jetson-nano", "jetson-orin-nano", "a100"} <= covered
