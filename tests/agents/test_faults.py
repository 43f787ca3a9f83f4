"""Faults that really happen: each ends in an account that names it, the samples kept, and nothing left running."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from argus_edge.agents import samples, system, wire
from argus_edge.agents.worker_process import OutputSink, WorkerProcess
from argus_edge.schema.agent import RunResult


def steady(event) -> bool:
    return event["event"] == "progress" and event.get("phase") == "steady" and (event.get("done") or 0) > 0


def worker_of(supervisor: int) -> int:
    """The pid of a supervisor's worker."""
    for name in os.listdir("/proc"):
        fields = system.stat_fields(name) if name.isdigit() else None
        if fields and int(fields[1]) == supervisor:
            return int(name)
    raise AssertionError("no worker")


def wait_until(condition, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def gone(pid: int) -> bool:
    fields = system.stat_fields(pid)
    return fields is None or fields[0] in "ZX"


# ---------------------------------------------------------------- the runtime


@pytest.mark.parametrize(
    ("fault", "kind", "phase"),
    [
        ("segfault-import", "crashed", "import"),
        ("segfault-load", "crashed", "load"),
        ("segfault-run", "crashed", "steady"),
        ("abort-load", "crashed", "load"),
        ("exit-run", "crashed", "steady"),
        ("missing-import", "runtime-missing", "import"),
        ("raise-import", "runtime-error", "import"),
        ("raise-load", "model-rejected", "load"),
        ("raise-run", "runtime-error", "steady"),
        ("memoryerror-load", "out-of-memory", "load"),
        ("enospc-load", "no-space", "load"),
    ],
)
def test_a_runtime_that_fails_is_named_and_the_next_part_still_runs(
    broken, parts, tmp_path, fault, kind, phase
) -> None:
    model = tmp_path / "m.onnx"
    model.touch()
    broken.environment["FAKE_FAULT"] = fault
    part = parts.onnx(model, scenario={"duration_s": 1.0, "min_calls": 64})
    broken.start(part, parts.null())
    events = broken.follow()
    result = broken.result()

    assert result.state == "failed"
    assert result.error.kind == kind
    failed, following = result.parts
    assert (failed.state, following.state) == ("failed", "done")
    assert failed.error == result.error
    assert [e["phase"] for e in events if e["event"] == "phase" and e["part"] == 0][-1] == phase
    if kind == "crashed" and "exit" not in fault:
        assert failed.error.detail["signal"] == (signal.SIGSEGV if "segfault" in fault else signal.SIGABRT)
    if phase == "steady":
        assert failed.samples_count > 0
        assert failed.stopped_by == "fault"
        assert broken.files()[wire.SAMPLES_FILE % 0].stat().st_size > wire.SAMPLE_HEADER_BYTES


def test_a_runtime_that_hangs_is_ended_by_the_wall_limit(broken, parts, tmp_path) -> None:
    model = tmp_path / "m.onnx"
    model.touch()
    broken.environment["FAKE_FAULT"] = "hang-run"
    result = broken.run(parts.onnx(model, scenario={"duration_s": 1.0}), parts.null(), wall_limit_s=4.0)
    assert result.state == "timeout"
    assert result.error.kind == "timeout"
    assert "steady" in result.error.message
    assert [part.state for part in result.parts] == ["timeout"]
    assert result.parts[0].samples_count > 0


def test_a_runtime_that_hangs_can_be_stopped(broken, parts, tmp_path) -> None:
    model = tmp_path / "m.onnx"
    model.touch()
    broken.environment["FAKE_FAULT"] = "hang-load"
    pid = broken.start(parts.onnx(model))["pid"]
    broken.wait_for_phase("load")
    worker = worker_of(pid)
    status = broken.stop()
    assert (status.state, status.error.kind) == ("stopped", "stopped")
    assert gone(pid)
    assert gone(worker)


def test_a_runtime_that_prints_100_megabytes_costs_neither_memory_nor_the_run(broken, parts, tmp_path) -> None:
    model = tmp_path / "m.onnx"
    model.touch()
    broken.environment["FAKE_FAULT"] = "print-load"
    pid = broken.start(parts.onnx(model))["pid"]
    peak = 0
    while broken.status().state == "running":
        peak = max(peak, system.status_bytes(pid).get("VmHWM", 0))
    assert broken.result().state == "done"
    assert 0 < peak < 32 << 20
    output = broken.files()[wire.OUTPUT_FILE % 0].read_bytes()
    assert len(output) < 100 << 10
    assert output.startswith(b"noise")
    assert b"bytes left out" in output
    assert output.endswith(b"last words\n")


def test_what_a_runtime_prints_is_never_taken_for_the_protocol(broken, parts, tmp_path) -> None:
    model = tmp_path / "m.onnx"
    model.touch()
    broken.environment["FAKE_FAULT"] = "speak-load"
    assert broken.run(parts.onnx(model)).state == "done"
    output = broken.files()[wire.OUTPUT_FILE % 0].read_bytes()
    assert b"forged" in output
    assert b"from Python" in output
    assert b"to stderr" in output


def test_a_runtime_that_closes_its_output_still_runs(broken, parts, tmp_path) -> None:
    model = tmp_path / "m.onnx"
    model.touch()
    broken.environment["FAKE_FAULT"] = "close-load"
    assert broken.run(parts.onnx(model)).state == "done"


def test_what_a_crashed_runtime_started_is_ended_with_it(broken, parts, tmp_path) -> None:
    model = tmp_path / "m.onnx"
    model.touch()
    broken.environment.update(FAKE_FAULT="child-load", FAKE_CHILD=str(tmp_path / "child"))
    assert broken.run(parts.onnx(model)).error.kind == "crashed"
    child = int((tmp_path / "child").read_text())
    wait_until(lambda: gone(child))


def test_a_worker_that_passes_its_memory_limit_is_ended(broken, parts, tmp_path) -> None:
    model = tmp_path / "m.onnx"
    model.touch()
    broken.environment["FAKE_FAULT"] = "memory-run"
    result = broken.run(
        parts.onnx(model, scenario={"duration_s": 1.0}), memory_limit_bytes=256 << 20, sample_period_s=0.1
    )
    assert result.error.kind == "out-of-memory"
    assert result.error.detail["limit"] == 256 << 20
    assert result.parts[0].samples_count > 0


def test_a_mapped_model_larger_than_the_memory_limit_runs(broken, parts, tmp_path) -> None:
    model = tmp_path / "m.onnx"
    with open(model, "wb") as file:
        file.truncate(400 << 20)
    broken.environment.update(FAKE_FAULT="mapped-load", FAKE_MAPPED=str(model))
    result = broken.run(
        parts.onnx(model, scenario={"duration_s": 1.0}), memory_limit_bytes=256 << 20, sample_period_s=0.1
    )
    assert result.state == "done"
    assert max(point.values["worker_rss_bytes"] for point in result.parts[0].series) > 400 << 20


@pytest.fixture
def little_memory():
    """A memory cgroup of 160 MB, version 1 or 2."""
    root = Path("/sys/fs/cgroup")
    parent, limit = (root, "memory.max") if (root / "cgroup.controllers").exists() else (root / "memory", None)
    group = parent / f"argus-edge-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / (limit or "memory.limit_in_bytes")).write_text(str(160 << 20))
    except OSError as error:
        pytest.skip(f"cannot make a memory cgroup here: {error}")
    yield group
    for _ in range(100):
        try:
            group.rmdir()
            break
        except OSError:
            time.sleep(0.05)


def test_a_worker_that_the_kernel_kills_for_memory_is_named_so(broken, parts, tmp_path, little_memory) -> None:
    model = tmp_path / "m.onnx"
    model.touch()
    broken.environment["FAKE_FAULT"] = "memory-run"
    plain = broken.argv

    def within_the_group(*arguments):
        inner = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
        return ["/bin/sh", "-c", inner, str(little_memory), *plain(*arguments)]

    broken.argv = within_the_group
    broken.start(parts.onnx(model, scenario={"duration_s": 5.0, "min_calls": 64}), parts.null())
    broken.argv = plain
    broken.follow()
    result = broken.result()
    assert result.error.kind == "out-of-memory", result.error
    assert "kernel" in result.error.message
    assert result.parts[0].samples_count > 0
    # The supervisor was spared and went on.
    assert result.parts[1].state == "done"


def test_a_kill_for_memory_is_found_in_the_kernels_log(tmp_path) -> None:
    log = tmp_path / "kmsg"
    log.write_text(
        "4,811,91234567,-;Out of memory: Kill process 4711 (python3) score 930 or sacrifice child\n"
        "3,812,91234590,-;Killed process 4711 (python3) total-vm:3904176kB, anon-rss:3398704kB, file-rss:0kB\n"
    )
    assert system.killed_for_memory(4711, str(log))
    assert not system.killed_for_memory(471, str(log))
    assert not system.killed_for_memory(4711, str(tmp_path / "none"))


def test_a_kernel_that_counts_no_kills_is_asked_for_its_log(monkeypatch) -> None:
    worker = WorkerProcess.__new__(WorkerProcess)
    worker.pid, worker.status, worker._sink = 4711, int(signal.SIGKILL), OutputSink(os.devnull)
    monkeypatch.setattr(system, "killed_for_memory", lambda pid: pid == 4711)
    assert worker.fault(0)["kind"] == "out-of-memory"
    monkeypatch.setattr(system, "killed_for_memory", lambda pid: False)
    assert worker.fault(0)["kind"] == "crashed"


# ---------------------------------------------------------------- SIGKILL


def test_a_killed_worker_leaves_its_samples(agent, parts) -> None:
    pid = agent.start(parts.null(duration_s=60), parts.null(), sample_period_s=0.2)["pid"]
    seen = agent.wait_for(steady)
    os.kill(worker_of(pid), signal.SIGKILL)
    agent.follow()
    result = agent.result()
    first, second = result.parts
    assert (first.state, first.error.kind, first.error.detail["signal"]) == ("failed", "crashed", signal.SIGKILL)
    assert first.samples_count >= seen["done"]
    assert first.stopped_by == "fault"
    assert second.state == "done"


def test_samples_whose_shared_memory_was_cleared_are_kept(agent, parts) -> None:
    agent.start(parts.null(duration_s=3), sample_period_s=0.2)
    agent.wait_for(steady)
    samples.discard(agent.home / wire.RUNS_FOLDER / "run-1", 0)  # as logind does at logout (RemoveIPC)
    agent.follow()
    result = agent.result()
    assert result.state == "done"
    assert result.parts[0].samples_count > 0


def test_a_killed_supervisor_is_found_out_and_leaves_its_samples(agent, parts) -> None:
    pid = agent.start(parts.null(duration_s=60), sample_period_s=0.2)["pid"]
    seen = agent.wait_for(steady)
    worker = worker_of(pid)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: gone(worker))

    assert agent.follow()[-1]["error"]["kind"] == "supervisor-died"
    status = agent.status()
    assert (status.state, status.error.kind) == ("lost", "supervisor-died")
    result = agent.result()
    assert (result.state, result.error.kind) == ("lost", "supervisor-died")
    part = result.parts[0]
    assert part.state == "lost"
    assert part.samples_count >= seen["done"]
    assert part.window_start
    assert part.window_wall
    assert part.series
    # The device is free again.
    assert agent.run(parts.null(), run="run-2").state == "done"


