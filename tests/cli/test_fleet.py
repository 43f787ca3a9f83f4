"""Several boards as a user benches on them: real SSH servers on this machine, each with a home folder of its own."""

import json
import re
import signal
import sys
import time

import onnx
import pytest
import yaml
from onnx import TensorProto, helper

from tests.support.boards import boards

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

NULL = ("bench", "--runtime", "null")
# Paced, since the harness alone has all its samples within a second.
LONG = (*NULL, "--scenario", "paced", "--fps", "50", "--warmup", "1")
PATIENCE_S = 280


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Two boards, whose records are kept for the module's length."""
    with boards(tmp_path_factory.mktemp("lab"), ["a", "b"]) as running:
        yield running


@pytest.fixture(autouse=True)
def nothing_left(lab):
    """What a test leaves running is its own affair."""
    yield
    lab.end_all()


@pytest.fixture
def off(lab):
    """A third entry of the inventory, a board that is switched off."""
    text = lab.inventory.read_text()
    document = yaml.safe_load(text)
    document["devices"]["off"] = {"host": "nobody@127.0.0.1:9", "tags": ["shelf"]}
    lab.inventory.write_text(yaml.safe_dump(document))
    yield "off"
    lab.inventory.write_text(text)


def model(path, scale):
    """Write a tiny ONNX model."""
    weight = helper.make_tensor("w", TensorProto.FLOAT, [1], [scale])
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "w"], ["y"])],
        "g",
        [value("x", TensorProto.FLOAT, [4])],
        [value("y", TensorProto.FLOAT, [4])],
        [weight],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8), path)
    return path.name


def said_until(process, word):
    """Read a process's messages up to a word."""
    said = ""
    for line in process.stderr:
        said += line
        if re.search(word, said, re.DOTALL):
            return said
    raise AssertionError(f"it ended without saying {word!r}: {said}")


def test_a_matrix_with_a_board_that_is_off_and_the_command_that_finishes_it(lab, off):
    models = [model(lab.home / "one.onnx", 1.0), model(lab.home / "two.onnx", 2.0)]
    command = ["bench", *models, "--device", "a,off", "--duration", "0.2", "--warmup", "2", "--out", "out/"]
    done = lab.run(*command, code=3)
    assert "a: [2/2] two" in done.stderr
    assert "\x1b" not in done.stderr + done.stdout
    assert "missing: 2 of 4" in done.stderr
    assert f"finish with: argus-edge {' '.join(command)} --resume" in done.stderr
    reports = {path.name: path.read_bytes() for path in (lab.home / "out").iterdir()}
    assert len(reports) == 2
    assert done.stderr.count("sent ") == 2, "one message for each model: nothing is sent twice"

    # The board has come back: only what is missing is run.
    document = yaml.safe_load(lab.inventory.read_text())
    document["devices"]["off"].update(host=document["devices"]["b"]["host"], python=sys.executable)
    lab.inventory.write_text(yaml.safe_dump(document))
    again = lab.run(*command, "--resume")
    assert again.stderr.count("was measured") == 2
    after = {path.name: path.read_bytes() for path in (lab.home / "out").iterdir()}
    assert len(after) == 4
    assert all(after[name] == reports[name] for name in reports)


def test_a_tag_and_an_inventory_of_its_own(lab, off):
    other = lab.home / "ci.yaml"
    other.write_text(lab.inventory.read_text())
    lab.inventory.unlink()
    try:
        command = (*NULL, "--inventory", "ci.yaml", "--duration", "0.1", "--warmup", "1", "--json", "-")
        documents = json.loads(lab.run(*command, "--device", "all", "--tag", "lab").stdout)
        assert {report["device"]["name"] for report in documents} == {"a", "b"}
        assert lab.run(*command, "--device", "a", "--tag", "shelf", code=2).stdout == ""
    finally:
        lab.inventory.write_text(other.read_text())


def test_one_ctrl_c_stops_every_run(lab):
    process = lab.start(*LONG, "--device", "a,b", "--duration", "600")
    said_until(process, r"run \S+-a-.*run \S+-b-|run \S+-b-.*run \S+-a-")
    pressed = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE_S)
    took = time.monotonic() - pressed
    assert process.returncode == 130
    assert "Traceback" not in said
    assert said.count("was stopped") >= 2, said
    assert "finish with: argus-edge bench" in said
    assert lab.runs_on("a") == lab.runs_on("b") == []
    print(f"stopped after {took:.1f} s")


def test_two_ctrl_c_leave_at_once_and_print_how_to_come_back(lab):
    process = lab.start(*LONG, "--device", "a,b", "--duration", "600")
    runs = re.findall(r"run (\S+) \(if", said_until(process, r"run \S+-a-.*run \S+-b-|run \S+-b-.*run \S+-a-"))
    process.send_signal(signal.SIGINT)
    said_until(process, "Ctrl-C again")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "Traceback" not in said
    # What the first Ctrl-C had not stopped by then goes on, and it is told how to come back; and all can be finished.
    for run in runs:
        assert run in said
    assert "finish with: argus-edge bench" in said
    for run in lab.runs_on("a") + lab.runs_on("b"):
        lab.run("runs", "stop", run, code=None)


def test_a_host_that_goes_detaches_and_the_matrix_is_taken_up_again(lab):
    command = (*LONG, "--device", "a,b", "--duration", "20")
    process = lab.start(*command)
    said_until(process, r"run \S+-a-.*run \S+-b-|run \S+-b-.*run \S+-a-")
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=PATIENCE_S)
    left = lab.runs_on("a") + lab.runs_on("b")
    assert len(left) == 2
    again = lab.run(*command, "--resume")
    assert again.stderr.count("coming back to") == 2
    assert lab.runs_on("a") == lab.runs_on("b") == []


def test_a_busy_board_says_whose_it_is_or_is_queued_for(lab):
    first = lab.start(*LONG, "--device", "a", "--duration", "600")
    held = re.search(r"run (\S+) \(if this ends early", said_until(first, r"\(if this ends early"))[1]
    short = (*NULL, "--device", "a", "--duration", "0.1", "--warmup", "1")
    refused = lab.run(*short, code=3)
    assert re.search(rf"busy: \S+@\S+ holds it since \d\d:\d\d \(run {held}\)", refused.stderr)
    assert "--wait" in refused.stderr
    queued = lab.start(*short, "--wait")
    said_until(queued, "Waiting for it to be free")
    lab.run("runs", "stop", held)
    out, _ = queued.communicate(timeout=PATIENCE_S)
    assert queued.returncode == 0
    assert "null on a" in out
    first.communicate(timeout=PATIENCE_S)


def test_a_board_that_fails_three_times_is_left_out_until_doctor_passes(lab, off):
    command = (*NULL, "--device", "off", "--duration", "0.1", "--warmup", "1")
    for _ in range(3):
        assert "refused the connection" in lab.run(*command, code=3).stderr
    refused = lab.run(*command, code=3).stderr
    assert "in quarantine" in refused
    assert "argus-edge device doctor off" in refused
    assert "quarantined" in lab.run("device", "list").stdout


def test_a_board_that_does_not_answer_is_power_cycled_when_asked(lab, off, tmp_path):
    mark = tmp_path / "cycled"
    lab.run("device", "add", "off", "--power-cycle", f"touch {mark}", "--replace")
    refused = lab.run(*NULL, "--device", "off", code=3).stderr
    assert "argus-edge device power-cycle off, or add --power-cycle" in refused
    assert not mark.exists()
    lab.run("device", "power-cycle", "off", "--no-wait")
    assert mark.exists()
