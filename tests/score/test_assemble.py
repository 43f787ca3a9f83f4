"""From reports to a score: what is joined, what is refused, what is missing and says so."""

from __future__ import annotations

import numpy as np
import pytest

from argus_edge.errors import InputError, UsageError
from argus_edge.report.score_words import by_rank
from argus_edge.score.assemble import check_weights, score_reports, weights_for
from tests.support.reports import bench, evaluation

TWO = {("retrieval", "coco"): 0.6, ("retrieval", "flickr30k"): 0.8, ("reasoning", "clevr"): 0.5}
NOISE = {place: {("image", "noise", 1): rate * 0.9, ("image", "noise", 2): rate * 0.7} for place, rate in TWO.items()}


def perturbed(factor: float) -> dict:
    return {
        place: {("image", "noise", 1): rate * factor, ("image", "noise", 2): rate * factor}
        for place, rate in TWO.items()
    }


def test_the_parts_are_the_formulas() -> None:
    report = score_reports([evaluation("a", TWO, perturbed=NOISE)], [], replicates=50)
    scores = report.models[0].scores
    assert scores.capability.value == pytest.approx((0.6 + 0.8 + 0.5) / 3)
    assert scores.consistency.value == pytest.approx(1 - 0.1 / 0.7)
    assert scores.robustness.value == pytest.approx(0.8, abs=0.01)
    for part in (scores.capability, scores.consistency, scores.robustness):
        assert part.low is not None
        assert part.high is not None
        assert part.low <= part.value <= part.high


def test_without_a_bench_report_there_is_no_argus_and_the_report_says_why() -> None:
    report = score_reports([evaluation("a", TWO)], [], replicates=20)
    assert report.models[0].devices == []
    assert any("argus-edge bench" in note for note in report.notes)


def test_argus_of_two_models_on_one_device_by_hand() -> None:
    evals = [evaluation("a", TWO, perturbed=perturbed(0.9)), evaluation("b", TWO, perturbed=perturbed(0.8), seed=5)]
    benches = [bench("a", p50=0.1, memory=400), bench("b", p50=0.05, memory=800)]
    report = score_reports(evals, benches, replicates=50)
    a, b = report.models
    # a: latency .05/.1 = .5, memory 1, MACs 1; b: latency 1, memory .5, MACs 1.
    # There is no offline run: throughput is left out, and said.
    assert report.efficiency_terms == ["latency", "memory", "macs"]
    assert a.devices[0].efficiency.terms == {"latency": 0.5, "memory": 1.0, "macs": 1.0, "throughput": None}
    assert a.devices[0].efficiency.efficiency.value == pytest.approx(2.5 / 3)
    assert any("throughput" in note for note in report.notes)
    p, cdc = a.scores.capability.value, a.scores.consistency.value
    assert a.devices[0].argus.value == pytest.approx((p + cdc + a.scores.robustness.value + 2.5 / 3) / 4)
    assert a.devices[0].rank == 1
    assert b.devices[0].rank == 2
    (a_over_b,) = [pair for pair in report.outranking if pair.model == "a"]
    assert 0.5 < a_over_b.probability <= 1
    assert a.devices[0].first_share + b.devices[0].first_share == pytest.approx(1.0)


def test_rows_are_read_board_by_board_the_first_one_first() -> None:
    evals = [evaluation("a", TWO, perturbed=perturbed(0.9)), evaluation("b", TWO, perturbed=perturbed(0.8), seed=5)]
    costs = {("a", "nano"): 0.9, ("a", "pi5"): 0.05, ("b", "nano"): 0.05, ("b", "pi5"): 0.9}
    report = score_reports(evals, [bench(m, device=d, p50=p50) for (m, d), p50 in costs.items()], replicates=20)
    rows = [(device.device, device.rank, model.name) for model, device in by_rank(report) if device]
    assert rows == [("nano", 1, "b"), ("nano", 2, "a"), ("pi5", 1, "a"), ("pi5", 2, "b")]