def test_a_supervisor_that_does_not_answer_is_stopped_within_five_seconds(agent, parts) -> None:
    pid = agent.start(parts.null(duration_s=60), sample_period_s=0.2)["pid"]
    agent.wait_for(steady)
    worker = worker_of(pid)
    os.kill(pid, signal.SIGSTOP)
    begin = time.monotonic()
    status = agent.stop()
    assert time.monotonic() - begin < 10  # 5 s, and room for a loaded machine
    assert (status.state, status.error.kind) == ("stopped", "stopped")
    assert agent.result().parts[0].samples_count > 0
    wait_until(lambda: gone(worker))


def test_a_reboot_is_found_out_by_the_boot_id(agent, parts) -> None:
    pid = agent.start(parts.null(duration_s=60))["pid"]
    agent.wait_for_phase("steady")
    os.kill(pid, signal.SIGKILL)
    journal = agent.home / "runs/run-1" / wire.JOURNAL_FILE
    journal.write_text(journal.read_text().replace(system.boot_id(), "00000000-0000-0000-0000-000000000000"))
    assert agent.status().error.kind == "rebooted"
    assert agent.follow()[-1]["error"]["kind"] == "rebooted"
    result = agent.result()
    assert (result.state, result.error.kind, result.parts[0].state) == ("lost", "rebooted", "lost")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_a_kill_at_any_moment_ends_in_a_true_account(agent, parts, seed) -> None:
    chance = random.Random(seed)
    pid = agent.start(parts.null(duration_s=0.5), parts.null(duration_s=0.5), sample_period_s=0.1)["pid"]
    time.sleep(chance.uniform(0, 3.0))  # the moment is what is drawn
    victim = pid
    if chance.random() < 0.5:
        try:
            victim = worker_of(pid)
        except AssertionError:
            victim = pid
    try:
        os.kill(victim, signal.SIGKILL)
    except ProcessLookupError:
        victim = None
    agent.follow()
    status = agent.status()
    result = agent.result()
    assert status.state == result.state
    assert status.state in ("done", "lost", "failed")
    if status.state == "lost":
        assert victim == pid
        assert result.error.kind == "supervisor-died"
    elif status.state == "failed":
        assert result.error.kind == "crashed"
        assert result.error.detail["signal"] == signal.SIGKILL
    assert result.parts or status.state == "lost"
    for part in result.parts:
        if part.samples_file:
            size = agent.files()[part.samples_file].stat().st_size
            assert size == wire.SAMPLE_HEADER_BYTES + 16 * part.samples_count
    assert agent.run(parts.null(), run="run-2").state == "done"


