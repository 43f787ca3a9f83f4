"""The host's side of the protocol, against a scripted board that is kind, clumsy or hostile."""

from __future__ import annotations

import contextlib
import hashlib
import json
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_edge.agents import wire
from argus_edge.devices.agent_client import AgentClient, busy_error
from argus_edge.devices.mock import MockTransport
from argus_edge.devices.transport import Completed
from argus_edge.errors import ArgusError, DeviceBusyError, MisfitError, RunFailedError
from argus_edge.schema.agent import Holder, Job
from argus_edge.schema.device import DeviceEntry

CALLED = ["python3", "~/.cache/argus-edge/abc/agent.pyz", "--home", "~/.cache/argus-edge"]
FACTS = {"wire": 1, "arch": "aarch64", "python": "3.11.2"}


@pytest.fixture
def board():
    return MockTransport()


@pytest.fixture
def agent(board):
    return AgentClient(board, DeviceEntry(name="pi5", host="pi@board"), "~/.cache/argus-edge/abc/agent.pyz")


class TestCalls:
    def test_how_the_agent_is_called(self, board, agent):
        board.on_agent("probe", FACTS)
        assert agent.probe(system_root="/tree").arch == "aarch64"
        assert board.commands == [
            [*CALLED, "probe", "--system-root", "/tree"],
        ]

    @pytest.mark.parametrize(
        "noise", ["", "Last login: today\n", "\x1b]0;title\x07", '{"arch": "x86"}\n', "ARGUS-EDGE\n"]
    )
    def test_chatter_around_the_answer_is_passed_over(self, board, agent, noise):
        board.on_agent("probe", FACTS, noise=noise)
        assert agent.probe().arch == "aarch64"

    def test_fields_that_a_newer_agent_adds_are_ignored(self, board, agent):
        board.on_agent("probe", {**FACTS, "flux": 7})
        assert agent.probe().python == "3.11.2"

    def test_the_other_commands(self, board, agent):
        status = {"run": "r-1", "state": "running"}
        board.on_agent("status", status)
        board.on_agent("stop", {**status, "state": "stopped"})
        board.on_agent("list", {"runs": [status]})
        board.on_agent("check", {"findings": [{"check": "disk", "ok": True, "detail": "fine"}]})
        board.on_agent("holder", {"holder": None})
        board.on_agent("remove", {"removed": True})
        assert agent.status("r-1").state == "running"
        assert agent.stop("r-1").state == "stopped"
        assert [run.run for run in agent.list_runs()] == ["r-1"]
        assert agent.check()[0].check == "disk"
        agent.check_free()
        agent.remove("r-1")

    def test_start_sends_the_job_and_clears_it_away(self, board, agent):
        sent = []
        board.on("rm", Completed(0, "", ""))
        board.on("start", lambda argv: sent.append(argv[-1]) or Completed(0, wire.frame({"run": "r-1", "pid": 7}), ""))
        job = Job(run="r-1", parts=[{"name": "m", "runtime": "null", "scenario": {}}])
        assert agent.start(job).pid == 7
        assert Job.model_validate_json(board.files[sent[0]]) == job
        assert board.commands[-1] == ["rm", "-f", sent[0]]


