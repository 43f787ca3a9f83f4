"""The record of runs: what goes in comes out, several writers at once, and where it is kept."""

import multiprocessing
import os
import stat
from datetime import datetime, timezone

import pytest

from argus_edge.errors import HostError, InputError, UsageError
from argus_edge.store.engine import data_folder, open_engine, store_url
from argus_edge.store.records import Store
from tests.support.reports import bench, evaluation


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'data' / 'runs.db'}"


@pytest.fixture
def store(url):
    opened = Store(url)
    yield opened
    opened.close()


def add(store, run, **changes):
    fields = {"device": "pi5", "profile": "pi5", "model": "m", "model_sha256": None, "scenario": "single-stream"}
    store.add(run, entry='{"name": "pi5"}', context="{}", **{**fields, **changes})


def test_a_run_is_there_before_it_has_a_report(store):
    add(store, "r1")
    record = store.find("r1")
    assert (record.state, record.has_report, record.ended) == ("starting", False, None)
    assert record.created.tzinfo == timezone.utc
    assert store.documents("r1") == ('{"name": "pi5"}', "{}")
    with pytest.raises(InputError, match="no report"):
        store.report("r1")


def test_a_report_comes_back_as_it_was(store):
    report = bench("m").artifact
    add(store, "r1")
    store.finish("r1", report, state="done")
    assert store.report("r1") == report
    record = store.find("r1")
    assert record.valid is report.validity.valid
    assert record.ended is not None


def test_the_newest_come_first_and_can_be_chosen(store):
    for run, device in (("a", "pi5"), ("b", "nano"), ("c", "pi5")):
        add(store, run, device=device)
    store.set_state("a", "failed", error="x" * 5000)
    assert [record.id for record in store.list()] == ["c", "b", "a"]
    assert [record.id for record in store.list(device="pi5")] == ["c", "a"]
    assert [record.id for record in store.list(state="failed")] == ["a"]
    assert [record.id for record in store.list(limit=1)] == ["c"]
    assert len(store.find("a").error) == 2000


def test_the_beginning_of_an_id_is_enough_unless_it_is_not(store):
    add(store, "20261130-one")
    add(store, "20261130-one-more")
    add(store, "20261201_x")
    assert store.find("20261201").id == "20261201_x"
    assert store.find("20261130-one").id == "20261130-one"
    for text in ("2026", "nothing", "20261201%x", "%"):
        with pytest.raises(UsageError):
            store.find(text)


def test_runs_are_forgotten(store):
    add(store, "a")
    assert store.remove(["a", "b"]) == 1
    assert store.list() == []


def write(url, name):
    opened = Store(url)
    for index in range(20):
        add(opened, f"{name}-{index}")
        opened.set_state(f"{name}-{index}", "done")
    opened.close()


def test_several_processes_write_at_once(url):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=write, args=(url, name)) for name in "abc"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    opened = Store(url)
    assert len(opened.list()) == 60
    opened.close()


def test_it_is_the_users_alone(tmp_path, store):
    assert stat.S_IMODE(os.stat(tmp_path / "data" / "runs.db").st_mode) == 0o600


def test_where_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("ARGUS_EDGE_DATA", str(tmp_path / "d"))
    assert data_folder() == tmp_path / "d"
    assert store_url() == f"sqlite:///{tmp_path}/d/argus-edge.db"
    monkeypatch.setenv("ARGUS_EDGE_STORE", str(tmp_path / "own.db"))
    assert store_url() == f"sqlite:///{tmp_path}/own.db"
    monkeypatch.setenv("ARGUS_EDGE_STORE", "postgresql+psycopg://me@host/db")
    assert store_url() == "postgresql+psycopg://me@host/db"
    monkeypatch.delenv("ARGUS_EDGE_STORE")
    monkeypatch.delenv("ARGUS_EDGE_DATA")
    assert data_folder().name == "argus-edge"


def test_a_database_that_is_none(tmp_path):
    with pytest.raises(UsageError):
        open_engine("nonsense")
    (tmp_path / "f.db").write_text("this is no database, it is a text of some length" * 50)
    with pytest.raises(HostError):
        Store(f"sqlite:///{tmp_path / 'f.db'}")
    with pytest.raises(HostError):
        Store("sqlite:////proc/none/x.db")


def test_what_is_neither_sqlite_nor_postgresql_is_said_to_be():
    with pytest.raises(UsageError, match="neither SQLite nor PostgreSQL"):
        Store("mysql://user@host/name")


def test_the_next_step_is_for_what_the_user_has_set(tmp_path, monkeypatch):
    (tmp_path / "text.db").write_text("no database, but longer than its header would be " * 9)
    monkeypatch.setenv("ARGUS_EDGE_STORE", str(tmp_path / "text.db"))
    with pytest.raises(HostError) as named:
        Store()
    assert "unset it" in named.value.next_step
    monkeypatch.delenv("ARGUS_EDGE_STORE")
    with pytest.raises(HostError) as usual:
        Store(f"sqlite:///{tmp_path / 'text.db'}")
    assert "ARGUS_EDGE_DATA" in usual.value.next_step


def test_passwords_are_not_shown(monkeypatch, store):
    assert "sqlite" in store.where


def test_an_evaluation_is_recorded_once_and_comes_back_as_it_was(store):
    report = evaluation("clip", {("retrieval", "coco"): 0.5, ("reasoning", "clevr"): 0.5}).artifact
    run = store.add_evaluation(report)
    assert store.add_evaluation(report) is None
    record = store.find(run)
    assert (record.kind, record.state, record.device, record.scenario) == ("eval", "done", "host", "coco,clevr")
    assert store.evaluation(run) == report


def test_a_list_is_narrowed_by_kind_state_scenario_and_time(store):
    add(store, "r1")
    add(store, "r2", scenario="offline")
    store.set_state("r2", "done")
    store.add_evaluation(evaluation("clip", {("retrieval", "coco"): 0.5}).artifact)
    moment = store.find("r2").created

    def ids(**wanted):
        return {record.id for record in store.list(**wanted)}

    assert ids(kind="bench") == {"r1", "r2"}
    assert len(ids(kind="eval")) == 1
    assert ids(scenario="offline") == {"r2"}
    assert ids(state="starting") == {"r1"}
    assert ids(kind="bench", since=moment) == {"r2"}
    assert ids(since=datetime(2100, 1, 1, tzinfo=timezone.utc)) == set()