def test_an_offline_run_gives_the_throughput_term() -> None:
    evals = [evaluation("a", TWO, perturbed=NOISE), evaluation("b", TWO, perturbed=NOISE)]
    benches = [
        run
        for name, rate in (("a", 10.0), ("b", 20.0))
        for run in (bench(name), bench(name, scenario="offline", throughput=rate))
    ]
    report = score_reports(evals, benches, replicates=20)
    assert report.models[0].devices[0].efficiency.terms["throughput"] == pytest.approx(0.5)


def test_throughput_may_be_measured_at_a_batch_of_its_own() -> None:
    evals = [evaluation("a", TWO, perturbed=NOISE), evaluation("b", TWO, perturbed=NOISE)]
    eight = "one image plus one text embedded, batch 8"
    singles = [bench("a"), bench("b")]
    batched = [bench(name, scenario="offline", throughput=10.0, unit=eight) for name in ("a", "b")]
    report = score_reports(evals, [*singles, *batched], replicates=20)
    assert report.models[0].devices[0].efficiency.terms["throughput"] == pytest.approx(1.0)
    with pytest.raises(InputError, match="unit of work on pi5"):
        score_reports(evals, [*singles, batched[0], bench("b", scenario="offline", throughput=10.0)], replicates=20)


def test_a_single_model_needs_a_budget() -> None:
    one = evaluation("a", TWO, perturbed=NOISE)
    without = score_reports([one], [bench("a")], replicates=20).models[0].devices[0]
    assert without.efficiency.efficiency.value is None
    assert without.argus.value is None
    assert "efficiency" in without.argus.reason
    within = score_reports([one], [bench("a", p50=0.05)], references={"latency": 0.025}, replicates=20)
    assert within.efficiency_reference == "budget"
    assert within.models[0].devices[0].efficiency.efficiency.value == pytest.approx(0.5)


def test_with_a_budget_a_score_does_not_move_when_another_model_joins() -> None:
    a, b = evaluation("a", TWO, perturbed=NOISE), evaluation("b", TWO, perturbed=NOISE)
    budget = {"latency": 0.02, "memory": 1e8}
    alone = score_reports([a], [bench("a")], references=budget, replicates=30)
    joined = score_reports([a, b], [bench("a"), bench("b", p50=0.01)], references=budget, replicates=30)
    assert alone.models[0].devices[0].argus.value == joined.models[0].devices[0].argus.value


def test_models_are_compared_on_the_cells_that_all_have_and_the_rest_is_listed() -> None:
    less = {place: rate for place, rate in TWO.items() if place[1] != "clevr"}
    report = score_reports([evaluation("a", TWO), evaluation("b", less)], [], replicates=20)
    assert report.excluded == ["reasoning on clevr: not measured for b"]
    assert report.models[0].scores.capability.value == pytest.approx(0.7)


def test_a_model_at_chance_is_not_ranked() -> None:
    nothing = dict.fromkeys(TWO, 0.0)
    report = score_reports(
        [evaluation("good", TWO, perturbed=NOISE), evaluation("useless", nothing, perturbed=NOISE)],
        [bench("good"), bench("useless", p50=0.001)],
        replicates=20,
    )
    good, useless = report.models
    assert useless.scores.capability.value == 0
    assert not useless.ranked
    assert useless.devices[0].rank is None
    assert good.devices[0].rank == 1


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"dataset_sha": "other"}, "dataset hash of coco"),
        ({"prompt": "another"}, "the prompt retrieval"),
        ({"perturbed": NOISE}, r"the perturbation set differs \(none against noise:1/2 \(image\)\)"),
        ({"images": 150}, "the images of coco differs .200 images"),
    ],
)
def test_reports_that_do_not_belong_together_are_refused_by_name(other: dict, what: str) -> None:
    with pytest.raises(InputError, match=what) as error:
        score_reports([evaluation("a", TWO), evaluation("b", TWO, **other)], [], replicates=10)
    assert error.value.where == "a.eval.json and b.eval.json"


def test_a_bench_of_another_bundle_is_refused() -> None:
    with pytest.raises(InputError, match="no eval report is of"):
        score_reports([evaluation("a", TWO)], [bench("b")], replicates=10)