class TestFaults:
    def test_busy_says_whose_and_since_when(self, board, agent):
        held = {"holder": "ann@\x1b[31mlab", "run": "r-9", "held_s": 0.0, "since": 1796066423.17}
        board.on_agent("status", {"error": {"kind": "busy", "message": "", "detail": held}}, status=1)
        with pytest.raises(DeviceBusyError, match=r"ann@lab holds it since \d\d:\d\d \(run r-9\)") as caught:
            agent.status("r-1")
        assert caught.value.run == "r-9"
        board.on_agent("holder", {"holder": held})
        with pytest.raises(DeviceBusyError, match="ann@lab holds it since"):
            agent.check_free()

    @pytest.mark.parametrize(
        ("held_s", "since"),
        [
            (0.0, " since 21:14"),
            (75 * 60.0, " since 19:59"),
            (22 * 3600.0, " since 2026-11-29 23:14"),
            (1e300, ""),
            (None, ""),
        ],
    )
    def test_since_is_a_time_of_the_readers_day(self, held_s, since):
        now = datetime(2026, 11, 30, 21, 14).astimezone()
        error = busy_error(Holder(holder="ann@lab", held_s=held_s), "pi5", now=now)
        assert error.what == f"The device is busy: ann@lab holds it{since}."
        assert error.next_step == "add --wait to queue for it"

    def test_a_holder_that_cannot_be_read_is_somebody(self, board, agent):
        fault = {"kind": "busy", "message": "", "detail": {"holder": ["x"], "held_s": "long"}}
        board.on_agent("status", {"error": fault}, status=1)
        with pytest.raises(DeviceBusyError, match="somebody holds it"):
            agent.status("r-1")

    @pytest.mark.parametrize(
        ("kind", "error"),
        [("no-space", MisfitError), ("runtime-missing", MisfitError), ("model-rejected", MisfitError)]
        + [(kind, RunFailedError) for kind in ("crashed", "internal", "bad-job", "rebooted", "of-the-future")],
    )
    def test_each_kind_has_its_error(self, board, agent, kind, error):
        board.on_agent("status", {"error": {"kind": kind, "message": "why"}}, status=1)
        with pytest.raises(error, match="why"):
            agent.status("r-1")

    def test_no_python(self, board, agent):
        board.on("probe", Completed(127, "", "sh: 1: python3: not found\n"))
        with pytest.raises(MisfitError, match="no Python") as caught:
            agent.probe()
        assert "device add pi5 --python PATH --replace" in caught.value.next_step

    def test_a_python_that_is_too_old(self, board, agent):
        board.on("probe", Completed(1, "", '  File "agent.pyz"\nSyntaxError: invalid syntax\n'))
        with pytest.raises(MisfitError, match=r"3\.6 or newer"):
            agent.probe()

    def test_no_answer_at_all_shows_the_last_line_made_harmless(self, board, agent):
        board.on("probe", Completed(-1, "", "Traceback\n\x1b[2JKilled\x07\n"))
        with pytest.raises(RunFailedError, match=r"status -1\): Killed\."):
            agent.probe()


