"""The verbs as functions of Python: the same artefacts as the commands write."""

import sys
from pathlib import Path

import pytest

from argus_edge import api
from argus_edge.artifacts import read_artifact, write_artifact
from argus_edge.errors import DeviceUnreachableError, MissingDependencyError, UsageError
from argus_edge.schema.judge import JudgeCalibration
from argus_edge.store.records import Store
from tests.support.devices import probed_once  # noqa: F401
from tests.support.reports import bench, evaluation

JUDGE_TESTS = Path(__file__).parent / "judge"


@pytest.fixture
def budget(tmp_path):
    path = tmp_path / "budget.yaml"
    path.write_text("budget: 1\nname: b\ndevice: pi5\nlimits:\n  latency_p50: 70 ms\n")
    return path


@pytest.fixture
def reports(tmp_path):
    """A bench and an eval report of one model, as files."""
    made = {"bench.json": bench("m"), "eval.json": evaluation("m", {("reasoning", "clevr"): 0.8})}
    for name, found in made.items():
        write_artifact(found.artifact, tmp_path / name)
    return [tmp_path / name for name in made]


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home of the test's own for the device `local`."""
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("package", "extra", "call"),
    [
        ("torch", "export", lambda: api.export("clip-vit-b32", "out", random_weights=True)),
        ("PIL.Image", "eval", lambda: api.evaluate("model", {"mine": "photos"}, "out")),
    ],
)
def test_a_package_that_is_not_installed_is_an_error_that_names_the_extra(package, extra, call, monkeypatch):
    monkeypatch.delitem(sys.modules, "argus_edge.exporters.export", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=package) as caught:
        call()
    assert f"argus-edge[{extra}]" in str(caught.value)


@pytest.mark.parametrize("verb", [api.judge_fit, api.judge_evaluate])
def test_a_judge_without_its_packages_is_an_error_that_names_the_extra(verb, monkeypatch):
    monkeypatch.setattr("argus_edge.judge.fitting.find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError, match="scikit-learn"):
        verb(["labelled.csv"])


def test_reports_become_a_score_a_verdict_and_a_sizing(reports, budget):
    score = api.score(reports, budget=budget, replicates=50)
    assert score.kind == "score"
    assert score.models
    assert api.validate(reports, budget=budget).outcome == "pass"
    assert api.size(reports, budget=budget).kind == "sizing"


def test_two_sets_of_runs_are_compared(reports):
    assert api.compare(reports[:1], reports[:1]).kind == "comparison"


def test_a_page_is_written(reports, tmp_path):
    pytest.importorskip("plotly")
    page = api.report(reports, tmp_path / "page.html")
    assert "<html" in page.read_text()


def test_a_judge_is_calibrated_and_applied(tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    monkeypatch.syspath_prepend(str(JUDGE_TESTS))
    from judge_simulation import write_scores

    labelled, fresh = write_scores(tmp_path / "a.csv"), write_scores(tmp_path / "b.csv", seed=1)
    calibration = api.judge_fit([labelled])
    write_artifact(calibration, tmp_path / "c.json")
    assert read_artifact(tmp_path / "c.json", JudgeCalibration) == calibration
    by_file, by_object = api.judge_apply(tmp_path / "c.json", [fresh]), api.judge_apply(calibration, [fresh])
    assert len(by_file.table) == len(by_object.table) == 300
    evaluation = api.judge_evaluate([labelled], splits=2)
    assert evaluation.kind == "judge-evaluation"


@pytest.mark.usefixtures("probed_once", "home")
def test_one_bench_gives_its_report_and_lists_give_a_list():
    how = {"runtime": "null", "duration": 0.1, "warmup": 1}
    report = api.bench(device="local", **how)
    assert report.measurements[0].figures.count > 0
    # Twice the same board: one after the other.
    reports = api.bench([None, None], device=["local"], **how)
    assert [each.device.name for each in reports] == ["local", "local"]
    assert {record.id for record in Store().list()} == {report.run, *(each.run for each in reports)}


@pytest.mark.usefixtures("probed_once", "home")
def test_of_a_list_what_went_well_is_in_the_record():
    said = []

    class Listener:
        def __getattr__(self, name):
            return lambda *_: said.append(name)

    with pytest.raises(DeviceUnreachableError):
        api.bench(device=["nobody@127.0.0.1:9", "local"], runtime="null", duration=0.1, warmup=1, listener=Listener())
    assert [record.device for record in Store().list()] == ["local"]
    assert {"say", "started", "event"} <= set(said)


def test_options_are_checked_before_anything_is_asked():
    with pytest.raises(UsageError, match="--fps"):
        api.bench(runtime="null", fps=30.0)
    with pytest.raises(UsageError, match="nowhere"):
        api.bench(runtime="null", device=["local", "nowhere"])


@pytest.mark.slow
def test_a_tiny_model_is_exported_and_evaluated(tmp_path):
    pytest.importorskip("transformers")
    from argus_edge.evaluate.datasets import sample_folder
    from tests.support import tiny_vlm

    model, said = tiny_vlm.clip(tmp_path / "clip"), []
    manifest = api.export(model, tmp_path / "bundle", say=said.append)
    assert {component.name for component in manifest.components} == {"image", "text"}
    assert said
    report = api.evaluate(tmp_path / "bundle", {"sample": sample_folder()}, tmp_path / "out", limit=4)
    assert report.cells
    assert (tmp_path / "out").is_dir()
