"""The supervisor reads the sensors beside the window: on a recorded tree that changes while the run goes on."""

from __future__ import annotations

import pytest


@pytest.fixture
def board(tmp_path):
    """A tree with one thermal zone."""
    zone = tmp_path / "root/sys/class/thermal/thermal_zone0"
    zone.mkdir(parents=True)
    (zone / "type").write_text("cpu-thermal\n")
    (zone / "temp").write_text("45000\n")
    return tmp_path / "root"


def temperatures(part) -> list[float]:
    return [value for point in part.series for name, value in point.values.items() if "temperature" in name]


def test_a_board_that_heats_up_in_the_middle_shows_where(agent, parts, board) -> None:
    job = {"sensors": ["thermal", "no-such-sensor"], "system_root": str(board), "sample_period_s": 0.1}
    agent.start(parts.null(duration_s=3.0), **job)
    agent.wait_for(lambda e: e["event"] == "progress" and e.get("phase") == "steady" and (e.get("done") or 0) > 0)
    (board / "sys/class/thermal/thermal_zone0/temp").write_text("85000\n")
    agent.follow()
    part = agent.result().parts[0]
    seen = temperatures(part)
    assert seen[0] == 45.0
    assert seen[-1] == 85.0
    change = next(point.t for point in part.series if 85.0 in point.values.values())
    assert part.window_start < change < part.window_end


def test_a_sensor_that_goes_away_does_not_end_the_run(agent, parts, board) -> None:
    agent.start(parts.null(duration_s=1.0), sensors=["thermal"], system_root=str(board), sample_period_s=0.1)
    agent.wait_for_phase("steady")
    (board / "sys/class/thermal/thermal_zone0/temp").write_text("garbage\n")
    agent.follow()
    assert agent.result().state == "done"


def test_the_commands_probe_and_check_answer(agent, board) -> None:
    from argus_edge.schema.agent import DeviceFacts, Finding

    assert DeviceFacts.model_validate(agent.call("probe")).python
    assert DeviceFacts.model_validate(agent.call("probe", "--system-root", str(board))).arch
    findings = agent.call("check")["findings"]
    assert [Finding.model_validate(finding) for finding in findings]
