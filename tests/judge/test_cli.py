"""`judge fit`, `apply` and `evaluate` as a user meets them."""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner
from judge_simulation import write_scores

from argus_edge.artifacts import read_artifact
from argus_edge.cli.judge import judge as command
from argus_edge.errors import InputError, MissingDependencyError, UsageError
from argus_edge.judge.conformal import beta_binomial_band
from argus_edge.judge.groups import Grouping
from argus_edge.judge.scale import Intervals
from argus_edge.schema.judge import JudgeCalibration, JudgeEvaluation


def call(*arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments], catch_exceptions=False)


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def calibration(scores, tmp_path):
    path = tmp_path / "judge.json"
    call("fit", scores, "--labels", "human", "--alpha", "0.1", "--by", "task", "--out", path)
    return path


def test_fit_then_apply(calibration, tmp_path):
    new = write_scores(tmp_path / "new.csv", 400, seed=1)
    out = tmp_path / "intervals.csv"
    result = call("apply", calibration, new, "--out", out)
    rows = rows_of(out)
    assert "400 rows, 0 with an infinite interval" in result.output
    covered = [float(row["lower"]) <= float(row["human_score"]) <= float(row["upper"]) for row in rows]
    # Coverage is itself random: what 999 of 1000 calibrations of this size reach.
    assert np.mean(covered) >= beta_binomial_band(150, 400, 0.1, level=0.998)[0]
    assert {row["group"] for row in rows} == {"task-0", "task-1"}
    # Integer intervals need no adjustment.
    assert all(float(row["lower"]) == float(row["lower_adjusted"]) for row in rows)


def test_writing_a_row_does_not_go_over_all_rows_again(calibration, tmp_path, monkeypatch):
    asked = []
    middle = Intervals.midpoint.fget
    monkeypatch.setattr(Intervals, "midpoint", property(lambda found: asked.append(1) or middle(found)))
    new = write_scores(tmp_path / "new.csv", 100, seed=1)
    call("apply", calibration, new, "--out", tmp_path / "intervals.csv")
    assert len(asked) == 1


def test_the_calibration_holds_what_score_needs(calibration):
    found = read_artifact(calibration, JudgeCalibration)
    assert (found.method, found.by, found.alpha, found.levels, found.rows) == ("integer", "task", 0.1, 5, 300)
    assert [task.task for task in found.tasks] == ["task-0", "task-1"]
    assert {task.advice for task in found.tasks} <= {"score", "rank only"}
    assert all(task.reason and task.labels_note for task in found.tasks)
    assert [entry.task for entry in found.judged] == ["task-0", "task-1"]
    for entry in found.judged:
        assert entry.unit_mean == pytest.approx((entry.mean - 1) / 4)
        assert entry.lower < entry.mean < entry.upper
    assert found.sources[0].sha256


def test_few_labels_and_many_scores_make_powered_means_and_ranks(tmp_path):
    def edit(table):
        for index, row in enumerate(table):
            row["model"] = "good" if index % 2 else "bad"
            if row["model"] == "bad":
                for k in range(1, 6):
                    row[f"logprob_{k}"] = "-0.01" if k == 1 else "-6"
            if index >= 400:
                row["human_score"] = ""

    path = write_scores(tmp_path / "many.csv", 2000, tasks=1, model="", edit=edit)
    call("fit", path, "--out", tmp_path / "judge.json")
    found = read_artifact(tmp_path / "judge.json", JudgeCalibration)
    good, bad = sorted(found.judged, key=lambda entry: entry.rank)
    assert (good.model, good.rank, good.models, bad.rank) == ("good", 1, 2, 2)
    assert (good.labelled, good.unlabelled) == (200, 800)
    assert good.weight > 0.3
    assert good.width_ratio < 0.9
    assert any("1600 rows without a human score" in warning for warning in found.warnings)


