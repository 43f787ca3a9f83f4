"""`argus-edge eval` and `argus-edge data` as a user types them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from argus_edge.cli.data import data
from argus_edge.cli.evaluate import evaluate
from argus_edge.cli.main import main
from argus_edge.errors import HostError, InterruptedRunError, shipped_folder

pytest.importorskip("PIL")
pytest.importorskip("pyarrow")
pytest.importorskip("scipy")

MODELS = (Path(__file__).parent.parent / "evaluate" / "support_models.py").read_text()


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "rule_models.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("rule_models", None)


def test_a_first_run_offline(here):
    runner = CliRunner()
    wrote = runner.invoke(data, ["sample", "--out", "sample"], catch_exceptions=False)
    assert "20 photographs" in wrote.stdout
    checked = runner.invoke(data, ["check", "mine=sample", "--json", "-"], catch_exceptions=False)
    assert json.loads(checked.stdout)[0]["ok"] is True
    measured = runner.invoke(
        evaluate, ["rule_models:Talker", "--data", "mine=sample", "--threads", "1"], catch_exceptions=False
    )
    assert measured.exit_code == 0
    assert "capability (P)" in measured.stdout
    assert "nothing was perturbed" in measured.stdout
    assert "runs/rule_models-Talker/eval.json" in measured.stderr
    assert (here / "runs" / "rule_models-Talker" / "eval.json").is_file()


def test_json_on_stdout_is_clean(here):
    result = CliRunner().invoke(
        evaluate, ["rule_models:Colours", "--data", "sample", "--threads", "1", "--json", "-"], catch_exceptions=False
    )
    assert json.loads(result.stdout)["kind"] == "eval"


def test_document_frequencies_of_one_set_serve_another(here):
    wrote = CliRunner().invoke(data, ["idf", "sample", "--out", "idf.json.gz"], catch_exceptions=False)
    assert "over 20 images" in wrote.stdout
    options = "rule_models:Talker --data sample --threads 1 --json - --tasks captioning --limit 3 --idf idf.json.gz"
    result = CliRunner().invoke(evaluate, options.split(), catch_exceptions=False)
    assert json.loads(result.stdout)["cells"][0]["idf_sha256"] in wrote.stdout


def test_check_names_the_page_where_it_is(here):
    result = CliRunner().invoke(data, ["check", "mine=none"], catch_exceptions=False)
    assert f"see {shipped_folder()}/docs/your-own-images.md" in result.stdout


def test_check_says_what_is_missing_and_fails(here):
    (here / "coco").mkdir()
    result = CliRunner().invoke(data, ["check", "coco=coco"], catch_exceptions=False)
    assert result.exit_code == 2
    assert "missing: dataset_coco.json" in result.stdout
    assert "cs.stanford.edu" in result.stdout


def test_sample_does_not_write_over_a_folder(here, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["data", "sample", "--out", str(here)])
    assert caught.value.code == 2
    assert "not empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--data", "cocoa=/x"], "Unknown dataset"),
        (["--data", "coco=/no/such"], "missing: dataset_coco.json"),
        (["--data", "sample", "--perturb", "fogg"], "Unknown perturbation"),
        (["--data", "sample", "--perturb", "fog:0-9"], "Severities go from 1 to 5"),
        (["--data", "sample", "--tasks", "flying"], "Unknown task"),
        (["--data", "sample", "--compute", "tpu"], "Unknown compute device"),
        (["--data", "sample", "--split", "coco"], "is not NAME=SPLIT"),
        (["--data", "sample", "--tasks", "captioning"], "Nothing can be evaluated"),
        (["--data", "sample", "--prompts", "none.yaml"], "Cannot read"),
        (["--data", "sample", "--features", "none.npz"], "No such file of features"),
    ],
)
def test_mistakes_end_with_2_and_a_next_step(here, capsys, options, message):
    with pytest.raises(SystemExit) as caught:
        main(["eval", "rule_models:Colours", *options, "--threads", "1"])
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_prompts_of_ones_own_are_in_the_report(here):
    Path("prompts.yaml").write_text('statement:\n  default: "{question} {choice}"\n')
    result = CliRunner().invoke(
        evaluate,
        [*["rule_models:Colours", "--data", "sample", "--threads", "1", "--json", "-", "--prompts", "prompts.yaml"]],
        catch_exceptions=False,
    )
    assert json.loads(result.stdout)["prompts"]["statement.default"] == "{question} {choice}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("statement: {default: '{question}'}", r"must have \{choice\}, \{question\}"),
        ("answer: {default: '{question.__class__}'}", r"must have \{question\}"),
        ("answer: {default: '{question!r}'}", "plain"),
        ("sing: {default: x}", "No task 'sing'"),
        ("answer: 3", "expected family"),
        ("[1", "not YAML"),
        ("answer: {default: '{'}", "not a template"),
    ],
)
def test_prompts_that_do_not_hold_are_refused(tmp_path, text, message):
    from argus_edge.errors import InputError
    from argus_edge.evaluate.prompts import load_prompts

    (tmp_path / "prompts.yaml").write_text(text)
    with pytest.raises(InputError, match=message):
        load_prompts(tmp_path / "prompts.yaml")


def test_a_sample_that_does_not_fit_leaves_nothing(tmp_path, monkeypatch):
    import errno
    import shutil

    copied = []

    def copy(source, target):
        if len(copied) == 3:
            raise OSError(errno.ENOSPC, "No space left on device", str(target))
        copied.append(target.write_bytes(source.read_bytes()))

    monkeypatch.setattr(shutil, "copyfile", copy)
    with pytest.raises(HostError, match="disk is full"):
        CliRunner().invoke(data, ["sample", "--out", str(tmp_path / "sample")], catch_exceptions=False)
    assert len(copied) == 3
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_evaluation_says_how_to_go_on(tmp_path, monkeypatch):
    from argus_edge.evaluate import runner

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("class Nothing:\n    def caption(self, images, prompt): ...\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(runner, "evaluate", interrupted)
    with pytest.raises(InterruptedRunError) as caught:
        CliRunner().invoke(evaluate, ["mine:Nothing", "--data", "sample", "--out", "out"], catch_exceptions=False)
    assert "same command again" in caught.value.next_step


def test_figures_that_are_nearly_nothing_do_not_show_as_nothing():
    from argus_edge.cli.evaluate import _figure

    assert [_figure(value) for value in (0.0, 2.3e-7, 0.12345)] == ["0.0000", "2.3e-07", "0.1235"]
