"""A board whose agent fills every free text with escape sequences, markup and formulas: none of it takes effect."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from argus_edge.cli.main import cli
from argus_edge.devices import zipapp
from argus_edge.schema.bench import BenchReport

MARK = "PWNED"
# A title, a cleared screen, a 8-bit CSI, text turned round, a line of its own, markup, a formula.
POISON = f"=1+1\x1b]0;{MARK}\x07\x1b[2J\x9b31m\u202e\r\n\x08<script>alert(1)</script>"
STEERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
# Words of the protocol itself, whose values are checked against lists; paths and ids that commands need.
KEPT = (
    *(
        "run",
        "event",
        "phase",
        "state",
        "kind",
        "path",
        "sha256",
        "boot_id",
        "agent_sha256",
        "runtime",
        "arch",
        "check",
    ),
    *("severity", "python", "providers", "providers_used", "provider_requested", "stopped_by", "name", "samples_file"),
    *("values", "command"),
)

WRITE = '''

_POISON, _KEPT, _dumps = %r, %r, json.dumps


def _poisoned(value, key=None):
    if isinstance(value, dict) and "scenario" not in value:  # a job is what the host sent
        return {name: inner if name in _KEPT else _poisoned(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_poisoned(inner, key) for inner in value]
    return value[:20] + _POISON if isinstance(value, str) else value


class _Json:
    """json, whose dumps poisons."""

    loads, JSONDecodeError = json.loads, json.JSONDecodeError

    @staticmethod
    def dumps(document, **how):
        return _dumps(_poisoned(document), **how)

    @staticmethod
    def dump(document, file, **how):
        file.write(_dumps(_poisoned(document), **how))


json = _Json
'''


@pytest.fixture
def hostile(monkeypatch, tmp_path):
    """An agent, in the place of ours, that poisons all that it writes; and the command line in a home of its own."""
    sources = zipapp._sources

    class Source:
        def __init__(self, data: bytes) -> None:
            self.data = data

        def read_bytes(self) -> bytes:
            return self.data

    def poisoned(folder, prefix=""):
        found = []
        for name, source in sources(folder, prefix):
            data = source.read_bytes()
            if name == "wire.py":
                data += (WRITE % (POISON, KEPT)).encode()
            elif name == "home.py":
                data = data.replace(b"import json\n", b"from .wire import json\n")
                assert b"from .wire import json" in data
            found.append((name, Source(data)))
        return found

    monkeypatch.setattr(zipapp, "_sources", poisoned)
    for variable, place in (("HOME", "."), ("ARGUS_EDGE_CONFIG", "config"), ("ARGUS_EDGE_DATA", "data")):
        monkeypatch.setenv(variable, str(tmp_path / place))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def run(*words: str, code: tuple[int, ...] = (0,)) -> str:
        done = CliRunner().invoke(cli, words, prog_name="argus-edge")
        raised = done.exception
        said = done.output + (str(raised) if raised and not isinstance(raised, SystemExit) else "")
        found = getattr(raised, "exit_code", done.exit_code)
        assert found in code, said
        assert not STEERS.search(said.replace("\x1b[0m", "")), repr(STEERS.search(said))
        return said

    return run


def test_the_poison_is_really_there(hostile, tmp_path):
    from argus_edge.devices.deploy import deploy_agent
    from argus_edge.devices.inventory import local_entry
    from argus_edge.devices.local import LocalTransport

    facts = deploy_agent(LocalTransport(), local_entry()).probe(runtimes=[])
    assert MARK in facts.model_dump_json()
    assert "\\u001b]0;" in facts.model_dump_json() or "\x1b]0;" in facts.model_dump_json()


def test_probe_and_doctor(hostile):
    hostile("device", "probe", "local")
    hostile("device", "doctor", "local", code=(0, 4))


def test_a_bench_its_report_and_the_pages_made_of_it(hostile, tmp_path):
    hostile("bench", "--device", "local", "--runtime", "null", "--duration", "0.3s", "--out", "r.json")
    report = BenchReport.model_validate_json(Path("r.json").read_text())
    assert MARK in report.model_dump_json(), "the report is to hold what the board said, for whoever looks"
    hostile("runs", "list")
    hostile("runs", "show", report.run)
    hostile("report", "r.json", "--html", "page.html")
    page = Path("page.html").read_text()
    assert "<script>alert" not in page
    assert "\x1b" not in page
    assert "\x9b" not in page
    Path("budget.yaml").write_text("budget: 1\nname: any\nlimits:\n  latency_p50: 1 s\n")
    hostile("validate", "r.json", "--budget", "budget.yaml", "--junit", "j.xml", code=(0, 1, 8))
    assert not re.search(r"[\x00-\x08\x0e-\x1f]|<script>", Path("j.xml").read_text())


def test_a_fault_of_the_board(hostile, tmp_path):
    said = hostile("bench", str(bad_model(tmp_path)), "--device", "local", "--duration", "0.3s", code=(4, 5))
    assert "error" in said.lower() or MARK not in said


def bad_model(folder: Path) -> Path:
    """A graph that no runtime loads: its one operator is nobody's."""
    from onnx import TensorProto, helper

    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("Nobody", ["x"], ["y"])], "g", [x], [y])
    path = folder / "bad.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path
