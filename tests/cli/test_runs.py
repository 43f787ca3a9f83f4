"""`argus-edge runs list`: which runs, and evaluations beside benches."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from argus_edge.cli.runs import runs
from argus_edge.store.records import Store
from tests.support.reports import bench, evaluation


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    monkeypatch.setenv("ARGUS_EDGE_STORE", f"sqlite:///{tmp_path / 'runs.db'}")
    store = Store()
    for run, scenario in (("r1", "single-stream"), ("r2", "offline")):
        store.add(
            run, device="pi5", profile="pi5", model="m", model_sha256=None, scenario=scenario, entry="{}", context="{}"
        )
        store.finish(run, bench("m").artifact, state="done")
    store.add_evaluation(evaluation("clip", {("retrieval", "coco"): 0.5}).artifact)
    return store


def listed(*options):
    result = CliRunner().invoke(runs, ["list", "--no-ask", "--json", "-", *options], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return [record["id"] for record in json.loads(result.stdout)]


def test_filters_narrow_the_list(recorded):
    assert listed("--kind", "bench") == ["r2", "r1"]
    assert listed("--scenario", "offline") == ["r2"]
    assert listed("--state", "done", "--device", "pi5") == ["r2", "r1"]
    assert len(listed("--since", "1h")) == 3
    assert listed("--since", "2100-01-01") == []


def test_an_evaluation_is_listed_and_shown(recorded):
    (run,) = listed("--kind", "eval")
    shown = CliRunner().invoke(runs, ["show", run], catch_exceptions=False)
    assert "clip" in shown.output
    assert "retrieval" in shown.output
    table = CliRunner().invoke(runs, ["list", "--no-ask"], catch_exceptions=False).output
    assert "evaluated" in table


def test_a_moment_that_is_none_is_named(recorded):
    result = CliRunner().invoke(runs, ["list", "--since", "yesterday"])
    assert result.exit_code == 2
    assert "2026-11-30, 12h, 7d or 2w" in result.output


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_table_can_be_read_where_the_locale_is_not_unicode(recorded, encoding):
    dot = {"ascii": "*"}.get(encoding, "·")
    for argv, marks in (
        (["show", "r1"], [f"int8 {dot} onnxruntime", "p50"]),
        (["show", "r1", "--json", "-"], ['"schema_version"']),
        (["list", "--no-ask"], ["r1"]),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "argus_edge", "runs", *argv],
            capture_output=True,
            env={**os.environ, "PYTHONIOENCODING": encoding},
            check=False,
        )
        text = done.stdout.decode("utf-8" if "--json" in argv else encoding)
        assert done.returncode == 0, (argv, done.stderr)
        assert all(mark in text for mark in marks), text
        assert "?" not in text


def test_a_command_without_stdout_or_stderr_ends_as_ever(recorded):
    for closed, code, argv in ((1, 0, "list --no-ask"), (1, 0, "show r1"), (2, 2, "show none"), (0, 0, "show r1")):
        shell = f'"$0" -m argus_edge runs {argv} {closed}{"<" if closed == 0 else ">"}&-'
        done = subprocess.run(["/bin/sh", "-c", shell, sys.executable], capture_output=True, text=True, check=False)
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), (argv, done.stderr)
        assert ("pi5" in done.stdout) == (closed == 0)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_behind_stdout_is_no_success(recorded):
    with open("/dev/full", "w") as full:
        for argv in (["list", "--no-ask"], ["show", "r1", "--json", "-"]):
            done = subprocess.run([sys.executable, "-m", "argus_edge", "runs", *argv], stdout=full, check=False)
            assert done.returncode == 7


@pytest.mark.parametrize(
    "argv",
    [
        ("list", "--since", "9999999999w"),
        ("list", "--limit", "99999999999999999999"),
        ("prune", "--older-than", "99999999999d"),
        ("prune", "--older-than", "1m"),
    ],
)
def test_numbers_beyond_the_calendar_or_the_store_are_wrong_usage(recorded, argv):
    assert CliRunner().invoke(runs, argv, catch_exceptions=False).exit_code == 2
