"""A whole bench over SSH: the same report, nothing sent twice, and a link that is lost on the way."""

import sys

import pytest

from argus_edge.bench import watching
from argus_edge.bench.drive import bench, resume
from argus_edge.bench.options import Options, scenario_of
from argus_edge.bench.prepare import prepare
from argus_edge.bench.request import Request, make_request
from argus_edge.devices.ssh import SshTransport
from argus_edge.errors import DeviceUnreachableError, RunFailedError
from argus_edge.schema.agent import Warmup
from argus_edge.schema.device import DeviceEntry
from tests.support import sshd
from tests.support.chaos import Chaos
from tests.support.chat_server import serving
from tests.support.tiny_bundle import answering_bundle


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with sshd.serve(tmp_path_factory.mktemp("sshd")) as running:
        yield running


@pytest.fixture
def board(server, tmp_path):
    return DeviceEntry(name="board", host="board", python=sys.executable, home=str(tmp_path / "device"))


def prepared(duration, model=None):
    scenario = scenario_of("single-stream", duration=duration)
    runtime = "null" if model is None else "auto"
    return prepare(Request(model, Options(runtime=runtime, scenario=scenario, warmup=Warmup(fixed_calls=2))))


def to(server, port=None):
    config = server.config(name="config" if port is None else f"config-{port}", port=port)
    return lambda entry: SshTransport(entry.host, config=config)


def test_a_bench_over_ssh(server, board, store, squeezenet, hook):
    first, second = hook(), hook()
    outcome = bench(prepared(0.5, squeezenet), board, store, listener=first, connect=to(server))
    assert outcome.error is None
    assert outcome.report.device.name == "board"
    assert outcome.report.measurements[0].figures.count >= 11
    assert any("sent" in text for text in first.said)
    bench(prepared(0.2, squeezenet), board, store, listener=second, connect=to(server))
    assert not any("sent" in text for text in second.said)


def test_a_whole_bundle_over_ssh(server, board, store, tmp_path):
    request = make_request(str(answering_bundle(tmp_path / "answers")), duration=0.3, warmup=2, output_tokens=4)
    report = bench(prepare(request), board, store, connect=to(server)).report
    whole = report.measurements[-1]
    assert (whole.component, whole.state) == ("end-to-end", "done")
    assert whole.generation.inter_token_samples.count == 3 * whole.figures.count


def test_a_served_model_over_ssh(server, board, store):
    with serving() as (url, _):
        request = make_request(None, runtime="server", url=url, images=["16x16"], duration=0.3, warmup=2)
        report = bench(prepare(request), board, store, connect=to(server)).report
    assert report.measurements[0].generation.output_tokens == 32


def test_a_whole_bundle_is_come_back_to(server, board, store, tmp_path, hook):
    request = make_request(str(answering_bundle(tmp_path / "answers")), duration=1, warmup=2, output_tokens=4)

    class HostDied(BaseException):
        pass

    def die():
        raise HostDied

    with pytest.raises(HostDied):
        bench(prepare(request), board, store, listener=hook(steady, die), connect=to(server))
    (record,) = store.list()
    report = resume(record, store, connect=to(server)).report
    assert report.measurements[-1].generation.output_tokens == 4
    assert report.measurements[-1].unit_of_work.startswith("one image seen")


def steady(event):
    return event.event == "phase" and event.phase == "steady"


def test_a_link_that_is_lost_is_taken_up_again(server, board, store, hook):
    with Chaos(server.port) as link:
        listener = hook(steady, link.reset)
        outcome = bench(prepared(3), board, store, listener=listener, connect=to(server, link.port))
    assert outcome.error is None
    assert outcome.report.measurements[0].state == "done"
    assert any("trying again" in text for text in listener.said)
    # No event comes twice, and none is missing.
    kinds = [event.event for event in listener.events]
    assert kinds.count("started") == kinds.count("ended") == 1


