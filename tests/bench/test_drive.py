"""A whole bench on this machine: what is in the report, and what happens when something goes wrong on the way."""

import os
import signal
import venv
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from argus_edge.bench import drive, elsewhere, placing
from argus_edge.bench.context import Context
from argus_edge.bench.drive import bench, resume
from argus_edge.bench.energy import read_meter
from argus_edge.bench.inputs import PreparedInputs
from argus_edge.bench.options import Options, scenario_of
from argus_edge.bench.percentiles import nearest_rank
from argus_edge.bench.prepare import prepare
from argus_edge.bench.request import Request
from argus_edge.bench.samples import decode
from argus_edge.devices.agent_client import AgentClient
from argus_edge.errors import DeviceBusyError, InputError, InterruptedRunError, MisfitError, RunFailedError
from argus_edge.schema.agent import Warmup


def steady(event):
    return event.event == "phase" and event.phase == "steady"


def request(model=None, runtime="auto", duration=0.3, warmup=2, **options):
    scenario = scenario_of(options.pop("scenario", "single-stream"), duration=duration, **options.pop("of", {}))
    return Request(
        model=model,
        options=Options(runtime=runtime, scenario=scenario, warmup=Warmup(fixed_calls=warmup), **options),
    )


def null(duration=0.3, **options):
    return prepare(request(runtime="null", duration=duration, **options))


def left_on(entry):
    """What runs have left on the device."""
    folder = Path(entry.home, "runs")
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def test_the_harness_itself(entry, store, hook):
    listener = hook()
    outcome = bench(null(), entry, store, listener=listener)
    assert outcome.error is None
    (measurement,) = outcome.report.measurements
    figures = measurement.figures
    latency = decode(measurement.latency)
    assert measurement.latency.count == figures.count > 1000
    # The report's samples are all there is to its figures.
    assert np.sort(latency)[nearest_rank(len(latency), 0.99) - 1] == pytest.approx(figures.p99.value, abs=1e-9)
    assert latency.max() == pytest.approx(figures.max_s, abs=1e-9)
    assert np.all(np.diff(decode(measurement.start)) >= 0)
    assert outcome.report.headline == "null"
    record = store.find(outcome.report.run)
    assert record.state == "done"
    assert store.report(record.id) == outcome.report
    assert left_on(entry) == []
    assert any("about" in text for text in listener.said), "a run says at the start how long it will take"
    assert any(f"--resume {record.id}" in text for text in listener.said)


def test_a_model(entry, store, squeezenet):
    prepared = prepare(request(squeezenet, threads=1, runs=2, profile_ops=True, labels={"rev": "7"}))
    report = bench(prepared, entry, store).report
    assert [m.repeat for m in report.measurements] == [0, 1]
    first = report.measurements[0]
    assert first.runtime == "onnxruntime"
    assert first.threads == 1
    assert first.load_s > 0
    assert first.memory_headline.memory_kind == "peak-rss"
    assert first.memory_headline.bytes > 20e6
    assert first.ops
    assert report.model.constant_weights
    assert report.model.macs == pytest.approx(0.349e9, rel=0.01)
    assert report.labels["rev"] == "7"
    assert report.setup.inputs == "generated (seed 1)"
    assert report.setup.shapes == {"data_0": [1, 3, 224, 224]}
    assert report.summary["p50"].n == 2
    assert report.summary["p50"].reason


def test_a_model_that_fills_the_devices_memory_is_ended(entry, store, squeezenet, monkeypatch):
    monkeypatch.setattr(drive, "memory_limit", lambda facts: 20 << 20)
    # Long enough to be looked at: memory is read with the sensors.
    outcome = bench(prepare(request(squeezenet, duration=3.0, sample_period_s=0.1)), entry, store)
    assert isinstance(outcome.error, RunFailedError)
    assert "Out of memory" in outcome.error.what
    monkeypatch.undo()
    report = bench(prepare(request(squeezenet)), entry, store).report
    job = Context.from_json(store.documents(report.run)[1]).job
    assert job.memory_limit_bytes > 100 << 20


