"""A run from start to removal, as the host drives it."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
from pathlib import Path

import pytest

from argus_edge.agents import wire

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the agent runs on Linux")


def columns(path: Path) -> list[tuple[float, ...]]:
    data = path.read_bytes()
    count, capacity, width, *_ = (int(value) for value in struct.unpack_from(wire.SAMPLE_HEADER, data))
    assert count == capacity
    values = struct.unpack_from(f"<{capacity * width}d", data, wire.SAMPLE_HEADER_BYTES)
    assert len(data) == wire.SAMPLE_HEADER_BYTES + 8 * len(values)
    return [values[k * capacity : (k + 1) * capacity] for k in range(width)]


def test_a_run_leaves_a_result_and_every_sample(agent, parts) -> None:
    started = agent.start(parts.null(work_s=0.002), parts.null(work_s=0.001), holder="me@here")
    assert started["run"] == "run-1"
    events = agent.follow()
    result = agent.result()

    assert [part.state for part in result.parts] == ["done", "done"]
    assert result.state == "done"
    assert result.error is None
    assert result.agent_sha256 == hashlib.sha256(agent.archive.read_bytes()).hexdigest()
    assert result.started_wall < result.ended_wall
    assert events[0]["event"] == "started"
    assert events[-1]["event"] == "ended"
    assert [e["phase"] for e in events if e["event"] == "phase" and e["part"] == 0] == [
        phase for phase in wire.PHASES if phase not in ("preprocess", "parity", "ops")
    ]
    for index, part in enumerate(result.parts):
        starts, ends = columns(agent.files()[wire.SAMPLES_FILE % index])
        assert part.samples_count == len(starts) >= 10
        assert all(a < b for a, b in zip(starts, ends, strict=True))
        assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))
        assert part.window_start == starts[0]
        assert part.window_end == ends[-1]
        assert part.stopped_by == "duration"
        assert min(b - a for a, b in zip(starts, ends, strict=True)) >= (0.002, 0.001)[index]
        assert part.warmup_calls == 3


def test_the_files_that_collect_names_have_the_hashes_it_gives(agent, parts) -> None:
    agent.run(parts.null())
    for file in agent.call("collect", "run-1")["files"]:
        content = Path(file["path"]).read_bytes()
        assert len(content) == file["size"]
        assert hashlib.sha256(content).hexdigest() == file["sha256"]


def test_following_from_an_offset_gives_what_comes_after_it(agent, parts) -> None:
    agent.start(parts.null())
    whole = agent.follow()
    out, _ = agent.spawn("follow", "run-1", "0").communicate(timeout=60)
    offset = wire.parse(out.splitlines()[0])["offset"]
    assert offset == agent.status().journal_bytes
    assert agent.follow(offset=offset)[-1]["event"] == "ended"  # said again, so that nobody waits for ever
    first = len((agent.home / "runs/run-1" / wire.JOURNAL_FILE).read_bytes().split(b"\n")[0]) + 1
    assert agent.follow(offset=first) == whole[1:]


def test_a_follower_hears_a_heartbeat_while_nothing_happens(agent, parts) -> None:
    agent.start(parts.null(work_s=5.0), sample_period_s=60)
    process = agent.spawn("follow", "run-1", "0")
    for line in process.stdout:
        if wire.parse(line) == {}:
            break
    else:
        raise AssertionError("no heartbeat")
    process.kill()
    process.communicate()


def test_status_and_list_tell_what_a_run_is_doing(agent, parts) -> None:
    agent.start(parts.null(duration_s=30))
    agent.wait_for_phase("steady")
    status = agent.status()
    assert (status.state, status.phase, status.part, status.parts) == ("running", "steady", 0, 1)
    assert [run["run"] for run in agent.call("list")["runs"]] == ["run-1"]
    assert agent.stop().state == "stopped"


def test_progress_counts_the_calls_without_asking_the_worker(agent, parts) -> None:
    agent.start(parts.null(duration_s=1.5, work_s=0.01), sample_period_s=0.2)
    counts = [e["done"] for e in agent.follow() if e["event"] == "progress" and e.get("done") is not None]
    assert len(counts) >= 3
    assert counts == sorted(counts)
    assert 0 < counts[-1] <= agent.result().parts[0].samples_count


def test_a_window_is_watched_from_outside(agent, parts) -> None:
    part = agent.run(parts.null(duration_s=1.0), sample_period_s=0.2).parts[0]
    inside = [point for point in part.series if part.window_start <= point.t <= part.window_end]
    assert len(inside) >= 3
    assert all(point.values["worker_rss_bytes"] > 1 << 20 for point in inside)
    assert all(point.values["memory_available_bytes"] > 1 << 20 for point in inside)
    assert part.memory.system_delta is not None
    assert part.other_cpu_share is not None


def test_memory_is_told_by_kind_and_without_the_harness_own_samples(agent, parts) -> None:
    result = agent.run({**parts.null(duration_s=0.5), "options": {}})
    memory = result.parts[0].memory
    assert result.parts[0].samples_count * 16 > 1 << 20
    assert memory.baseline_rss <= memory.peak_rss_load
    assert memory.peak_rss_steady < memory.baseline_rss + (2 << 20)
    assert memory.pss
    assert memory.anonymous
    assert memory.file_backed
    assert memory.swap == 0


def test_nothing_is_readable_by_others(agent, parts) -> None:
    agent.run(parts.null())
    for path in [agent.home / "runs", *agent.home.joinpath("runs").rglob("*"), agent.home / wire.LOCK_FILE]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_a_removed_run_is_gone(agent, parts) -> None:
    agent.run(parts.null())
    assert agent.call("remove", "run-1") == {"removed": True}
    assert agent.call("list") == {"runs": []}
    with pytest.raises(Exception, match="no run run-1"):
        agent.status()


@pytest.mark.parametrize("command", ["collect", "remove"])
def test_a_running_run_is_neither_collected_nor_removed(agent, parts, command) -> None:
    agent.start(parts.null(duration_s=30))
    with pytest.raises(Exception, match="busy"):
        agent.call(command, "run-1")
    agent.stop()


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ([], "not a JSON object"),
        ({"wire": 99, "run": "r", "parts": [{}]}, "version 99"),
        ({"wire": 1, "run": "../r", "parts": [{}]}, "run id"),
        ({"wire": 1, "run": "r", "parts": []}, "no parts"),
        ({"wire": 1, "run": "r", "parts": [{"runtime": "perl"}]}, "runtime"),
        ({"wire": 1, "run": "r", "parts": [{"runtime": "null", "scenario": {"name": "x"}}]}, "scenario"),
        ({"wire": 1, "run": "r", "parts": [{"runtime": "null", "scenario": {}, "model": "/no/such"}]}, "/no/such"),
    ],
)
def test_a_job_that_is_not_understood_is_refused_and_leaves_nothing(agent, tmp_path, job, message) -> None:
    path = tmp_path / "job.json"
    path.write_text(json.dumps(job))
    with pytest.raises(Exception, match=message) as caught:
        agent.call("start", str(path))
    assert caught.value.kind == "bad-job"
    assert agent.call("list") == {"runs": []}


@pytest.mark.parametrize("arguments", [(), ("dance",), ("start",), ("status", "../../etc"), ("follow", "r")])
def test_a_wrong_command_line_is_a_framed_error(agent, arguments) -> None:
    with pytest.raises(Exception, match=r"usage|not a run's id"):
        agent.call(*arguments)


def test_a_run_id_is_used_once(agent, parts) -> None:
    agent.run(parts.null())
    with pytest.raises(Exception, match="has a run run-1 already"):
        agent.start(parts.null())


def test_the_device_is_free_when_a_run_says_that_it_has_ended(agent, parts) -> None:
    for number in range(5):
        agent.start(parts.null(duration_s=0.01, min_calls=1), run=f"run-{number}")
        agent.follow(f"run-{number}")


def test_the_supervisor_has_its_own_session_and_holds_nothing_of_the_caller(agent, parts) -> None:
    pid = agent.start(parts.null(duration_s=30))["pid"]
    assert os.getsid(pid) == pid
    targets = {os.readlink(f"/proc/{pid}/fd/{number}") for number in (0, 1)}
    assert targets == {"/dev/null"}
    agent.stop()


def test_a_home_that_is_relative_or_has_spaces_works(agent, parts, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    agent.home = Path("a b/home")
    assert agent.run(parts.null()).state == "done"
