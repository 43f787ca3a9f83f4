"""The client of a server on the board: what it times, and what it makes of servers that do wrong."""

from __future__ import annotations

import os
import time
from array import array
from pathlib import Path

import pytest

from argus_edge.agents import chat, listening
from argus_edge.agents.home import Fault
from argus_edge.agents.runtimes import server
from argus_edge.agents.runtimes.server import Runtime
from tests.support.chat_server import FIRST_S, OVERHEAD, TOKEN_S, served_elsewhere, serving


def runtime(url, prompt_tokens=20, output_tokens=6, timeout_s=20.0, **target):
    asked = {"url": url, "prompt_tokens": prompt_tokens, "output_tokens": output_tokens, "timeout_s": timeout_s}
    made = Runtime({"runtime": "server", "format": "none", "server": {**asked, **target}}, "/tmp")
    made.check()
    made.import_library()
    made.load()
    return made


def call(made, times=1):
    """Call so often, recording; return the rows of marks."""
    columns = [array("d", [0.0] * times) for _ in range(made.marks)]
    bound = made.bind({})
    made.record(columns)
    starts = []
    for _ in range(times):
        starts.append(time.perf_counter())
        bound()
    return starts, list(zip(*columns, strict=True))


def test_every_token_has_its_moment() -> None:
    with serving() as (url, _):
        made = runtime(url)
        (start,), ((*moments, tokens),) = call(made)
    assert tokens == 6
    assert moments[0] - start >= FIRST_S
    # A client that is woken late sees tokens closer together, never the last one sooner.
    assert moments == sorted(moments)
    assert moments[-1] - start >= FIRST_S + 5 * TOKEN_S
    assert made.figures["served_model"] == "tiny-vlm"
    assert made.figures["runtime_version"].startswith("BaseHTTP")


def test_the_prompt_has_the_length_asked_for_by_the_servers_own_count() -> None:
    with serving() as (url, seen):
        made = runtime(url, prompt_tokens=50)
        call(made, 3)
    assert made.figures["prompt_tokens"] == 50
    texts = [asked["messages"][0]["content"] for asked in seen if asked["stream"]]
    assert {len(text.split()) + OVERHEAD for text in texts} == {50}
    # No cache of prompts helps: they differ from the first words on.
    assert len({" ".join(text.split()[:5]) for text in texts}) == 3


def test_it_asks_for_so_many_tokens_and_no_end_before() -> None:
    with serving() as (url, seen):
        call(runtime(url, output_tokens=9))
    asked = seen[-1]
    assert asked["max_tokens"] == 9
    assert asked["ignore_eos"] is True
    assert asked["stream_options"] == {"include_usage": True}
    assert asked["model"] == "tiny-vlm"


def test_a_server_that_knows_the_protocol_only_is_asked_for_that_only() -> None:
    with serving("strict") as (url, seen):
        _, ((*_, tokens),) = call(runtime(url))
    assert tokens == 6
    assert "ignore_eos" not in seen[-1]


def test_pictures_travel_as_data_in_turn(tmp_path) -> None:
    for name, content in (("a", b"\x89PNG1"), ("b", b"\xff\xd8\xff2")):
        (tmp_path / name).write_bytes(content)
    with serving() as (url, seen):
        call(runtime(url, images=[str(tmp_path / "a"), str(tmp_path / "b")]), 3)
    shown = [asked["messages"][0]["content"][1]["image_url"]["url"] for asked in seen if asked["stream"]]
    assert [url.partition(";")[0] for url in shown] == ["data:image/png", "data:image/jpeg", "data:image/png"]


def test_a_picture_that_is_none_is_refused(tmp_path) -> None:
    (tmp_path / "a").write_bytes(b"hello")
    with serving() as (url, _), pytest.raises(Fault, match="no PNG"):
        runtime(url, images=[str(tmp_path / "a")])


def test_a_server_that_does_not_count_is_counted() -> None:
    with serving("no-usage") as (url, _):
        made = runtime(url)
        _, ((*_, tokens),) = call(made)
    assert tokens == -6  # the sign says by whom
    assert made.figures["prompt_tokens"] is None
    assert any("does not count" in note for note in made.notes)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("key", "wants a key"),
        ("html", "no list of models"),
        ("no-models", "/v1"),
        ("two-models", "name one as MODEL: one, two"),
        ("error", "the model fell over"),
    ],
)
def test_what_is_wrong_before_a_call(fault, message) -> None:
    with serving(fault) as (url, _), pytest.raises(Fault, match=message) as raised:
        runtime(url)
    assert raised.value.kind == "server-error"


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("no-stream", "not a stream of events"),
        ("garbage", "no JSON"),
        ("long-line", "a line of more than"),
        ("stream-error", "out of memory"),
        ("dies", "broke off after 3"),
        ("endless", "goes on and on"),
        ("empty", "wrote nothing"),
    ],
)
def test_what_is_wrong_within_a_call(fault, message) -> None:
    with serving(fault) as (url, _):
        made = runtime(url)
        with pytest.raises(Fault, match=message) as raised:
            call(made)
    assert raised.value.kind == "server-error"


def test_a_server_that_hangs_is_left() -> None:
    with serving("hang") as (url, _):
        made = runtime(url, timeout_s=0.3)
        with pytest.raises(Fault, match="silent"):
            call(made)


def test_a_server_that_still_loads_is_waited_for(monkeypatch) -> None:
    with serving("loading") as (url, _):
        made = runtime(url)
    assert made.figures["served_model"] == "tiny-vlm"
    moments = iter([0.0, 1000.0])
    monkeypatch.setattr(server, "monotonic", lambda: next(moments))
    with serving("loading") as (url, _), pytest.raises(Fault, match="Loading model"):
        runtime(url)


def test_a_server_that_is_off() -> None:
    with pytest.raises(Fault, match="start the server first"):
        runtime("http://127.0.0.1:9/v1")


@pytest.mark.parametrize("url", ["ftp://x/v1", "nonsense", "http://[::1", "http://127.0.0.1:99999/v1"])
def test_what_is_no_url(url) -> None:
    with pytest.raises(Fault) as raised:
        chat.Address(url, 1.0)
    assert raised.value.kind == "bad-job"


def test_one_of_several_models_is_named() -> None:
    with serving("two-models") as (url, seen):
        call(runtime(url, model="two"))
    assert seen[-1]["model"] == "two"


def test_the_memory_is_the_whole_process_trees() -> None:
    ballast = 64 << 20
    with served_elsewhere(ballast) as (url, pid):
        made = runtime(url)
        call(made)
        found = made.processes()
        assert pid in found
        assert len(found) == 2
        assert os.getpid() not in found
        memory = made.memory()
    assert memory["server_tree"] > ballast
    assert ballast < memory["server_pss"] <= memory["server_tree"]


def test_a_port_that_nobody_listens_on() -> None:
    assert listening.server(9) == (set(), "no process on this device listens on port 9")


def test_a_proxy_of_a_container_is_not_taken_for_the_server(monkeypatch) -> None:
    with served_elsewhere() as (url, _):
        port = int(url.rpartition(":")[2].partition("/")[0])
        monkeypatch.setattr(listening, "PROXIES", (Path("/proc/self/comm").read_text().strip(), "python", "python3"))
        pids, why = listening.server(port)
    assert not pids
    assert "in a container" in why