def test_another_unit_of_work_is_refused() -> None:
    evals = [evaluation("a", TWO), evaluation("b", TWO)]
    with pytest.raises(InputError, match="unit of work on pi5"):
        score_reports(evals, [bench("a"), bench("b", unit="one call, batch 8")], replicates=10)


def test_two_runs_of_one_model_on_one_device_are_refused() -> None:
    with pytest.raises(InputError, match="two single-stream"):
        score_reports([evaluation("a", TWO)], [bench("a"), bench("a")], replicates=10)


def test_the_same_images_are_drawn_for_every_model() -> None:
    # Two names for one model: their scores are the same in every replicate, so neither outranks the other.
    report = score_reports(
        [evaluation("a", TWO, perturbed=NOISE), evaluation("b", TWO, perturbed=NOISE)],
        [bench("a", spread=0.0), bench("b", spread=0.0)],
        replicates=100,
    )
    assert [pair.probability for pair in report.outranking] == [0.5, 0.5]


def test_the_reliability_line_names_the_term_that_turns_the_order() -> None:
    strong = evaluation("strong", TWO, perturbed=perturbed(0.5))
    steady = evaluation(
        "steady",
        {place: rate * 0.9 for place, rate in TWO.items()},
        perturbed={
            place: {("image", "noise", 1): rate * 0.85, ("image", "noise", 2): rate * 0.85}
            for place, rate in TWO.items()
        },
    )
    line = score_reports([strong, steady], [], replicates=20).reliability
    assert (line.most_capable, line.most_reliable, line.same) == ("strong", "steady", False)
    assert line.turned_by == "robustness"


@pytest.mark.parametrize("order", [1, -1])
def test_of_equally_capable_models_the_steadier_one_is_both(order: int) -> None:
    cells = {("retrieval", "coco"): 0.8, ("retrieval", "vg"): 0.8}
    models = [
        evaluation(name, cells, perturbed={place: {("image", "fog", 1): rate * kept} for place, rate in cells.items()})
        for name, kept in (("shaky", 0.5), ("steady", 0.9))
    ]
    line = score_reports(models[::order], [], replicates=20).reliability
    assert (line.most_capable, line.most_reliable, line.same) == ("steady", "steady", True)


def test_weights() -> None:
    assert weights_for(0.4)["capability"] == pytest.approx(0.2)
    assert sum(weights_for(0.4).values()) == pytest.approx(1)
    with pytest.raises(UsageError):
        weights_for(1.2)
    with pytest.raises(UsageError, match="sum to 1"):
        check_weights({"capability": 0.5, "consistency": 0.5, "robustness": 0.5, "efficiency": 0})
    with pytest.raises(UsageError, match=r"name exactly .* these name capability") as found:
        check_weights({"capability": 1.0}, where="weights.yaml")
    assert found.value.where == "weights.yaml"
    nan = float("nan")
    with pytest.raises(UsageError, match="sum to 1"):
        check_weights({"capability": nan, "consistency": 0, "robustness": 0, "efficiency": 1})


def test_the_seed_decides_the_intervals() -> None:
    one = [evaluation("a", TWO)]
    first, again, other = (
        score_reports(one, [], replicates=50, seed=seed).models[0].scores.capability for seed in (1, 1, 2)
    )
    assert first == again
    assert first.value == other.value
    assert first != other


def test_a_column_that_lies_about_its_rows_is_named() -> None:
    bad = evaluation("a", {("reasoning", "clevr"): 0.5})
    bad.artifact.cells[0].measurements[0].statistics["hits"] = (
        bad.artifact.cells[0].measurements[0].statistics["hits"].model_copy(update={"shape": [3]})
    )
    with pytest.raises(InputError, match="column"):
        score_reports([bad], [], replicates=5)


def test_intervals_widen_with_fewer_images() -> None:
    wide, narrow = (
        score_reports([evaluation("a", TWO, images=n)], [], replicates=200).models[0].scores.capability
        for n in (50, 2000)
    )
    assert wide.high - wide.low > 3 * (narrow.high - narrow.low)
    assert np.isfinite(wide.low)
