"""`argus-edge bench` on the command line: bad input with its exit code, JSON, and where reports go."""

import json
import subprocess
import sys
from typing import get_args

import numpy as np
import pytest

from argus_edge.artifacts import read_artifact
from argus_edge.cli import bench as command
from argus_edge.cli.main import main
from argus_edge.schema.agent import Part, Scenario
from argus_edge.schema.bench import BenchReport
from tests.support.devices import probed_once  # noqa: F401


def call(*argv):
    """Run the command line in this process; returns the exit code."""
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in argv])
    return caught.value.code


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()


def test_the_options_are_the_schemas_own():
    assert set(get_args(Part.model_fields["runtime"].annotation)) | {"auto"} == set(command.RUNTIMES)
    assert get_args(Part.model_fields["provider"].annotation) == command.PROVIDERS
    assert get_args(Scenario.model_fields["name"].annotation) == command.SCENARIOS


def test_help_is_fast_to_import():
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from argus_edge.cli.main import main\ntry: main(['bench', '--help'])\n"
            "finally: print(sorted({'numpy', 'onnx', 'torch', 'pydantic', 'sqlalchemy'} & set(sys.modules)))",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout.rstrip().endswith("[]")


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        ((), 2, ["--device local"]),
        (("none.onnx", "--device", "local"), 2, ["No such model", "none.onnx"]),
        (("empty.onnx", "--device", "local"), 2, ["empty"]),
        (("text.onnx", "--device", "local"), 2, ["Not an ONNX model"]),
        (("--device", ""), 2, ["No device is named"]),
        (("--device", "local", "--inventory", "none.yaml"), 2, ["no such inventory", "none.yaml"]),
        (("--device", "local", "--power-cycle"), 2, ["no device here has a command", "device add NAME --power-cycle"]),
        (("pointer.onnx", "--device", "local"), 2, ["Git LFS", "git lfs pull"]),
        (("a folder", "--device", "local"), 2, ["no bundle", "argus-edge export 'a folder' "]),
        (
            ("--device", "local,me@127.0.0.1:1", "--out", "r.json"),
            2,
            ["r.json is one file", "2 reports", "--json FILE"],
        ),
        (("--device", "local,me@127.0.0.1:1", "--out", "text.onnx"), 2, ["is one file", "--out reports/"]),
        (("--device", "nowhere"), 2, ["nowhere", "argus-edge device add nowhere"]),
        (("--device", "local", "--runtime", "litert"), 2, ["litert", "--runtime onnxruntime"]),
        (("--device", "local", "--fps", "30"), 2, ["--scenario paced"]),
        (("--device", "local", "--scenario", "server"), 2, ["--latency-bound 50ms"]),
        (("--device", "local", "--latency-bound", "fast"), 2, ["50ms"]),
        (("--device", "local", "--duration", "-1"), 2, ["is not a time"]),
        (("--device", "local", "--scenario", "paced", "--fps", "nan"), 2, ["--fps", "not a finite number"]),
        (("--device", "local", "--warmup", "9" * 20), 2, ["0<=x<=1000000"]),
        (("--device", "local", "--duration", "inf"), 2, ["is not a time"]),
        (("--device", "local", "--duration", "100000"), 2, ["86,400"]),
        (("--device", "local", "--shape", "x"), 2, ["--shape", "NAME=1x3x224x224"]),
        (("--device", "local", "--shape", "x=1x2"), 2, ["does not have", "data_0"]),
        (("--device", "local", "--label", "x"), 2, ["KEY=VALUE"]),
        (("--device", "local", "--input", "none.npz"), 2, ["none.npz"]),
        (("--device", "local", "--input", "text.onnx"), 2, ["Not a readable", ".npz"]),
        (("--device", "local", "--meter", "none.csv"), 2, ["none.csv"]),
        (("--device", "local", "--meter", "text.onnx"), 2, ["time,power_w"]),
        (("--device", "local", "--batch", "2"), 2, ["--batch asks for 2"]),
        (("--resume", "nothing"), 2, ["no run", "runs list"]),
        (("--resume", "x", "--until-decided", "b.yaml"), 2, ["runs of its own", "leave out --resume"]),
        (("--resume",), 2, ["Come back to what", "--resume RUN", "runs list"]),
        (("--resume", "x", "--device", "local"), 2, ["--resume RUN takes no", "put --resume at its end"]),
        (("m.onnx", "--resume", "x"), 2, ["--resume RUN takes no MODEL: the run has its own"]),
        (("--resume", "x", "--duration", "9", "--label", "a=b", "--strict"), 2, ["takes no --duration, --label:"]),
        (("--device", "local", "--out", "/proc/none/report.json"), 7, ["Cannot write", "/proc/none"]),
        (("--device", "local", "--runtime", "cuda"), 2, ["onnxruntime"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_bad_input(argv, code, words, tmp_path, capfd):
    (tmp_path / "empty.onnx").touch()
    (tmp_path / "text.onnx").write_text("hello")
    (tmp_path / "pointer.onnx").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    (tmp_path / "a folder").mkdir()
    assert call("bench", *argv) == code
    out, err = capfd.readouterr()
    assert out == ""
    assert "Traceback" not in err
    for word in words:
        assert word in err


def test_an_unwritable_record_of_runs(tmp_path, monkeypatch, capfd):
    (tmp_path / "file").touch()
    monkeypatch.setenv("ARGUS_EDGE_DATA", str(tmp_path / "file" / "below"))
    assert call("bench", "--device", "local", "--runtime", "null") == 7
    assert "where:" in capfd.readouterr().err


@pytest.mark.usefixtures("probed_once")
def test_json_on_stdout_is_clean_and_the_report(tmp_path, capfd):
    assert (
        call("bench", "--device", "local", "--runtime", "null", "--duration", "0.2", "--json", "-", "--label", "a=b")
        == 0
    )
    out, err = capfd.readouterr()
    report = BenchReport.model_validate(json.loads(out))
    assert report.labels == {"a": "b"}
    assert report.setup.command.startswith("argus-edge")
    assert "null on local" in err
    assert list(tmp_path.glob("*.json")) == []
    # The record has it under its id, or the beginning of it.
    assert call("runs", "show", report.run[:-2], "--json", "again.json") == 0
    assert read_artifact("again.json", BenchReport) == report
    out, _ = capfd.readouterr()
    assert "p50" in out
    assert call("runs", "list", "--json", "-") == 0
    (row,) = json.loads(capfd.readouterr().out)
    assert (row["id"], row["state"]) == (report.run, "done")
    assert call("runs", "stop", report.run) == 2
    assert call("runs", "prune", "--older-than", "0h") == 0
    assert call("runs", "show", report.run) == 0
    assert call("runs", "prune", "--older-than", "0h", "--yes") == 0
    assert call("runs", "show", report.run) == 2


@pytest.mark.usefixtures("probed_once")
def test_the_table_and_the_report_file(tmp_path, capfd):
    assert call("bench", "--device", "local", "--runtime", "null", "--duration", "0.2", "--out", "folder/") == 0
    out, err = capfd.readouterr()
    (path,) = (tmp_path / "folder").iterdir()
    assert f"report: folder/{path.name}" in err
    report = read_artifact(path, BenchReport)
    assert report.measurements[0].latency.count == report.measurements[0].figures.count
    assert "p99" in out
    assert "\x1b" not in out, "no colours without a terminal"
    assert "peak RSS" in out
    assert len(report.run) <= 80


@pytest.mark.usefixtures("probed_once")
def test_strict_exits_with_one_where_the_run_is_not_valid(monkeypatch, capfd):
    from argus_edge.bench import validity
    from argus_edge.schema.bench import ValidityCause

    monkeypatch.setattr(validity, "CHECKS", (lambda seen: [ValidityCause(code="drifting", detail="8 %")],))
    argv = ["bench", "--device", "local", "--runtime", "null", "--duration", "0.1", "--json", "-"]
    assert call(*argv) == 0
    assert call(*argv, "--strict") == 1
    assert "drifting" in capfd.readouterr().err
    monkeypatch.setattr(validity, "CHECKS", ())
    assert call(*argv, "--strict") == 0


@pytest.mark.usefixtures("probed_once")
def test_several_devices_give_a_list(tmp_path, capfd):
    argv = ["bench", "--device", "local,nobody@127.0.0.1:9", "--runtime", "null", "--duration", "0.1", "--json", "-"]
    assert call(*argv) == 3
    out, err = capfd.readouterr()
    assert len(json.loads(out)) == 1
    assert "missing: 1 of 2" in err
    assert "null on 127.0.0.1: The device refused the connection." in err


def test_a_meter_is_read_before_anything_runs(tmp_path):
    (tmp_path / "m.csv").write_text("time,power_w\n1,2\n")
    np.savez(tmp_path / "in.npz", wrong=np.zeros(1))
    assert call("bench", "--device", "local", "--meter", "m.csv", "--input", "in.npz") == 2


def test_schema(capfd):
    assert call("schema") == 0
    assert "bench" in capfd.readouterr().out.split()
    assert call("schema", "bench") == 0
    assert json.loads(capfd.readouterr().out)["title"] == "BenchReport"
    assert call("schema", "nothing") == 2
