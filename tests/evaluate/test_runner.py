"""One evaluation from model to report, by models whose figures are known beforehand."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from argus_edge.artifacts import dump_artifact, read_artifact, sha256_file
from argus_edge.errors import InputError, RunFailedError, UsageError
from argus_edge.evaluate.conditions import perturbation_lines
from argus_edge.evaluate.datasets import Question
from argus_edge.evaluate.metrics import image_weights
from argus_edge.evaluate.models.resolve import resolve_model
from argus_edge.evaluate.prompts import load_prompts
from argus_edge.evaluate.runner import Settings, evaluate
from argus_edge.evaluate.summary import summarise
from argus_edge.evaluate.tasks.reasoning import _choice
from argus_edge.schema.evaluation import EvalReport
from argus_edge.score.replicates import replicate_cell

SMALL = "gaussian_noise:3,contrast:5,keyboard:3"


def run(model, data, out, perturb="none", **settings):
    name, lines = perturbation_lines(perturb)
    resolved = resolve_model(f"rule_models:{model}", threads=1)
    return evaluate(
        resolved,
        Settings(data=data, out=out, perturbation_set=name, perturbations=lines, **settings),
        load_prompts(),
    )


def cells(report):
    return {(cell.task, cell.dataset): cell for cell in report.cells}


def test_an_embedder_retrieves_and_chooses(painted, rule_models, tmp_path):
    report = run("Colours", {"mine": painted}, tmp_path / "out")
    found = cells(report)
    assert set(found) == {("retrieval", "mine"), ("reasoning", "mine")}
    # Texts of one colour are all alike to it: a tie counts against the model.
    assert found["retrieval", "mine"].clean.headline == 0.0
    assert found["retrieval", "mine"].chance == pytest.approx(1 / 12)
    # "question: … answer: red" names the colour, so that every question is answered rightly.
    assert found["reasoning", "mine"].clean.headline == 1.0
    assert report.skipped[0].what == "captioning on mine"
    assert report.skipped[0].reason == "the model does not describe images"


def test_a_constant_embedding_and_constant_scores_do_not_count_as_knowledge(painted, rule_models, tmp_path):
    report = run("Constant", {"mine": painted}, tmp_path / "out")
    assert [cell.clean.headline for cell in report.cells] == [0.0, 0.0]
    assert summarise(report).capability == 0.0


def test_of_choices_that_differ_by_an_article_the_right_one_is_right(painted, rule_models, tmp_path):
    choices = ["a red", "red"]
    lines = [
        {"image": f"{n:02d}.png", "question": "What is it?", "answer": choices[n % 2], "choices": choices}
        for n in range(3)
    ]
    (painted / "data.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    # It takes "red" for the first image, whose answer is "a red", and finds neither for the others.
    report = run("Talker", {"mine": painted}, tmp_path / "out")
    assert report.cells[0].clean.headline == 0.0


def test_a_choice_that_a_dataset_gives_twice_is_right_at_either_place():
    # VCR's wrong answers are other questions' right ones: now and then word by word the right one.
    given = _choice(Question("q", 0, "?", ("red",), ("blue", "red", "red"), 2), ("blue", "red", "red"), np.eye(3)[1])
    assert given.correct
    tied = _choice(Question("q", 0, "?", ("red",), ("blue", "red"), 1), ("blue", "red"), np.ones(2))
    assert not tied.correct


def test_a_talker_captions_answers_and_scores_pairs(painted, rule_models, tmp_path):
    report = run("Talker", {"mine": painted}, tmp_path / "out", perturb=SMALL)
    found = cells(report)
    assert found["reasoning", "mine"].clean.headline == 1.0  # "Red." is "red"
    assert found["captioning", "mine"].clean.metrics["bleu_1"].value > 0.4
    assert found["captioning", "mine"].idf_sha256
    assert found["retrieval", "mine"].method == "scores of image-text pairs"
    # Captioning has no text that could be perturbed.
    assert {m.modality for m in found["captioning", "mine"].measurements} == {"none", "image"}
    assert {m.modality for m in found["reasoning", "mine"].measurements} == {"none", "image", "text"}
    assert summarise(report).robustness is not None


def test_the_headline_can_be_had_again_from_the_statistics(painted, rule_models, tmp_path):
    report = run("Talker", {"mine": painted}, tmp_path / "out", perturb=SMALL)
    dataset = report.dataset("mine")
    weights = image_weights("mine", dataset.images, 50, 0)
    for cell in report.cells:
        replicated = replicate_cell(cell, dataset, weights, "here")
        assert replicated.raw == pytest.approx(cell.clean.headline)
        assert replicated.clean[0] == pytest.approx(cell.clean.s)
        for measurement in cell.measurements:
            if not measurement.clean:
                place = (measurement.modality, measurement.perturbation, measurement.severity)
                assert replicated.grid[place][0] == pytest.approx(measurement.s)


def test_images_without_captions_are_left_out_of_captioning_and_nothing_else(painted, rule_models, tmp_path):
    lines = (painted / "data.jsonl").read_text().splitlines()
    kept = [line for line in lines if not ('"00.png"' in line and "captions" in line)]
    (painted / "data.jsonl").write_text("\n".join(kept))
    report = run("Talker", {"mine": painted}, tmp_path / "out")
    cell = cells(report)["captioning", "mine"]
    assert cell.clean.metrics["cider"].n == 11
    weights = image_weights("mine", 12, 10, 0)
    assert replicate_cell(cell, report.dataset("mine"), weights, "").raw == pytest.approx(cell.clean.headline)


def test_records_hold_every_item_under_every_condition(painted, rule_models, tmp_path):
    import pyarrow.parquet as pq

    report = run("Talker", {"mine": painted}, tmp_path / "out", perturb=SMALL)
    for cell in report.cells:
        assert sha256_file(tmp_path / "out" / cell.records) == cell.records_sha256
    table = pq.read_table(tmp_path / "out" / "mine.reasoning.parquet").to_pydict()
    assert len(table["correct"]) == 24 * 4
    clean = [right for right, severity in zip(table["correct"], table["severity"], strict=True) if severity == 0]
    assert np.mean(clean) == 1.0


def test_a_broken_image_is_listed_counted_and_left_out(painted, rule_models, tmp_path):
    (painted / "05.png").write_bytes((painted / "05.png").read_bytes()[:100])
    report = run("Talker", {"mine": painted}, tmp_path / "out")
    dataset = report.dataset("mine")
    assert (dataset.images, dataset.captions, dataset.questions) == (11, 22, 22)
    assert [image.image_id for image in dataset.broken] == ["05.png"]
    assert "05.png" not in dataset.image_ids


def test_too_few_images_for_cider_say_so_with_a_way_out(painted, rule_models, tmp_path):
    lines = (painted / "data.jsonl").read_text().splitlines()
    (painted / "data.jsonl").write_text("\n".join(lines[:12]))
    with pytest.raises(InputError, match="too few") as caught:
        run("Talker", {"mine": painted}, tmp_path / "out")
    assert caught.value.where == "captioning on mine"
    assert "--idf" in caught.value.next_step
    assert "--tasks retrieval,reasoning" in caught.value.next_step
    from argus_edge.evaluate.metrics import DocumentFrequencies

    DocumentFrequencies.from_references([["a red wall"]] * 20).save(tmp_path / "idf.json.gz")
    report = run("Talker", {"mine": painted}, tmp_path / "out", idf=tmp_path / "idf.json.gz")
    assert cells(report)["captioning", "mine"].clean.metrics["cider"].n == 4


def test_a_limited_run_uses_the_whole_splits_document_frequencies(painted, rule_models, tmp_path):
    whole = run("Talker", {"mine": painted}, tmp_path / "whole", tasks=("captioning",))
    part = run("Talker", {"mine": painted}, tmp_path / "part", tasks=("captioning",), limit=4)
    assert part.cells[0].idf_sha256 == whole.cells[0].idf_sha256
    assert part.dataset("mine").sha256 != whole.dataset("mine").sha256


def test_a_second_run_computes_nothing_and_gives_the_same_bytes(painted, rule_models, tmp_path, monkeypatch):
    first = run("Colours", {"mine": painted}, tmp_path / "out", perturb=SMALL)
    messages = []
    name, lines = perturbation_lines(SMALL)
    again = evaluate(
        resolve_model("rule_models:Colours", threads=1),
        Settings(data={"mine": painted}, out=tmp_path / "out", perturbation_set=name, perturbations=lines),
        load_prompts(),
        messages.append,
    )
    assert dump_artifact(again) == dump_artifact(first)
    done = next(message for message in messages if "pieces of work" in message)
    assert int(done.split()[0]) == int(done.split(", ")[1].split()[0])


def test_a_run_that_failed_goes_on_where_it_was(painted, rule_models, tmp_path, monkeypatch):
    with pytest.raises(RunFailedError, match="out of luck"):
        run("Failing", {"mine": painted}, tmp_path / "out", batch_size=4)
    kept = list((tmp_path / "out" / "cache").rglob("*.npy"))
    assert kept
    assert not (tmp_path / "out" / "eval.json").exists()
    sys.modules["rule_models"].Failing.calls = -100
    report = run("Failing", {"mine": painted}, tmp_path / "out", batch_size=4)
    assert sys.modules["rule_models"].Failing.calls == -100 + 6  # the questions' images; the gallery's were kept
    assert len(report.cells) == 2


def test_values_that_are_not_numbers_are_an_error_not_a_rank(painted, rule_models, tmp_path):
    with pytest.raises(RunFailedError, match="SystemExit: 3"):
        run("Leaver", {"mine": painted}, tmp_path / "left")
    with pytest.raises(RunFailedError, match="not finite"):
        run("NotANumber", {"mine": painted}, tmp_path / "out")


def test_another_evaluation_does_not_overwrite_a_finished_one(painted, rule_models, tmp_path):
    run("Colours", {"mine": painted}, tmp_path / "out")
    with pytest.raises(UsageError, match="something else"):
        run("Constant", {"mine": painted}, tmp_path / "out")


def test_another_evaluation_takes_the_place_of_a_finished_one_when_told_to(painted, rule_models, tmp_path):
    first = run("Colours", {"mine": painted}, tmp_path / "out")
    old = tmp_path / "out" / "mine.captioning.parquet"
    own = tmp_path / "out" / "prices.parquet"
    for path in (old, own):
        path.write_bytes(b"of another evaluation, or of the user's")
    second = run("Constant", {"mine": painted}, tmp_path / "out", force=True)
    assert second.model != first.model
    assert not old.exists()
    assert own.exists()
    assert run("Constant", {"mine": painted}, tmp_path / "out") == second


def test_a_plan_that_cannot_be_read_is_no_plan(painted, rule_models, tmp_path):
    run("Colours", {"mine": painted}, tmp_path / "out")
    (tmp_path / "out" / "plan.json").write_text("[]")
    with pytest.raises(UsageError, match="something else"):
        run("Colours", {"mine": painted}, tmp_path / "out")


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"optional": ("vg",)}, "--with vg: it is not among the datasets"),
        ({"optional": ("mine",)}, "--with mine: it has no optional cells"),
        ({"splits": {"coco": "val"}}, "--split coco: it is not among the datasets"),
    ],
)
def test_an_option_about_a_dataset_that_is_not_evaluated_is_not_passed_over(
    painted, rule_models, tmp_path, settings, why
):
    with pytest.raises(UsageError, match=why):
        run("Colours", {"mine": painted}, tmp_path / "out", **settings)
    assert not (tmp_path / "out").exists()


def test_document_frequencies_are_read_before_the_images(painted, rule_models, tmp_path):
    said = []
    with pytest.raises(InputError, match="Cannot read the file"):
        evaluate(
            resolve_model("rule_models:Talker", threads=1),
            Settings(data={"mine": painted}, out=tmp_path / "out", idf=tmp_path / "none.json.gz"),
            load_prompts(),
            said.append,
        )
    assert said == []


def test_pieces_are_shared_through_a_cache_of_ones_own(painted, rule_models, tmp_path):
    run("Colours", {"mine": painted}, tmp_path / "one", cache=tmp_path / "cache")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.npy")}
    run("Colours", {"mine": painted}, tmp_path / "two", cache=tmp_path / "cache", perturb="contrast:5")
    assert all(path.stat().st_mtime_ns == time_ns for path, time_ns in before.items())


def test_a_changed_image_is_computed_anew(painted, rule_models, tmp_path):
    from PIL import Image

    first = run("Colours", {"mine": painted}, tmp_path / "one", cache=tmp_path / "cache")
    Image.new("RGB", (32, 24), (0, 0, 250)).save(painted / "00.png")
    second = run("Colours", {"mine": painted}, tmp_path / "two", cache=tmp_path / "cache")
    assert first.dataset("mine").sha256 != second.dataset("mine").sha256
    assert cells(second)["reasoning", "mine"].clean.headline < 1.0


def test_pair_scorers_have_a_gallery_of_their_first_images(painted, rule_models, tmp_path):
    report = run("Talker", {"mine": painted}, tmp_path / "out", tasks=("retrieval",), pair_images=6)
    cell = report.cells[0]
    assert (cell.gallery_images, cell.gallery_texts) == (6, 12)
    assert cell.chance == pytest.approx(1 / 6)
    assert cell.clean.metrics["r1_i2t"].n == 6


def test_the_report_is_an_artefact(painted, rule_models, tmp_path):
    report = run("Colours", {"mine": painted}, tmp_path / "out")
    assert read_artifact(tmp_path / "out" / "eval.json", EvalReport) == report


KILLED = """
import sys
from argus_edge.cli.main import main
main(["eval", "rule_models:Talker", "--data", "mine=" + sys.argv[1], "--perturb", "quick", "--threads", "1",
      "--batch-size", "4", "--out", sys.argv[2]])
