"""What the page says, in words: the answer first, every number with its source, and nothing a report says is markup."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from argus_edge.artifacts import read_artifact, write_artifact
from argus_edge.report.gathered import gather
from argus_edge.report.markdown import escape, render_markdown
from argus_edge.report.page import build_page
from argus_edge.report.spreadsheet import render_csv, safe_cell
from argus_edge.schema.bench import BenchReport
from argus_edge.schema.evaluation import Interval, Metric
from tests.report.conftest import BUDGET, CELLS, HOSTILE, fill
from tests.support.reports import bench, bundle, evaluation


@pytest.fixture
def page(reports: Path):
    return build_page(gather([reports], budget=reports.parent / "budget.yaml"))


def table(page, name: str):
    return next(each for each in page.tables if each.name == name)


def test_the_answer_and_the_line_that_caused_it_come_first(page) -> None:
    # The median of clip-fp32 is 90 ms, its p95 108 ms: within 120 ms. The nano throttled, so nothing of it may pass.
    assert page.word == "CANNOT TELL"
    assert "throttled" in page.cause
    assert page.next_step.startswith("argus-edge bench")


def test_the_next_command_names_files_where_they_are_and_says_how_long_it_takes(reports: Path) -> None:
    budget = reports.parent / "budget.yaml"
    page = build_page(gather([reports], budget=budget))
    assert page.next_step == f"argus-edge bench clip-fp32 --device nano --threads 4 --until-decided {budget}"
    assert page.next_note == "up to 10 minutes"
    budget.write_text("budget: 1\nlimits: {latency_p95: 1 ms}")
    page = build_page(gather([reports], budget=budget))
    assert page.next_step == f"argus-edge size {reports} --budget {budget}"
    assert page.next_note == "seconds: which other combination fits"
    assert f"argus-edge validate {reports} --budget" in build_page(gather([reports])).next_step


def test_no_command_is_proposed_for_what_no_run_can_tell(reports: Path) -> None:
    budget = reports.parent / "budget.yaml"
    budget.write_text("budget: 1\nlimits: {energy: 1 J}")
    page = build_page(gather([reports], budget=budget))
    assert page.next_step == ""
    assert "no longer run decides energy on nano: no energy: no power sensor" in page.next_note
    assert "--meter" in page.next_note


def test_a_bundle_among_the_inputs_is_the_model_to_bench(reports: Path) -> None:
    found = bundle("clip-fp32")
    (reports / "bundles" / "clip").mkdir(parents=True)
    write_artifact(found.artifact, reports / "bundles" / "clip" / "manifest.json")
    step = build_page(gather([reports], budget=reports.parent / "budget.yaml")).next_step
    assert step.startswith(f"argus-edge bench {reports / 'bundles' / 'clip'} --device nano")


@pytest.mark.parametrize(
    ("limit", "step"),
    [
        ("robustness: 0.5", "argus-edge eval a --data … --perturb standard"),
        ("coco.r1_i2t.drop: 1 %", "argus-edge eval FP32-MODEL --data coco=…"),
        ("coco.r1_i2t: 50 %", "argus-edge eval a --data coco=…"),
    ],
)
def test_an_undecided_line_of_the_host_asks_for_the_evaluation_that_it_lacks(
    tmp_path: Path, limit: str, step: str
) -> None:
    write_artifact(evaluation("a", {("retrieval", "coco"): 0.6}).artifact, tmp_path / "a.eval.json")
    (tmp_path / "b.yaml").write_text(f"budget: 1\nlimits: {{{limit}}}")
    assert build_page(gather([tmp_path], budget=tmp_path / "b.yaml")).next_step == step


@pytest.mark.parametrize(
    ("limit", "step"),
    [
        # The model that was benched has no evaluation of its own either.
        ("coco.r1_i2t.drop: 1 %", "argus-edge eval a --data coco=…"),
        ("latency_p50: 1 s", "argus-edge bench b --device NAME"),
    ],
)
def test_the_next_command_is_about_the_report_that_is_not_there(tmp_path: Path, limit: str, step: str) -> None:
    only = bench("a") if limit.startswith("coco") else evaluation("b", {("retrieval", "coco"): 0.6})
    write_artifact(only.artifact, tmp_path / "report.json")
    (tmp_path / "b.yaml").write_text(f"budget: 1\nlimits: {{{limit}}}")
    assert build_page(gather([tmp_path], budget=tmp_path / "b.yaml")).next_step == step


def test_no_command_is_proposed_for_a_figure_of_the_host_that_lies_on_the_limit(tmp_path: Path) -> None:
    found = evaluation("a", {("retrieval", "coco"): 0.5}).artifact
    found.cells[0].clean.metrics["r1_i2t"] = Metric(value=0.5, interval=Interval(low=0.4, high=0.6), n=200)
    write_artifact(found, tmp_path / "a.eval.json")
    (tmp_path / "b.yaml").write_text("budget: 1\nlimits: {coco.r1_i2t: 50 %}")
    page = build_page(gather([tmp_path], budget=tmp_path / "b.yaml"))
    assert page.next_step == ""
    assert page.next_note.startswith("no longer run decides coco.r1_i2t: the figure lies on the limit")


def test_a_board_that_was_not_reached_has_its_row_in_the_matrix(reports: Path) -> None:
    budget = reports.parent / "budget.yaml"
    budget.write_text(BUDGET + "quorum: {pass: 1, of: [pi5-a, pi5-b]}")
    rows = {row[0].text: row for row in table(build_page(gather([reports], budget=budget)), "boards").rows}
    assert {cell.text for cell in rows["pi5-b"][1:]} == {"not reached"}


def test_quality_is_not_held_against_an_fp32_model_on_other_data(reports: Path) -> None:
    assert table(build_page(gather([reports])), "drop").rows
    original = evaluation("clip-fp32", CELLS, dataset_sha="other").artifact
    original.model.source_id, original.model.precision = "clip", "fp32"
    write_artifact(original, reports / "m0.eval.json")
    drop = table(build_page(gather([reports])), "drop")
    assert not drop.rows
    assert any("dataset hash of coco differs" in note for note in drop.notes)


def test_without_a_budget_nothing_is_decided(reports: Path) -> None:
    page = build_page(gather([reports]))
    assert page.word == "CANNOT TELL"
    assert "no budget" in page.cause
    assert "argus-edge validate" in page.next_step


def test_the_matrix_shows_what_is_missing_and_what_is_not_valid(page) -> None:
    boards = table(page, "boards")
    cells = {
        (row[0].text, column): cell for row in boards.rows for column, cell in zip(boards.columns, row, strict=True)
    }
    assert cells["pi5-a", "firmware of pi5-a"].mark == "good"
    assert "throttled" in cells["nano", "firmware of nano"].text
    assert cells["nano", "firmware of pi5-a"].text.startswith("not measured")


def test_a_cause_that_several_parts_share_is_named_once(reports: Path) -> None:
    path = reports / "m0.nano.bench.json"
    report = read_artifact(path, BenchReport)
    report.validity.causes *= 3
    write_artifact(report, path)
    runs = table(build_page(gather([reports])), "runs")
    (cell,) = (
        row[runs.columns.index("Validity")] for row in runs.rows if (row[0].text, row[2].text) == ("clip-fp32", "nano")
    )
    assert cell.text.count("throttled") == 1


def test_the_quality_of_the_shipped_file_is_against_fp32(page) -> None:
    drop = table(page, "drop")
    assert {row[1].text for row in drop.rows} == {"int8"}
    assert len(drop.rows) == 3


def test_every_number_names_its_source(page) -> None:
    for name in ("budget", "runs", "drop", "argus"):
        assert table(page, name).columns[-1] == "Source"


def test_the_published_figures_are_labelled(page) -> None:
    assert "not comparable digit by digit" in table(page, "published").notes[0]
    qwen = next(row for row in table(page, "published").rows if row[0].text.startswith("Qwen"))
    assert [cell.text for cell in qwen[1:]] == ["142 ms", "–", "0.890", "0.868", "82.7", "47.2", "141.6", "97.4"]


def test_the_change_from_the_last_release(reports: Path, tmp_path: Path) -> None:
    page = build_page(gather([reports], baseline=[reports]))
    assert {row[7].text for row in table(page, "change").rows} == {"too few runs (about 3 a side)"}


def test_markdown_shows_a_hostile_name_as_text(page) -> None:
    text = render_markdown(page)
    assert "<script>" not in text
    assert escape(HOSTILE) in text
    for line in text.splitlines():
        if line.startswith("|"):
            assert line.endswith("|")


def test_a_name_that_steers_terminals_or_shells_is_shown_and_does_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    names = ("$(reboot)", "\x1b[31mred\x1b[0m\u202egnp")
    fill(folder, dict.fromkeys(names, 0.05), devices=("nano",))
    (tmp_path / "budget.yaml").write_text(BUDGET)
    built = build_page(gather([folder], budget=tmp_path / "budget.yaml"))
    assert "bench '$(reboot)' --device" in built.next_step
    shown = render_markdown(built) + render_csv(built)
    assert "redgnp outranks" in shown or "outranks redgnp" in shown
    assert not {"\x1b", "\u202e"} & set(shown)


def test_csv_holds_every_cell(page) -> None:
    rows = list(csv.DictReader(io.StringIO(render_csv(page))))
    assert rows[0]["text"] == "CANNOT TELL"
    assert len(rows) == 2 + sum(len(each.rows) * len(each.columns) for each in page.tables)


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("=1+1", "'=1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("-cmd", "'-cmd"),
        ("+5%", "+5%"),
        ("-0.012", "-0.012"),
        ("pi5", "pi5"),
    ],
)
def test_a_cell_that_starts_a_formula_is_text(text: str, safe: str) -> None:
    assert safe_cell(text) == safe


def test_the_trend_is_drawn_from_the_recorded_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("plotly")
    from argus_edge.errors import UsageError
    from argus_edge.report.gathered import read_history
    from argus_edge.report.plots import build_plots
    from argus_edge.schema.bench import Estimate
    from argus_edge.store.records import Store
    from tests.support.reports import bench

    monkeypatch.setenv("ARGUS_EDGE_STORE", str(tmp_path / "store.db"))
    store = Store()
    for index, p50 in enumerate((0.05, 0.06)):
        report = bench("clip", p50=p50).artifact
        report.summary["p50"] = Estimate(value=p50)
        store.add(
            f"r{index}",
            device="pi5",
            profile="pi5",
            model="clip",
            model_sha256=None,
            scenario="soak",
            entry="{}",
            context="{}",
        )
        store.finish(f"r{index}", report, state="done")
    (plot,) = build_plots(gather([], history=read_history("clip")))
    assert '"y":[50.0,60.0]' in plot.figure.replace(" ", "")
    with pytest.raises(UsageError, match="No finished run"):
        read_history("blip")