def test_a_device_that_stays_away_leaves_the_run_to_itself(server, board, store, hook, monkeypatch):
    monkeypatch.setattr(watching, "RETRY_S", (0.0,))
    with Chaos(server.port) as link:

        def vanish():
            link.refuse()
            link.reset()

        with pytest.raises(DeviceUnreachableError) as caught:
            bench(prepared(2), board, store, listener=hook(steady, vanish), connect=to(server, link.port))
    assert caught.value.exit_code == 3
    (record,) = store.list()
    assert caught.value.next_step == f"argus-edge bench --resume {record.id}"
    assert record.state == "detached"
    report = resume(record, store, connect=to(server)).report
    assert report.measurements[0].state == "done"


def test_a_device_that_is_off(board, store):
    closed = board.model_copy(update={"host": f"nobody@127.0.0.1:{sshd.free_port()}"})
    with pytest.raises(DeviceUnreachableError) as caught:
        bench(prepared(1), closed, store)
    assert caught.value.exit_code == 3
    assert store.list() == []


def ended(event):
    return event.event == "ended"


def test_a_link_that_is_lost_at_the_start_starts_the_run_once(server, board, store, hook):
    with Chaos(server.port) as link:
        listener = hook()
        listener.started = lambda run, stop: link.reset()
        outcome = bench(prepared(0.3), board, store, listener=listener, connect=to(server, link.port))
    assert outcome.error is None
    assert [event.event for event in listener.events].count("started") == 1


def test_a_link_that_is_lost_in_the_fetch_is_taken_up_again(server, board, store, hook):
    with Chaos(server.port) as link:
        listener = hook(ended, lambda: link.cut_after(2_000))
        outcome = bench(prepared(0.3), board, store, listener=listener, connect=to(server, link.port))
    assert outcome.error is None
    assert any("Trying again" in text for text in listener.said)


def test_a_device_that_stays_away_in_the_fetch_keeps_what_was_measured(server, board, store, hook, monkeypatch):
    monkeypatch.setattr(watching, "RETRY_S", (0.0,))
    with Chaos(server.port) as link, pytest.raises(DeviceUnreachableError, match="what it measured is kept") as caught:
        bench(prepared(0.3), board, store, listener=hook(ended, link.refuse), connect=to(server, link.port))
    (record,) = store.list()
    assert caught.value.next_step == f"argus-edge bench --resume {record.id}"
    report = resume(record, store, connect=to(server)).report
    assert report.measurements[0].state == "done"
    again = resume(store.find(record.id), store, connect=to(server)).report
    assert again.model_dump_json() == report.model_dump_json()


def test_a_run_that_never_began_is_said_to_with_what_runs_it_again(server, board, store, hook, monkeypatch):
    monkeypatch.setattr(watching, "RETRY_S", (0.0,))
    with Chaos(server.port) as link:
        listener = hook()
        listener.started = lambda run, stop: link.refuse()
        with pytest.raises(DeviceUnreachableError, match=r"Whether the run .* was started is not known"):
            bench(prepared(0.3), board, store, listener=listener, connect=to(server, link.port))
    (record,) = store.list()
    assert record.state == "detached"
    with pytest.raises(RunFailedError, match="no such run") as caught:
        resume(record, store, connect=to(server))
    assert caught.value.next_step == "run it again"
    assert store.find(record.id).state == "lost"


def test_another_agent_that_is_put_in_the_place_of_ours_is_replaced(server, board, store, hook, tmp_path):
    def replace():
        (agent,) = (tmp_path / "device").glob("*/agent.pyz")
        agent.write_bytes(b"import nonsense")

    outcome = bench(prepared(1.0), board, store, listener=hook(steady, replace), connect=to(server))
    assert outcome.error is None
    assert outcome.report.measurements[0].state == "done"


def test_the_hosts_clock_may_jump(server, board, store, hook, monkeypatch):
    import time

    real = time.time

    def jump():
        monkeypatch.setattr(time, "time", lambda: real() - 400 * 86_400)

    outcome = bench(prepared(1.0), board, store, listener=hook(steady, jump), connect=to(server))
    assert outcome.error is None
    assert outcome.report.measurements[0].state == "done"
