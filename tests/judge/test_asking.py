"""`judge run` against a small real server with the OpenAI-compatible chat API."""

import base64
import json
import math
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from click.testing import CliRunner

from argus_edge.cli.judge import judge as judge_command
from argus_edge.errors import DeviceUnreachableError, InputError, RunFailedError, UsageError
from argus_edge.judge.asking import server as server_module
from argus_edge.judge.asking.items import fill_prompt, read_items
from argus_edge.judge.asking.pictures import encode_picture
from argus_edge.judge.asking.server import ServerJudge
from argus_edge.judge.table import read_table

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


def reply(text, top=20):
    """A chat completion whose digits come with alternatives, as servers send it."""
    content = []
    for token in re.findall(r"\s?(?:[A-Za-z]+|\d|[^\w\s])|\s", text):
        entry = {"token": token, "logprob": -0.1, "top_logprobs": [{"token": token, "logprob": -0.1}]}
        if token.strip().isdigit():
            entry["top_logprobs"] += [
                {"token": str(k), "logprob": -2.0 - k} for k in range(1, 6) if str(k) != token.strip()
            ][: top - 1]
        content.append(entry)
    return {"choices": [{"message": {"content": text}, "logprobs": {"content": content}}]}


@pytest.fixture
def api():
    """Serve scripted replies; ``api.script`` maps a word of the prompt to a reply or a status."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.asked.append((self.path, document, self.headers.get("Authorization")))
            prompt = document["messages"][0]["content"][-1]["text"]
            answer = next(found for word, found in server.script.items() if word in prompt)
            if callable(answer):
                answer = answer()
            status, body = answer if isinstance(answer, tuple) else (200, answer)
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            if server.location:
                self.send_header("Location", server.location)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.script, server.asked, server.location = {}, [], None
    server.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(server_module.time, "sleep", lambda _: None)
    for name in server_module.KEY_VARIABLES:
        monkeypatch.delenv(name, raising=False)


def items(tmp_path, *answers, **fields):
    (tmp_path / "cat.png").write_bytes(PIXEL)
    path = tmp_path / "items.jsonl"
    lines = [
        {"id": f"i{n}", "task": "vqa", "image": "cat.png", "question": "What?", "answer": text, "human": 3, **fields}
        for n, text in enumerate(answers)
    ]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return path


def run(api, tmp_path, path, *more):
    arguments = ["run", "--judge", "critic", "--server", api.address, "--items", str(path)]
    arguments += ["--out", str(tmp_path / "scores.csv"), *more]
    return CliRunner().invoke(judge_command, arguments, catch_exceptions=False)


def test_scores_and_log_probabilities_come_out_of_a_server(api, tmp_path):
    api.script = {"good cat": reply("Fine. Score: 4"), "a dog": reply("No opinion."), "odd": reply("Score: 9")}
    path = items(tmp_path, "a good cat", "a dog", "odd one", model="tiny")
    run(api, tmp_path, path)
    table = read_table(tmp_path / "scores.csv")
    assert table.judges == ["critic"]
    assert table.judge_scores[0, 0] == 4
    assert table.features[0].tolist() == pytest.approx([-3, -4, -5, -0.1, -7])
    # What cannot be read is recorded as such.
    assert list(table.columns["judge_score"]) == ["4", "-1", "-1"]
    assert list(table.columns["logprob_1"])[1:] == ["", ""]
    assert "no rating" in table.columns["note"][1]
    assert "wrote 9" in table.columns["note"][2]
    assert list(table.columns["model"]) == ["tiny"] * 3
    path, document, key = api.asked[0]
    assert path == "/v1/chat/completions"
    assert (document["logprobs"], document["top_logprobs"], document["temperature"]) == (True, 20, 0)
    assert document["messages"][0]["content"][0]["image_url"]["url"].startswith("data:image/png;base64,")
    assert key is None


def test_a_rating_below_the_reported_tokens_is_minus_infinity(api, tmp_path):
    api.script = {"cat": reply("Score: 4", top=3)}
    run(api, tmp_path, items(tmp_path, "cat"), "--responses", str(tmp_path / "answers.jsonl"))
    row = read_table(tmp_path / "scores.csv", floor=-50)
    assert row.features[0].tolist() == pytest.approx([-3, -4, -50, -0.1, -50])
    assert "not among the tokens reported: 3, 5" in row.columns["note"][0]
    answer = json.loads((tmp_path / "answers.jsonl").read_text())
    assert answer["logprobs"][2] == "-Infinity"
    assert answer["text"] == "Score: 4"


def test_the_key_is_sent_and_only_sent(api, tmp_path, monkeypatch):
    monkeypatch.setenv("ARGUS_EDGE_JUDGE_KEY", "secret")
    api.script = {"cat": reply("Score: 4")}
    result = run(api, tmp_path, items(tmp_path, "cat"))
    assert api.asked[0][2] == "Bearer secret"
    assert "secret" not in result.output + (tmp_path / "scores.csv").read_text()


def test_a_busy_server_is_asked_again(api, tmp_path):
    replies = iter([(503, {}), (429, {}), reply("Score: 2")])
    api.script = {"cat": lambda: next(replies)}
    run(api, tmp_path, items(tmp_path, "cat"))
    assert read_table(tmp_path / "scores.csv").judge_scores[0, 0] == 2


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((401, {"error": "no key"}), "401.*no key"),
        ({"choices": [{"message": {"content": "Score: 4"}, "logprobs": None}]}, "no log-probabilities"),
        (b"<html>", "not JSON"),
        ({"choices": []}, "no log-probabilities"),
    ],
)
def test_a_server_that_cannot_serve_is_said_so(api, tmp_path, answer, why):
    api.script = {"cat": answer}
    with pytest.raises(RunFailedError, match=why):
        run(api, tmp_path, items(tmp_path, "cat"))
    assert not (tmp_path / "scores.csv").exists()


def test_what_is_no_http_at_all_is_said_so():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer():
            for _ in range(4):
                connection, _ = listener.accept()
                connection.recv(65536)
                connection.sendall(b"\x00\x01garbage\r\n\r\n")
                connection.close()

        thread = threading.Thread(target=answer)
        thread.start()
        told = []
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(DeviceUnreachableError, match="does not answer"):
            ServerJudge("critic", address, say=told.append).ask("?", [])
        thread.join()
    assert [line[-8:] for line in told] == ["(2 of 4)", "(3 of 4)", "(4 of 4)"]


@pytest.mark.parametrize("drops", [0, 1000])
def test_a_server_that_hangs_or_drips_is_given_up(drops):
    """It takes the request and says nothing, or one byte at a time for longer than anybody waits."""
    stop = threading.Event()

    class Hanging(BaseHTTPRequestHandler):
        def do_POST(self):
            if drops:
                self.send_response(200)
                self.send_header("Content-Length", str(10 * drops))
                self.end_headers()
            while not stop.wait(0.02):
                if drops:
                    self.wfile.write(b" ")

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hanging)
    server.handle_error = lambda *_: None  # a client that has left is what is wanted
    threading.Thread(target=server.serve_forever, daemon=True).start()
    told = []
    try:
        judge = ServerJudge("m", f"http://127.0.0.1:{server.server_port}", timeout=0.3, say=told.append)
        with pytest.raises(DeviceUnreachableError, match=r"no whole answer within 0\.3 s, twice") as found:
            judge.ask("Score?", [])
    finally:
        stop.set()
        server.shutdown()
        server.server_close()
    assert len(told) == 1
    assert "--timeout" in found.value.next_step


def test_a_redirection_is_not_followed_with_the_key(api, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    api.location = f"{api.address}/elsewhere"
    api.script = {"": (302, b"")}
    with pytest.raises(RunFailedError, match=r"go to .*/elsewhere") as found:
        ServerJudge("m", api.address).ask("Score?", [])
    assert [path for path, _, _ in api.asked] == ["/v1/chat/completions"]
    assert "if you trust it" in found.value.next_step


def test_a_reply_nested_without_end_is_no_json(api):
    api.script = {"": (200, b"[" * 100_000)}
    with pytest.raises(RunFailedError, match="not JSON"):
        ServerJudge("m", api.address).ask("Score?", [])


def test_no_server_at_all(tmp_path):
    with pytest.raises(DeviceUnreachableError):
        ServerJudge("critic", "http://127.0.0.1:9").ask("?", [])


@pytest.mark.parametrize("address", ["localhost:8000", "file:///etc/passwd", "ftp://host"])
def test_only_web_addresses_are_servers(address):
    with pytest.raises(UsageError):
        ServerJudge("critic", address)


def test_an_interrupted_run_goes_on(api, tmp_path):
    fail = [True]

    def sometimes():
        return (403, {}) if fail[0] else reply("Score: 1")

    api.script = {"apple": reply("Score: 5"), "pear": sometimes}
    path = items(tmp_path, "apple", "pear")
    with pytest.raises(RunFailedError):
        run(api, tmp_path, path)
    journal = tmp_path / "scores.csv.journal.jsonl"
    journal.write_text(journal.read_text() + '{"key": "i1", "ro')  # cut off in the middle of a line
    fail[0] = False
    api.asked.clear()
    result = run(api, tmp_path, path)
    assert len(api.asked) == 1
    assert "going on" in result.output
    assert read_table(tmp_path / "scores.csv").judge_scores[:, 0].tolist() == [5, 1]
    assert not journal.exists()


def test_an_answer_that_was_paid_for_is_not_asked_again_when_items_are_added(api, tmp_path):
    api.script = {"pear": (403, {}), "": reply("Score: 5")}
    with pytest.raises(RunFailedError):
        run(api, tmp_path, items(tmp_path, "apple", "pear"))
    api.script = {"": reply("Score: 2")}
    api.asked.clear()
    run(api, tmp_path, items(tmp_path, "apple", "pear", "plum"))
    assert len(api.asked) == 2
    assert read_table(tmp_path / "scores.csv").judge_scores[:, 0].tolist() == [5, 2, 2]


def test_an_item_that_the_server_refuses_is_recorded_and_the_others_are_asked(api, tmp_path):
    api.script = {"pear": (400, {"error": "too long"}), "": reply("Score: 5")}
    result = run(api, tmp_path, items(tmp_path, "pear", "apple"))
    assert "item i0: The server answered 400" in result.output
    table = read_table(tmp_path / "scores.csv")
    assert list(table.columns["judge_score"]) == ["-1", "5"]
    assert "too long" in table.columns["note"][0]


def test_a_server_that_refuses_everything_is_said_so(api, tmp_path):
    api.script = {"": (400, {"error": "no such model"})}
    with pytest.raises(RunFailedError, match="no such model"):
        run(api, tmp_path, items(tmp_path, "pear", "apple", "plum", "fig"))
    assert len(api.asked) == 3
    assert not (tmp_path / "scores.csv").exists()


def test_a_broken_image_is_recorded(api, tmp_path):
    api.script = {"": reply("Score: 5")}
    path = items(tmp_path, "apple", "pear")
    (tmp_path / "torn.png").write_bytes(PIXEL[:40])
    path.write_text(path.read_text().replace("cat.png", "torn.png", 1))
    run(api, tmp_path, path)
    table = read_table(tmp_path / "scores.csv")
    assert list(table.columns["judge_score"]) == ["-1", "5"]
    assert "the image cannot be read" in table.columns["note"][0]


def test_a_picture_is_sent_as_a_person_sees_it(tmp_path):
    import io

    import numpy as np
    from PIL import Image

    plain = tmp_path / "plain.jpg"
    Image.new("RGB", (4, 2), "red").save(plain)
    assert encode_picture(plain) == ("image/jpeg", plain.read_bytes())
    turned = tmp_path / "turned.jpg"
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (4, 2), "red").save(turned, exif=exif)
    kind, data = encode_picture(turned)
    assert (kind, Image.open(io.BytesIO(data)).size) == ("image/png", (2, 4))
    deep = tmp_path / "deep.png"
    Image.fromarray(np.full((2, 2), 32896, np.uint16)).save(deep)
    assert Image.open(io.BytesIO(encode_picture(deep)[1])).getpixel((0, 0)) == (128, 128, 128)


def test_an_answer_that_holds_a_line_separator_is_one_line(tmp_path):
    path = tmp_path / "items.jsonl"
    path.write_text('{"answer": "one\u2028two\u0085three"}\r\n{"answer": "x"}\n', encoding="utf-8", newline="")
    assert [item.answer for item in read_items(path)] == ["one\u2028two\u0085three", "x"]


def test_another_prompt_starts_anew(api, tmp_path):
    api.script = {"pear": (403, {}), "": reply("Score: 5")}
    path = items(tmp_path, "apple", "pear")
    with pytest.raises(RunFailedError):
        run(api, tmp_path, path)
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("Grade {answer} from 1 to {levels}. Score: X")
    api.script = {"": reply("Score: 5")}
    api.asked.clear()
    run(api, tmp_path, path, "--prompt", str(prompt))
    assert len(api.asked) == 2


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "Not JSON"),
        ("[1]", "Not a JSON object"),
        ('{"question": "What?"}', "no `answer`"),
        ('{"answer": "x", "image": "gone.png"}', "no image 'gone.png'"),
        ('{"answer": "x", "image": 3}', "neither a path nor a list"),
        ('{"answer": "x", "id": "i0"}', "also that of line 1"),
    ],
)
def test_items_that_do_not_hold_are_named_before_anything_is_asked(tmp_path, line, why):
    path = items(tmp_path, "first")
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(InputError, match=why) as caught:
        read_items(path)
    assert "line 2" in caught.value.where


def test_braces_in_an_answer_are_left_alone(tmp_path):
    (item,) = read_items(items(tmp_path, "{question} {levels} {x}"))
    text = fill_prompt("Q {question} A {answer} of {levels} {other}", item, 5)
    assert text == "Q What? A {question} {levels} {x} of 5 {other}"


def test_scales_of_more_than_one_digit_are_refused(api, tmp_path):
    with pytest.raises(UsageError, match="one digit"):
        run(api, tmp_path, items(tmp_path, "cat"), "--scale", "1..10")


def test_nan_from_a_server_is_recorded_as_missing(api, tmp_path):
    broken = reply("Score: 4")
    for entry in broken["choices"][0]["logprobs"]["content"]:
        for other in entry["top_logprobs"]:
            other["logprob"] = math.nan
    api.script = {"cat": json.dumps(broken).encode()}
    run(api, tmp_path, items(tmp_path, "cat"))
    table = read_table(tmp_path / "scores.csv")
    assert not table.readable[0]
    assert "NaN" in table.columns["note"][0]