@pytest.mark.parametrize("method", ["integer-cross", "naive", "ordinal-aps"])
def test_other_methods_are_kept_in_the_file(scores, tmp_path, method):
    if method == "naive":
        pytest.importorskip("crepes")
    out = tmp_path / "judge.json"
    call("fit", scores, "--method", method, "--out", out)
    call("apply", out, scores, "--out", tmp_path / "intervals.csv")
    rows = rows_of(tmp_path / "intervals.csv")
    assert (
        np.mean([float(r["lower_adjusted"]) <= float(r["human_score"]) <= float(r["upper_adjusted"]) for r in rows])
        > 0.85
    )


def test_difficulty_is_learned_on_rows_of_its_own(scores, tmp_path):
    call("fit", scores, "--by", "difficulty", "--out", tmp_path / "judge.json")
    found = read_artifact(tmp_path / "judge.json", JudgeCalibration)
    assert [group.name for group in found.groups] == ["easy", "medium", "hard"]
    assert sum(group.calibration_rows for group in found.groups) == pytest.approx(120, abs=3)  # half of four fifths
    call("apply", tmp_path / "judge.json", scores, "--out", tmp_path / "intervals.csv")
    assert {row["group"] for row in rows_of(tmp_path / "intervals.csv")} == {"easy", "medium", "hard"}


def test_difficulty_tells_narrow_human_scores_from_wide_ones():
    rng = np.random.default_rng(0)
    features = rng.standard_normal((600, 5))
    spread = np.where(features[:, 0] > 0.5, 2, np.where(features[:, 0] > -0.5, 1, 0))
    labels = np.clip(3 + spread * rng.choice([-1, 1], 600), 1, 5)
    grouping = Grouping.of_difficulty(features, labels, 0)
    assert grouping.names == ["easy", "medium", "hard"]
    groups = np.searchsorted(grouping.cuts, grouping.forest(features), side="right")
    means = [spread[groups == number].mean() for number in range(3)]
    assert means[0] < 0.3 < means[1] < 1.7 < means[2]
    again = Grouping.from_state("difficulty", grouping.state())
    assert np.array_equal(again.forest(features), grouping.forest(features))
    with pytest.raises(ValueError, match="cuts"):
        Grouping.from_state("difficulty", {**grouping.state(), "cuts": [np.nan, 1.0]})
    assert Grouping.of_difficulty(features[:10], labels[:10], 0).names == ["all"]


def test_several_judges_together(tmp_path):
    files = [write_scores(tmp_path / f"{name}.csv", 300, judge=name) for name in "ab"]
    call("fit", *files, "--out", tmp_path / "judge.json")
    assert read_artifact(tmp_path / "judge.json", JudgeCalibration).judges == ["a", "b"]
    call("apply", tmp_path / "judge.json", *files, "--out", tmp_path / "intervals.csv")
    with pytest.raises(InputError, match="calibration is for a, b"):
        call("apply", tmp_path / "judge.json", *files[::-1], "--out", tmp_path / "intervals.csv")


def test_evaluate_reports_everything_and_the_map_needs_no_network(tmp_path):
    pytest.importorskip("plotly")
    files = [write_scores(tmp_path / f"{name}.csv", 400, judge=name, tasks=3) for name in "ab"]
    page = tmp_path / "judge.html"
    result = call(
        "evaluate", *files, "--methods", "integer,ordinal-aps", "--splits", "3", "--html", page, "--json",
        tmp_path / "evaluation.json",
    )  # fmt: skip
    found = read_artifact(tmp_path / "evaluation.json", JudgeEvaluation)
    assert [judge.judge for judge in found.judges] == ["a", "b", "a + b"]
    first = found.judges[0]
    assert [method.method for method in first.methods] == ["integer", "ordinal-aps"]
    assert (first.methods[0].by, first.methods[1].by) == ("task", None)
    assert {part.name for part in first.methods[0].by_level} <= {"1", "2", "3", "4", "5"}
    assert {part.name for part in first.methods[0].by_error} <= {"0", "1", "2", "3", "4"}
    assert found.agreement[0].judges == ("a", "b")
    assert {fusion.method for fusion in found.fusion} == {"integer", "ordinal-aps"}
    assert "advice" in result.output
    text = page.read_text()
    body = text[text.index("<body>") :]
    assert "src=" not in body
    assert 'href="http' not in body
    assert "task-2" in body