# ---------------------------------------------------------------- the lock


def test_a_device_in_use_says_who_holds_it_since_when(agent, parts) -> None:
    agent.start(parts.null(duration_s=60), holder="ann@lab")
    with pytest.raises(Exception, match="in use by ann@lab") as caught:
        agent.start(parts.null(), run="run-2")
    assert caught.value.kind == "busy"
    assert caught.value.detail["run"] == "run-1"
    assert abs(caught.value.detail["since"] - time.time()) < 120
    # By the uptime, whatever is done to the clock.
    assert 0 <= caught.value.detail["held_s"] < 120
    assert agent.call("holder")["holder"]["run"] == "run-1"
    agent.stop()
    assert agent.call("holder")["holder"] is None
    assert agent.run(parts.null(), run="run-2").state == "done"


def test_of_many_starts_at_once_one_runs(agent, parts) -> None:
    agent.home.mkdir()
    processes = []
    for number in range(6):
        job = agent.home / f"{number}.json"
        document = {"wire": 1, "run": f"run-{number}", "parts": [parts.null(duration_s=30)]}
        job.write_text(json.dumps(document))
        processes.append(agent.spawn("start", str(job)))
    answers = [wire.parse(process.communicate(timeout=60)[0]) for process in processes]
    started = [answer for answer in answers if "run" in answer]
    assert len(started) == 1
    assert all(answer["error"]["kind"] == "busy" for answer in answers if answer not in started)
    assert [run["run"] for run in agent.call("list")["runs"]] == [started[0]["run"]]
    agent.stop(started[0]["run"])


