"""The pass for energy: power that only a disturbing tool tells, from a Raspberry Pi 5's recorded answer."""

import os
import signal
import stat

import pytest

from argus_edge.bench.drive import bench, resume
from argus_edge.bench.energy_pass import energy_job
from argus_edge.bench.options import Options, scenario_of
from argus_edge.bench.plan import Placed, make_job
from argus_edge.bench.prepare import prepare
from argus_edge.bench.request import Request
from argus_edge.devices.agent_client import AgentClient
from argus_edge.errors import InterruptedRunError
from argus_edge.schema.agent import SensorFact, Warmup

ADC = """#!/bin/sh
[ "$1" = pmic_read_adc ] && echo ' VDD_CORE_A current(7)=2.0A' && echo ' VDD_CORE_V volt(15)=1.5V'
exit 0
"""


@pytest.fixture
def pi(tmp_path, monkeypatch):
    """A root in which vcgencmd reports 3 W on one rail."""
    tool = tmp_path / "root" / "usr" / "bin" / "vcgencmd"
    tool.parent.mkdir(parents=True)
    tool.write_text(ADC)
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    probe = AgentClient.probe
    fact = SensorFact(name="pmic", available=True)
    monkeypatch.setattr(
        AgentClient, "probe", lambda client, **more: probe(client, **more).model_copy(update={"sensors": [fact]})
    )
    return str(tmp_path / "root")


def null(**options):
    scenario = scenario_of("single-stream", duration=1.5)
    return prepare(
        Request(None, Options(runtime="null", scenario=scenario, warmup=Warmup(fixed_calls=2), energy=True, **options))
    )


def test_its_energy_counts_and_its_latencies_do_not(entry, store, pi):
    outcome = bench(null(system_root=pi, sample_period_s=0.2), entry, store)
    (measurement,) = outcome.report.measurements
    assert measurement.energy.mean_w == pytest.approx(3.0)
    assert "pass of its own" in measurement.energy.source
    assert "PMIC" in measurement.energy.coverage
    assert all("power_w" not in point.values for point in measurement.series), "the timed run was not disturbed"
    assert store.report(outcome.report.run) == outcome.report
    assert [record.id for record in store.list()] == [outcome.report.run]


def test_a_device_without_such_a_sensor_is_told(entry, store):
    outcome = bench(null(), entry, store)
    assert outcome.report.measurements[0].energy is None
    assert any("no pass for energy" in note for note in outcome.report.notes)


def test_a_run_that_is_come_back_to_has_its_energy_too(entry, store, pi, hook, monkeypatch):
    listener = hook(lambda event: event.event == "started", lambda: os.kill(os.getpid(), signal.SIGINT))
    monkeypatch.setattr(AgentClient, "stop", lambda client, run: signal.raise_signal(signal.SIGINT))
    with pytest.raises(InterruptedRunError):
        bench(null(system_root=pi, sample_period_s=0.2), entry, store, listener=listener)
    (record,) = store.list()
    assert record.state == "detached"
    outcome = resume(record, store)
    assert outcome.report.measurements[0].energy.mean_w == pytest.approx(3.0)
    assert store.report(record.id) == outcome.report


def test_the_job_of_the_pass():
    prepared = null()
    placed = {"null": Placed(None)}
    job = make_job(
        "x" * 80,
        prepared.model,
        Options(runs=3, profile_ops=True),
        placed,
        runtime="null",
        provider="cpu",
        sensors=["thermal"],
    )
    again = energy_job(job, ["pmic"])
    assert len(again.parts) == 1
    assert again.sensors == ["pmic", "thermal"]
    assert again.run != job.run
    assert len(again.run) <= 80