@pytest.mark.parametrize("verb", [("fit", "--out", "never.json"), ("evaluate", "--splits", "2")])
def test_a_group_for_every_row_is_refused_by_the_column_s_name(scores, verb):
    with pytest.raises(InputError, match=r"'sample_id' has \d+ values in \d+ rows") as found:
        call(verb[0], scores, "--by", "sample_id", *verb[1:])
    assert "task" in found.value.next_step


@pytest.mark.parametrize("verb", [("fit", "--out", "never.json"), ("evaluate", "--splits", "2")])
def test_a_column_that_is_not_there_is_answered_with_those_that_are(scores, verb):
    with pytest.raises(InputError, match="no column 'nope'") as found:
        call(verb[0], scores, "--by", "nope", *verb[1:])
    assert "human_score" in found.value.next_step


def test_json_on_stdout_is_clean(scores):
    result = CliRunner().invoke(
        command, ["evaluate", str(scores), "--splits", "2", "--json", "-"], catch_exceptions=False
    )
    assert json.loads(result.stdout)["kind"] == "judge-evaluation"


def test_names_in_a_table_are_text_on_the_page(tmp_path):
    pytest.importorskip("plotly")

    def edit(table):
        for row in table:
            row["task"] = "<script>alert(1)</script>"

    path = write_scores(tmp_path / "s.csv", 100, edit=edit)
    call("evaluate", path, "--splits", "2", "--html", tmp_path / "judge.html")
    text = (tmp_path / "judge.html").read_text()
    assert "<script>alert" not in text[text.index("<body>") :]