def test_a_meters_log_that_broke_meanwhile_loses_nothing(entry, store, tmp_path):
    log = tmp_path / "my meter.csv"
    log.write_text("time,power_w\n1,x\n")
    with pytest.raises(InputError) as caught:
        bench(null(), entry, store, meter=lambda: read_meter(log))
    (record,) = store.list()
    assert f"--resume {record.id} --meter '{log}'" in caught.value.next_step
    log.write_text("time,power_w\n1,2\n")
    report = resume(record, store, meter=lambda: read_meter(log)).report
    assert "my meter.csv" in report.measurements[0].energy.source
    assert store.find(record.id).has_report


def test_what_is_on_the_device_is_not_sent_again(entry, store, squeezenet, hook):
    first, second = hook(), hook()
    prepared = prepare(request(squeezenet))
    bench(prepared, entry, store, listener=first)
    bench(prepared, entry, store, listener=second)
    assert any("sent" in text for text in first.said)
    assert not any("sent" in text for text in second.said)


def unknown_operator(tmp_path):
    graph = helper.make_graph(
        [helper.make_node("NoSuchOperator", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
    )
    path = tmp_path / "odd.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return str(path)


def test_a_model_that_the_runtime_rejects(entry, store, tmp_path):
    outcome = bench(prepare(request(unknown_operator(tmp_path))), entry, store)
    assert isinstance(outcome.error, MisfitError)
    assert outcome.error.exit_code == 4
    assert "NoSuchOperator" in outcome.error.what
    assert outcome.report.validity.valid is False
    assert outcome.report.validity.causes[0].code == "incomplete"
    assert store.find(outcome.report.run).state == "failed"
    assert left_on(entry) == []


def test_a_runtime_that_crashes_in_the_middle(entry, store, hook, processes):
    def crash():
        workers = [process for process in processes() if "worker" in " ".join(process.cmdline())]
        for process in workers:
            process.send_signal(signal.SIGSEGV)
        assert workers

    listener = hook(lambda event: event.event == "progress" and event.done, crash)
    # Paced: in a closed loop a fast machine has all the calls that a run keeps before the first progress comes.
    outcome = bench(null(duration=60, scenario="paced", of={"fps": 100.0}), entry, store, listener=listener)
    assert isinstance(outcome.error, RunFailedError)
    assert outcome.error.exit_code == 5
    assert "signal 11" in outcome.error.what
    assert outcome.error.next_step
    # What was measured until then is kept, and is not valid.
    assert outcome.report.measurements[0].figures.count > 0
    assert outcome.report.validity.valid is False
    assert processes() == []
    assert left_on(entry) == []


@pytest.mark.parametrize(
    "moment",
    [
        lambda event: event.event == "started",
        lambda event: event.event == "phase" and event.phase == "import",
        steady,
        lambda event: event.event == "sensor",
        lambda event: event.event == "part-done",
    ],
    ids=["started", "import", "steady", "sensor", "done"],
)
def test_ctrl_c_stops_the_run_on_the_device(entry, store, hook, processes, moment):
    listener = hook(moment, lambda: os.kill(os.getpid(), signal.SIGINT))
    prepared = null(duration=600 if moment is steady else 0.3)
    with pytest.raises(InterruptedRunError) as caught:
        bench(prepared, entry, store, listener=listener)
    assert caught.value.exit_code == 130
    assert "was stopped" in caught.value.what
    assert processes() == []
    assert left_on(entry) == []
    assert store.list()[0].state == "stopped"


def test_a_second_ctrl_c_leaves_at_once_and_says_how_to_come_back(entry, store, hook, monkeypatch):
    def interrupted(client, run):
        raise KeyboardInterrupt

    listener = hook(steady, lambda: os.kill(os.getpid(), signal.SIGINT))
    with monkeypatch.context() as patch:
        patch.setattr(AgentClient, "stop", interrupted)
        with pytest.raises(InterruptedRunError) as caught:
            bench(null(duration=1), entry, store, listener=listener)
    (record,) = store.list()
    assert record.state == "detached"
    assert f"argus-edge bench --resume {record.id}" in caught.value.next_step
    assert f"argus-edge runs stop {record.id}" in caught.value.next_step
    # And it can be come back to.
    outcome = resume(record, store)
    assert outcome.error is None
    assert outcome.report.run == record.id
    assert outcome.report.measurements[0].figures.count > 1000
    assert store.find(record.id).state == "done"
    assert left_on(entry) == []


class HostDied(BaseException):
    """Stands for a host that was killed: nothing of ours runs any more."""


def die():
    raise HostDied


def detach(entry, store, hook, duration):
    listener = hook(steady, die)
    with pytest.raises(HostDied):
        # Paced: back to back, the null runtime fills its samples in seconds, and the run would be over.
        bench(null(duration=duration, scenario="paced"), entry, store, listener=listener)
    return store.list()[0]


def test_a_killed_host_loses_nothing(entry, store, hook):
    record = detach(entry, store, hook, 0.5)
    stands = elsewhere.standings([record], store)[record.id]
    assert "--resume" in stands.text
    assert resume(record, store).report.measurements[0].state == "done"
    # Coming back to a finished run gives its report from the record.
    assert resume(store.find(record.id), store).report.run == record.id


def test_a_run_is_stopped_from_elsewhere(entry, store, hook, processes):
    record = detach(entry, store, hook, 600)
    assert elsewhere.standings([record], store)[record.id].state == "running"
    outcome = elsewhere.stop(record, store)
    assert outcome.report.measurements[0].state == "stopped"
    assert outcome.report.measurements[0].figures.count > 0
    assert outcome.report.validity.valid is False
    assert store.find(record.id).state == "stopped"
    assert processes() == []


def test_a_busy_device_says_who_holds_it(entry, store, hook):
    record = detach(entry, store, hook, 600)
    with pytest.raises(DeviceBusyError) as caught:
        bench(null(), entry, store)
    assert caught.value.exit_code == 3
    assert "holds it since" in caught.value.what
    assert caught.value.next_step
    elsewhere.stop(record, store)


def test_a_run_that_the_device_no_longer_knows(entry, store, hook):
    record = detach(entry, store, hook, 600)
    elsewhere.stop(record, store)
    store.set_state(record.id, "running")
    assert elsewhere.standings([store.find(record.id)], store)[record.id].state == "gone"
    with pytest.raises(RunFailedError, match="no such run"):
        elsewhere.stop(store.find(record.id), store)
    assert store.find(record.id).state == "lost"


def test_a_device_without_the_runtime_is_told_before_anything_is_sent(entry, store, squeezenet, tmp_path):
    venv.create(tmp_path / "bare", with_pip=False)
    bare = entry.model_copy(update={"python": str(tmp_path / "bare" / "bin" / "python")})
    with pytest.raises(MisfitError) as caught:
        bench(prepare(request(squeezenet)), bare, store)
    assert caught.value.exit_code == 4
    assert "onnxruntime" in caught.value.what
    assert "pip install" in caught.value.next_step
    assert store.list() == []


def test_a_device_without_python(entry, store):
    gone = entry.model_copy(update={"python": "/nowhere/python3"})
    with pytest.raises(MisfitError, match="no Python"):
        bench(null(), gone, store)


def test_a_result_that_is_no_result(entry, store, monkeypatch):
    fetch = AgentClient.fetch

    def tampered(client, run, folder, **more):
        files = fetch(client, run, folder, **more)
        files["result.json"].write_text('{"wire": 1, "run": "x", "state": "\\u001b[2Jdone"}')
        return files

    monkeypatch.setattr(AgentClient, "fetch", tampered)
    with pytest.raises(RunFailedError) as caught:
        bench(null(), entry, store)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("scenario", ["multi-stream", "offline", "paced", "soak"])
def test_every_scenario_reports(entry, store, scenario):
    report = bench(null(scenario=scenario, duration=0.3), entry, store).report
    assert report.setup.scenario.name == scenario
    assert report.measurements[0].figures.count > 0
    if scenario == "paced":
        assert report.measurements[0].figures.on_time_share is not None
    if scenario == "multi-stream":
        assert "8 samples" in report.measurements[0].unit_of_work


def test_the_server_scenario_holds_a_rate(entry, store):
    prepared = null(scenario="server", duration=0.6, of={"latency_bound_s": 0.5, "qps": 50.0})
    report = bench(prepared, entry, store).report
    assert report.measurements[0].figures.held_qps is not None


def test_inputs_are_sent_under_any_name(tmp_path):
    prepared = PreparedInputs({"file": np.zeros(2), "a/b": np.ones(1)}, "file")
    files = placing._input_files(tmp_path / "x", prepared)
    with np.load(files["inputs.npz"], allow_pickle=False) as archive:
        assert sorted(archive.files) == ["a/b", "file"]
    again = placing._input_files(tmp_path / "y", prepared)
    assert files["inputs.npz"].read_bytes() == again["inputs.npz"].read_bytes(), "equal inputs have one address"
