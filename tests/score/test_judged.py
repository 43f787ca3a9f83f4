"""Judged metrics in the score: what enters, with which interval, and what only ranks or is left out."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from argus_edge.errors import InputError
from argus_edge.report.score_words import score_notes
from argus_edge.score.assemble import score_reports
from argus_edge.score.judged import judged_replicates
from tests.support.reports import bench, calibration, evaluation, judged, sha

CAPTIONED = {("reasoning", "coco"): 0.5, ("reasoning", "clevr"): 0.7}


def test_a_judged_cell_enters_capability_and_consistency_with_its_unit_mean() -> None:
    report = score_reports([evaluation("a", CAPTIONED)], [], [calibration(judged("a", 3.4))], replicates=50)
    cells = {(cell.task, cell.dataset): cell for cell in report.models[0].scores.cells}
    cell = cells["captioning", "coco"]
    assert cell.raw == cell.s == pytest.approx(0.6)
    assert cell.chance == 0
    assert cell.judged == "a judge"
    assert cell.replaced is None
    # coco: mean of reasoning .5 and captioning .6; clevr: .7.
    assert report.models[0].scores.capability.value == pytest.approx((0.55 + 0.7) / 2)
    assert report.sources[-1].name == "a judge.judge.json"


def test_where_the_eval_report_has_the_cell_the_judged_metric_takes_its_place() -> None:
    place = ("reasoning", "coco")
    found = calibration(judged("a", 4.6, cell=place, task="reasoning"))
    report = score_reports([evaluation("a", {place: 0.5})], [], [found], replicates=20)
    (cell,) = report.models[0].scores.cells
    assert (cell.raw, cell.replaced) == (pytest.approx(0.9), 0.5)
    assert report.models[0].scores.capability.value == pytest.approx(0.9)


def test_the_interval_of_capability_is_that_of_the_judged_mean_where_that_is_the_only_cell() -> None:
    from scipy.stats import t

    place = ("reasoning", "coco")
    found = calibration(judged("a", 3.0, error=0.2, cell=place, task="reasoning", labelled=22))
    part = score_reports([evaluation("a", {place: 0.5})], [], [found], replicates=20_000).models[0].scores.capability
    reach = t.ppf(0.975, 20) * 0.05
    assert (part.low, part.high) == (pytest.approx(0.5 - reach, abs=0.003), pytest.approx(0.5 + reach, abs=0.003))


def test_the_less_sure_the_judge_the_wider_capability_and_argus() -> None:
    def widths(error: float) -> tuple[float, float]:
        noise = {place: {("image", "noise", 1): rate * 0.9} for place, rate in CAPTIONED.items()}
        report = score_reports(
            [evaluation("a", CAPTIONED, perturbed=noise)],
            [bench("a")],
            [calibration(judged("a", 3.4, error=error))],
            references={"latency": 0.05},
            replicates=2000,
        )
        p, argus = report.models[0].scores.capability, report.models[0].devices[0].argus
        return p.high - p.low, argus.high - argus.low

    sure, unsure = widths(0.01), widths(0.8)
    assert unsure[0] > 1.5 * sure[0]
    assert unsure[1] > sure[1]


def test_robustness_stays_with_the_metric_that_was_perturbed() -> None:
    place = ("reasoning", "coco")
    noise = {place: {("image", "noise", 1): 0.4, ("image", "noise", 2): 0.3}}
    without = score_reports([evaluation("a", {place: 0.5}, perturbed=noise)], [], replicates=200)
    found = calibration(judged("a", 4.6, cell=place, task="reasoning"))
    within = score_reports([evaluation("a", {place: 0.5}, perturbed=noise)], [], [found], replicates=200)
    assert within.models[0].scores.robustness == without.models[0].scores.robustness
    assert within.models[0].scores.cells[0].s_perturbed is None


def test_rank_only_gives_ranks_and_no_score() -> None:
    models = [evaluation("a", CAPTIONED), evaluation("b", CAPTIONED)]
    found = calibration(judged("a", 3.0, advice="rank only"), judged("b", 4.0, advice="rank only"))
    report = score_reports(models, [], [found], replicates=20)
    assert [cell.judged for cell in report.models[0].scores.cells] == [None, None]
    assert {each.model: each.rank for each in report.judged} == {"b": 1, "a": 2}
    (line,) = [line for line in score_notes(report) if "judged" in line]
    assert "ranks only" in line
    assert "1. b, 2. a" in line
    assert "because it is to rank only" in line


def test_do_not_use_is_left_out_with_its_reason() -> None:
    report = score_reports(
        [evaluation("a", CAPTIONED)], [], [calibration(judged("a", 3.0, advice="do not use"))], replicates=20
    )
    assert all(cell.judged is None for cell in report.models[0].scores.cells)
    assert report.judged[0].rank is None
    (line,) = [line for line in score_notes(report) if "judged" in line]
    assert "left out of the score (a: do not use, because it is to do not use)" in line


def test_a_cell_that_only_some_models_are_judged_in_keeps_its_own_metric() -> None:
    place = ("reasoning", "coco")
    models = [evaluation("a", CAPTIONED), evaluation("b", CAPTIONED)]
    report = score_reports(models, [], [calibration(judged("a", 4.0, cell=place, task="reasoning"))], replicates=20)
    assert all(cell.judged is None for model in report.models for cell in model.scores.cells)
    assert "not judged for b" in report.judged[0].reason


def test_a_cell_that_one_eval_report_lacks_comes_back_when_all_are_judged_in_it() -> None:
    place = ("reasoning", "clevr")
    less = {place: 0.7}
    models = [evaluation("a", CAPTIONED), evaluation("b", less)]
    coco = ("reasoning", "coco")
    found = calibration(judged("a", 3.0, cell=coco, task="reasoning"), judged("b", 4.0, cell=coco, task="reasoning"))
    report = score_reports(models, [], [found], replicates=20)
    assert report.excluded == []
    assert report.models[1].scores.capability.value == pytest.approx((0.75 + 0.7) / 2)
    # a's own figure on coco is not used for its robustness either: b has none.
    assert "consistency holds two metrics against each other" in " ".join(report.notes)


@pytest.mark.parametrize("name", ["a", sha("a")[:12], None])
def test_a_model_is_named_or_is_the_only_one(name: str | None) -> None:
    report = score_reports([evaluation("a", CAPTIONED)], [], [calibration(judged(name, 3.0))], replicates=20)
    assert report.judged[0].entered


def test_what_belongs_to_no_cell_or_no_model_is_said() -> None:
    found = calibration(judged("a", 3.0, cell=None), judged("x", 3.0, task="other"))
    report = score_reports([evaluation("a", CAPTIONED)], [], [found], replicates=20)
    assert report.judged == []
    assert "needs the columns" in report.notes[0] or "need the columns" in report.notes[0]
    assert "no eval report is of that model" in report.notes[1]


def test_a_model_judged_twice_in_a_cell_is_refused_by_both_files() -> None:
    files = [calibration(judged("a", 3.0), judge="one"), calibration(judged("a", 4.0), judge="two")]
    with pytest.raises(InputError, match="judged twice in captioning on coco") as caught:
        score_reports([evaluation("a", CAPTIONED)], [], files, replicates=20)
    assert "one.judge.json" in caught.value.where
    assert "two.judge.json" in caught.value.where


def test_models_on_different_scales_are_refused() -> None:
    files = [calibration(judged("a", 3.0), judge="one"), calibration(judged("b", 4.0), judge="two", levels=10)]
    with pytest.raises(InputError, match=r"different scales.*1\.\.5 and 1\.\.10"):
        score_reports([evaluation("a", CAPTIONED), evaluation("b", CAPTIONED)], [], files, replicates=20)


def test_a_name_that_fits_two_models_is_refused() -> None:
    twins = [evaluation("a", CAPTIONED), evaluation("b", CAPTIONED)]
    twins[1].artifact.model.name = "a"
    with pytest.raises(InputError, match="2 eval reports are of models of that name"):
        score_reports(twins, [], [calibration(judged("a", 3.0))], replicates=20)


def test_draws_stay_on_the_scale() -> None:
    drawn = judged_replicates(judged("a", 4.9, error=2.0), ("captioning", "coco"), "a", 500, 0)
    assert drawn.shape == (501,)
    assert 0 <= drawn.min() <= drawn.max() == 1


def test_from_a_table_of_judge_scores_to_the_score_by_the_command_line(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="the judge's methods need the extra `judge`")
    sys.path.insert(0, str(Path(__file__).parents[1] / "judge"))
    from click.testing import CliRunner
    from judge_simulation import write_scores

    from argus_edge.artifacts import write_artifact
    from argus_edge.cli.judge import judge
    from argus_edge.cli.score import score

    def edit(table: list[dict[str, str]]) -> None:
        for index, row in enumerate(table):
            row["model"] = "ab"[index % 2]
            row["task"], row["dataset"] = "captioning", "coco"
            if index >= 400:
                row["human_score"] = ""

    scores = write_scores(tmp_path / "scores.csv", 1200, tasks=1, model="", dataset="", edit=edit)
    call = CliRunner().invoke
    out = str(tmp_path / "judge.json")
    fitted = call(judge, ["fit", str(scores), "--by", "task", "--max-width", "4", "--out", out], catch_exceptions=False)
    assert fitted.exit_code == 0
    for name in "ab":
        write_artifact(evaluation(name, CAPTIONED).artifact, tmp_path / f"{name}.json")
    shown = call(
        score, [str(tmp_path), "--replicates", "50", "--out", str(tmp_path / "score.json")], catch_exceptions=False
    )
    assert shown.exit_code == 0
    document = json.loads((tmp_path / "score.json").read_text())
    assert [(each["model"], each["entered"]) for each in document["judged"]] == [("a", True), ("b", True)]
    human = [float(row.split(",")[-3]) for row in scores.read_text().splitlines()[1:401]]
    assert document["judged"][0]["value"] == pytest.approx((np.mean(human) - 1) / 4, abs=0.05)
    assert "the calibrated mean is the metric" in " ".join(shown.stdout.split())