class TestBadInput:
    def test_a_task_with_three_rows_is_infinite_and_named(self, tmp_path):
        def edit(table):
            for row in table[:3]:
                row["task"] = "rare"

        path = write_scores(tmp_path / "s.csv", 200, edit=edit)
        result = call("fit", path, "--by", "task", "--out", tmp_path / "judge.json")
        assert "calibration rows in group 'rare'; coverage 0.9 needs at least 9 (lines 2, 3, 4)" in result.stderr
        rare = next(
            task for task in read_artifact(tmp_path / "judge.json", JudgeCalibration).tasks if task.task == "rare"
        )
        assert rare.advice == "do not use"
        assert rare.labels_needed is None
        assert "a width shows from about 23 labelled rows" in rare.labels_note
        call("apply", tmp_path / "judge.json", path, "--out", tmp_path / "out.csv")
        row = rows_of(tmp_path / "out.csv")[0]
        assert (row["lower"], row["upper"], row["lower_adjusted"], row["upper_adjusted"]) == ("-inf", "inf", "1", "5")
        assert row["infinite"] == "yes"
        assert "needs at least 9" in row["reason"]

    def test_too_few_rows_for_alpha_give_infinite_intervals_with_the_reason(self, tmp_path):
        path = write_scores(tmp_path / "s.csv", 14, tasks=1)
        result = call("fit", path, "--alpha", "0.05", "--out", tmp_path / "judge.json")
        assert "coverage 0.95 needs at least 19" in result.stderr
        call("apply", tmp_path / "judge.json", path, "--out", tmp_path / "out.csv")
        assert all(row["infinite"] == "yes" for row in rows_of(tmp_path / "out.csv"))

    def test_too_few_rows_for_anything(self, tmp_path):
        with pytest.raises(InputError, match="at least 10 are needed"):
            call("fit", write_scores(tmp_path / "s.csv", 5), "--out", tmp_path / "judge.json")
        assert not (tmp_path / "judge.json").exists()

    def test_an_unknown_task_is_infinite_and_named(self, calibration, tmp_path):
        def edit(table):
            table[4]["task"] = "new"

        path = write_scores(tmp_path / "new.csv", 50, edit=edit)
        result = call("apply", calibration, path, "--out", tmp_path / "out.csv")
        assert "its task was not among the calibrated rows (line 6)" in result.stderr

    def test_missing_features_are_infinite_and_named(self, calibration, tmp_path):
        def edit(table):
            table[0]["logprob_1"] = ""

        path = write_scores(tmp_path / "new.csv", 50, edit=edit)
        result = call("apply", calibration, path, "--out", tmp_path / "out.csv")
        assert "without all log-probabilities" in result.stderr
        assert rows_of(tmp_path / "out.csv")[0]["reason"] == "log-probabilities missing"

    def test_a_calibration_of_another_scale(self, calibration, tmp_path):
        with pytest.raises(InputError, match=r"scale 1\.\.5, the table has 1\.\.7"):
            call("apply", calibration, write_scores(tmp_path / "n.csv", 20, levels=7), "--out", tmp_path / "o.csv")
        assert not (tmp_path / "o.csv").exists()

    def test_a_calibration_of_another_judge(self, calibration, tmp_path):
        new = write_scores(tmp_path / "n.csv", 20, judge="somebody")
        with pytest.raises(InputError, match="calibration is for scores; the table is of somebody"):
            call("apply", calibration, new, "--out", tmp_path / "o.csv")

    def test_scores_that_look_like_another_judges_are_pointed_out(self, calibration, tmp_path):
        def edit(table):
            for row in table:
                for k in range(1, 6):
                    row[f"logprob_{k}"] = str(float(row[f"logprob_{k}"]) * 0.2)

        path = write_scores(tmp_path / "n.csv", 200, seed=3, edit=edit)
        assert "distributed otherwise" in call("apply", calibration, path, "--out", tmp_path / "o.csv").stderr
        path = write_scores(tmp_path / "n.csv", 200, seed=4)
        assert "distributed otherwise" not in call("apply", calibration, path, "--out", tmp_path / "o.csv").stderr

    @pytest.mark.parametrize("place", ["state", "grouping", "feature_quantiles"])
    def test_a_calibration_that_was_tampered_with(self, calibration, tmp_path, place):
        document = json.loads(calibration.read_text())
        document[place] = {"values": 3}
        calibration.write_text(json.dumps(document))
        with pytest.raises(InputError, match=r"hold together|match"):
            call("apply", calibration, write_scores(tmp_path / "n.csv", 60), "--out", tmp_path / "o.csv")

    def test_no_labels(self, tmp_path):
        def edit(table):
            for row in table:
                del row["human_score"]

        with pytest.raises(InputError, match="no column of human scores"):
            call("fit", write_scores(tmp_path / "s.csv", 30, edit=edit), "--out", tmp_path / "judge.json")

    @pytest.mark.parametrize(
        "arguments",
        [["--alpha", "0"], ["--alpha", "1"], ["--method", "magic"], ["--scale", "0..5"], ["--floor", "1"]],
    )
    def test_options_that_make_no_sense(self, scores, tmp_path, arguments):
        with pytest.raises(UsageError):
            call("fit", scores, "--out", tmp_path / "judge.json", *arguments)

    @pytest.mark.parametrize(("method", "module"), [("integer", "sklearn"), ("naive", "crepes"), ("cqr", "mapie")])
    def test_a_package_that_is_missing(self, scores, tmp_path, monkeypatch, method, module):
        from argus_edge.judge import fitting

        monkeypatch.setattr(fitting, "find_spec", lambda name: None if name == module else name)
        with pytest.raises(MissingDependencyError) as caught:
            call("fit", scores, "--method", method, "--out", tmp_path / "judge.json")
        assert caught.value.next_step == 'pip install "argus-edge[judge]"'

    def test_one_method_at_a_time_is_fitted(self, scores, tmp_path):
        with pytest.raises(UsageError, match="one method"):
            call("fit", scores, "--method", "all", "--out", tmp_path / "judge.json")

    def test_a_column_that_is_not_there(self, scores, tmp_path):
        with pytest.raises(InputError, match="no column 'dataset'"):
            call("fit", scores, "--by", "dataset", "--out", tmp_path / "judge.json")
