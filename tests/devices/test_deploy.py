"""Files go to a folder named by their content, once, if there is room."""

from __future__ import annotations

import hashlib

import pytest

from argus_edge.artifacts import sha256_file
from argus_edge.devices.deploy import content_key, deploy_agent, deploy_files
from argus_edge.devices.mock import MockTransport
from argus_edge.devices.ssh import SshTransport
from argus_edge.errors import DeviceUnreachableError, InputError, MisfitError
from argus_edge.schema.device import DeviceEntry
from tests.support.light_python import make_light_python

ENTRY = DeviceEntry(name="board", host="board")


@pytest.fixture
def model(tmp_path):
    """A graph and its external weights."""
    (tmp_path / "model.onnx").write_bytes(b"graph")
    (tmp_path / "weights.bin").write_bytes(b"w" * 1000)
    return {"model.onnx": tmp_path / "model.onnx", "data/weights.bin": tmp_path / "weights.bin"}


def test_a_single_file_lies_in_the_folder_of_its_hash(tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(b"model")
    board = MockTransport()
    deployed = deploy_files(board, ENTRY, {"m.tflite": path})
    digest = hashlib.sha256(b"model").hexdigest()
    assert deployed.path("m.tflite") == f"~/.cache/argus-edge/{digest}/m.tflite"
    assert board.files == {deployed.path("m.tflite"): b"model"}


def test_external_data_lies_beside_its_model_under_its_own_name(model):
    board = MockTransport()
    deployed = deploy_files(board, ENTRY, model)
    assert set(board.files) == {f"{deployed.folder}/model.onnx", f"{deployed.folder}/data/weights.bin"}
    assert deployed.sent_bytes == 1005
    assert deploy_files(board, ENTRY, model).sent_bytes == 0


def test_the_same_graph_with_other_weights_is_another_folder(model, tmp_path):
    board = MockTransport()
    first = deploy_files(board, ENTRY, model).folder
    (tmp_path / "weights.bin").write_bytes(b"v" * 1000)
    assert deploy_files(board, ENTRY, model).folder != first


def test_the_key_depends_on_names_and_contents_not_on_order():
    one, two = "1" * 64, "2" * 64
    assert content_key({"a": one, "b": two}) == content_key({"b": two, "a": one})
    assert (
        len({content_key(names) for names in ({"a": one, "b": two}, {"a": two, "b": one}, {"c": one, "b": two})}) == 3
    )


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "", "a\nb"])
def test_a_name_cannot_leave_the_folder(tmp_path, name):
    path = tmp_path / "x"
    path.write_bytes(b"x")
    board = MockTransport()
    with pytest.raises(InputError, match="inside a folder"):
        deploy_files(board, ENTRY, {name: path})
    assert board.files == {}


def test_without_room_nothing_is_sent_and_the_figures_are_said(model):
    board = MockTransport(free_bytes=10 << 20)
    with pytest.raises(MisfitError, match=r"34 MB are needed, 10 MB are free"):
        deploy_files(board, ENTRY, model)
    assert board.files == {}


def test_what_is_there_already_needs_no_room(model):
    board = MockTransport()
    deploy_files(board, ENTRY, model)
    board.free_bytes = 1 << 20
    assert deploy_files(board, ENTRY, model).sent_bytes == 0


def test_progress_runs_over_all_files(model):
    seen = []
    deploy_files(MockTransport(), ENTRY, model, progress=lambda *step: seen.append(step))
    assert seen[-1] == (1005, 1005)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_missing_local_file_is_named(tmp_path):
    with pytest.raises(InputError) as caught:
        deploy_files(MockTransport(), ENTRY, {"m.onnx": tmp_path / "m.onnx"})
    assert str(tmp_path / "m.onnx") in caught.value.where


def test_a_link_that_is_lost_is_taken_up_again_and_given_up_at_the_third_time(model, monkeypatch):
    board = MockTransport()
    attempts = []
    put = board.put

    def flaky(*arguments, **options):
        attempts.append(arguments)
        if len(attempts) < 3:
            raise DeviceUnreachableError("lost")
        return put(*arguments, **options)

    monkeypatch.setattr(board, "put", flaky)
    assert deploy_files(board, ENTRY, model).sent_bytes == 1005
    monkeypatch.setattr(board, "put", lambda *_, **__: (_ for _ in ()).throw(DeviceUnreachableError("lost")))
    with pytest.raises(DeviceUnreachableError):
        deploy_files(board, ENTRY, model)


class TestOverSsh:
    def test_the_agent_arrives_answers_and_is_not_sent_again(self, sshd, tmp_path):
        entry = DeviceEntry(name="board", host="board", python=str(make_light_python(tmp_path / "venv")))
        link = SshTransport("board", config=sshd.config())
        agent = deploy_agent(link, entry)
        facts = agent.probe()
        assert facts.agent_sha256 is not None
        there = sshd.home / ".cache" / "argus-edge" / facts.agent_sha256 / "agent.pyz"
        assert sha256_file(there) == facts.agent_sha256
        assert agent.list_runs() == []
        stamp = there.stat().st_mtime_ns
        deploy_agent(link, entry)
        assert there.stat().st_mtime_ns == stamp
        link.close()

    def test_a_damaged_agent_is_replaced(self, sshd):
        link = SshTransport("board", config=sshd.config())
        agent = deploy_agent(link, ENTRY)
        path = sshd.home / agent.agent.removeprefix("~/")
        path.write_bytes(path.read_bytes()[:-100])
        assert deploy_agent(link, ENTRY).list_runs() == []
        link.close()