def test_a_lock_that_a_dead_run_left_to_a_child_is_taken_over(agent, parts) -> None:
    agent.run(parts.null())
    # Another process has the lock's file open and locked; the holder that is written in it is dead.
    holder = subprocess.Popen(
        ["flock", str(agent.home / wire.LOCK_FILE), "sleep", "600"], stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        wait_until(lambda: locked(agent.home / wire.LOCK_FILE))
        assert agent.call("holder")["holder"] is None
        assert agent.run(parts.null(), run="run-2").state == "done"
    finally:
        os.killpg(holder.pid, signal.SIGKILL)
        holder.wait()


def locked(path: Path) -> bool:
    import fcntl

    with open(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


# ---------------------------------------------------------------- no room


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"cannot mount a small file system here: {made.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> None:
    with open(folder / "ballast", "ab", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            return


def test_a_full_disk_refuses_a_run_and_keeps_no_torn_file(agent, parts, small_disk) -> None:
    agent.home = small_disk / "home"
    agent.home.mkdir()
    job = agent.home.parent / "job.json"
    job.write_text(json.dumps({"wire": 1, "run": "run-1", "parts": [parts.null()]}))
    fill(small_disk)
    with pytest.raises(Exception, match="no-space"):
        agent.call("start", str(job))
    (small_disk / "ballast").unlink()
    assert agent.call("list") == {"runs": []}
    assert agent.run(parts.null()).state == "done"


def test_samples_that_found_no_room_are_collected_from_where_they_are(agent, parts, small_disk) -> None:
    agent.home = small_disk / "home"
    # 2 x 8 bytes a call: more than the disk has left when the run ends.
    agent.start({**parts.null(duration_s=1.0), "options": {}})
    agent.wait_for_phase("steady")
    fill(small_disk)
    agent.follow()
    files = agent.files()
    result = agent.result()
    assert str(files[wire.SAMPLES_FILE % 0]).startswith("/dev/shm/")
    assert result.parts[0].samples_count > 10_000
    assert any("disk was full" in note for note in result.parts[0].notes) or result.error.kind == "no-space"


def test_a_disk_that_fills_during_the_run_ends_it_with_all_samples(agent, parts, small_disk) -> None:
    agent.home = small_disk / "home"
    agent.start(parts.null(duration_s=60, work_s=0.001), sample_period_s=0.1)
    seen = agent.wait_for(steady)
    fill(small_disk)
    agent.follow()
    result = agent.result()
    assert result.state == "failed"
    assert result.error.kind == "no-space"
    assert result.parts[0].samples_count >= seen["done"]
    RunResult.model_validate_json((agent.home / "runs/run-1" / wire.RESULT_FILE).read_text())
    journal = (agent.home / "runs/run-1" / wire.JOURNAL_FILE).read_bytes()
    assert all(json.loads(line) for line in journal.splitlines())
    assert not list((agent.home / "runs/run-1").glob("*.part"))


# ---------------------------------------------------------------- another agent


def test_a_run_goes_on_with_the_agent_that_began_it(agent, archive, parts, tmp_path) -> None:
    """What is put in the agent's place meanwhile, torn or newer, is not mixed in: not in the next worker either."""
    place = tmp_path / "agent.pyz"
    place.write_bytes(archive.read_bytes())
    agent.archive = place
    agent.start(parts.null(duration_s=0.5), parts.null())
    agent.wait_for_phase("steady")
    place.write_bytes(archive.read_bytes()[:5000])
    agent.archive = archive
    agent.follow()
    assert [part.state for part in agent.result().parts] == ["done", "done"]