"""


def test_two_runs_do_not_write_into_one_folder(painted, rule_models, tmp_path):
    from argus_edge.evaluate.runner import _claimed

    with _claimed(tmp_path / "out"), pytest.raises(UsageError, match="Another run"):
        run("Colours", {"mine": painted}, tmp_path / "out")
    assert run("Colours", {"mine": painted}, tmp_path / "out").cells


def test_what_a_killed_run_left_half_written_is_cleared(painted, rule_models, tmp_path):
    leftover = tmp_path / "out" / "cache" / "ab" / ".1234.npy.x.part"
    leftover.parent.mkdir(parents=True)
    leftover.write_bytes(b"half")
    run("Colours", {"mine": painted}, tmp_path / "out")
    assert not leftover.exists()


def test_image_perturbations_do_not_apply_to_a_model_fed_by_features(painted, rule_models, tmp_path):
    report = run("ById", {"mine": painted}, tmp_path / "out", perturb=SMALL)
    (cell,) = report.cells
    assert {m.modality for m in cell.measurements} == {"none", "text"}
    assert cell.clean.headline == 1.0
    assert any(skipped.what == "image perturbations" for skipped in report.skipped)


def files(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


@pytest.mark.slow
def test_killed_at_any_point_the_files_come_out_the_same(painted, rule_models, tmp_path):
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    command = [sys.executable, "-c", KILLED, str(painted)]
    subprocess.run([*command, str(tmp_path / "whole")], env=environment, check=True, capture_output=True)
    expected = files(tmp_path / "whole")
    assert {"eval.json", "plan.json", "mine.retrieval.parquet"} <= set(expected)
    seen = []
    for attempt in range(40):
        process = subprocess.Popen(
            [*command, str(tmp_path / "killed")], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        # Killed once there is so much more in the cache than before: at another point each time.
        target = (seen[-1] if seen else 0) + 1 + attempt
        while process.poll() is None:
            kept = len(list((tmp_path / "killed").rglob("*.json"))) + len(list((tmp_path / "killed").rglob("*.npy")))
            if kept >= target:
                process.send_signal(signal.SIGKILL)
                break
            time.sleep(0.001)
        process.communicate()
        seen.append(len(list((tmp_path / "killed").rglob("*.*"))))
        if process.returncode == 0:
            break
    assert len(seen) > 3
    assert files(tmp_path / "killed") == expected
    assert json.loads(expected["eval.json"])["kind"] == "eval"