class TestHostileBoard:
    @pytest.mark.parametrize(
        "answer",
        [
            "not json",
            "[1, 2]",
            "null",
            "7",
            '{"arch": 7}',
            "{" * 100_000,
            '{"wire": 1, "arch": "' + "x" * 5000 + '", "python": "3"}',
            '{"wire": 1, "python": "3", "arch": NaN}',
            "x" * (wire.MAX_LINE_BYTES + 10),
            '{"error": 7}',
            '{"wire": 1, "arch": "a", "python": "3", "memory_total_bytes": 1' + "0" * 400 + "}",
            '{"wire": 1, "arch": "a\\ud800", "python": "3"}',
            '{"wire": 1, "arch": "a", "python": "3", "x": ' + "[" * 900 + "]" * 900 + "}",
            '{"error": {"kind": []}}',
        ],
    )
    def test_garbage_is_one_clear_error(self, board, agent, answer):
        board.on("probe", Completed(0, f"{wire.MAGIC} {answer}\n", ""))
        with pytest.raises(RunFailedError, match="cannot be used") as caught:
            agent.probe()
        assert len(str(caught.value)) < 1000

    @given(st.text(max_size=300))
    def test_any_text_is_an_answer_or_a_clear_error(self, text):
        board = MockTransport()
        board.on("probe", Completed(0, f"{wire.MAGIC} {text}\n", text))
        with pytest.raises(ArgusError) as caught:
            AgentClient(board, DeviceEntry(name="x", host="h"), "agent.pyz").probe()
        assert "\x1b" not in str(caught.value)

    @given(
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(max_size=20),
            lambda x: (
                st.lists(x, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["wire", "arch", "python", "runtimes", "error", "kind"]) | st.text(max_size=5),
                    x,
                    max_size=5,
                )
            ),
        )
    )
    def test_any_document_is_facts_or_a_clear_error(self, document):
        board = MockTransport()
        board.on("probe", Completed(0, f"{wire.MAGIC} {json.dumps(document)}\n", ""))
        with contextlib.suppress(ArgusError):
            AgentClient(board, DeviceEntry(name="x", host="h"), "agent.pyz").probe()

    @pytest.mark.parametrize("name", ["../../.bashrc", "/etc/passwd", ".hidden", "a/b", "", "x" * 200, "a\nb"])
    def test_a_file_cannot_leave_its_folder(self, board, agent, tmp_path, name):
        file = {"name": name, "path": "/x", "size": 1, "sha256": "0" * 64}
        board.on_agent("collect", {"files": [file]})
        with pytest.raises(RunFailedError, match="cannot be used"):
            agent.fetch("r-1", tmp_path)

    def test_a_file_with_another_hash_is_not_kept(self, board, agent, tmp_path):
        board.files["/x"] = b"data"
        board.on_agent("collect", {"files": [{"name": "result.json", "path": "/x", "size": 4, "sha256": "0" * 64}]})
        with pytest.raises(RunFailedError, match="changed while"):
            agent.fetch("r-1", tmp_path)
        assert list(tmp_path.iterdir()) == []

    def test_a_file_larger_than_it_said_is_not_fetched(self, board, agent, tmp_path):
        board.files["/x"] = b"data" * 100
        digest = hashlib.sha256(b"data").hexdigest()
        board.on_agent("collect", {"files": [{"name": "result.json", "path": "/x", "size": 4, "sha256": digest}]})
        with pytest.raises(RunFailedError, match="400 bytes"):
            agent.fetch("r-1", tmp_path)

    def test_a_gigantic_file_is_refused_before_it_is_fetched(self, board, agent, tmp_path):
        board.on_agent(
            "collect", {"files": [{"name": "samples-0.bin", "path": "/x", "size": 1 << 50, "sha256": "0" * 64}]}
        )
        with pytest.raises(RunFailedError, match="larger than"):
            agent.fetch("r-1", tmp_path)
        assert not any("get" in command for command in board.commands)


EVENT = {"event": "phase", "t": 1.0, "wall": 2.0, "phase": "warmup"}


class TestFollow:
    def test_events_heartbeats_and_chatter(self, board, agent):
        frames = [{}, {"offset": 10, "events": [EVENT]}, {}, {"offset": 30, "events": [EVENT, EVENT]}]
        lines = ["motd"] + [line for frame in frames for line in ("chatter", wire.frame(frame).rstrip())]
        board.on("follow", lines)
        chunks = list(agent.follow("r-1", 0))
        assert [(chunk.offset, len(chunk.events)) for chunk in chunks] == [(0, 0), (10, 1), (10, 0), (30, 2)]
        assert board.commands[-1][-3:] == ["follow", "r-1", "0"]

    def test_a_fault_in_the_middle(self, board, agent):
        board.on("follow", [wire.frame({"error": {"kind": "bad-job", "message": "no such run"}})])
        with pytest.raises(RunFailedError, match="no such run"):
            list(agent.follow("r-1"))

    def test_a_cut_line_is_an_error_not_an_event(self, board, agent):
        board.on("follow", [wire.frame({"offset": 10, "events": [EVENT]})[:-20]])
        with pytest.raises(RunFailedError, match="cannot be used"):
            list(agent.follow("r-1"))

    def test_chatter_without_end_is_silence(self, board, agent, monkeypatch):
        clock = iter(range(100_000))
        monkeypatch.setattr("argus_edge.devices.agent_client.time.monotonic", lambda: float(next(clock)))

        def chatter():
            while True:
                yield "spam"

        board.on("follow", chatter())
        with pytest.raises(ArgusError, match="silent"):
            list(agent.follow("r-1"))
