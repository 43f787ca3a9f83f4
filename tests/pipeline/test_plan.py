"""Plans: the commands they become, and how they go on where they were."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from argus_edge.errors import HostError, InputError
from argus_edge.pipeline.plan import parse_plan, steps_of
from argus_edge.pipeline.runner import LEDGER, log_of, run_command, run_plan

TEXT = """\
plan: 1
name: doorbell camera
models: [openai/clip-vit-base-patch32]
precisions: [fp32, int8]
devices: [local, pi5]
scenarios: [single-stream]
data: {mine: ./photos}
perturb: quick
budget: doorbell.yaml
"""


def plan(folder: Path, text: str = TEXT):
    if not (folder / "doorbell.yaml").exists():
        (folder / "doorbell.yaml").write_text("budget: 1")
    return parse_plan(text, str(folder / "plan.yaml"), folder)


class Commands:
    """Stands in for `argus-edge`: leaves each step's output behind, or fails."""

    def __init__(self, held, fail: dict[str, int] | None = None) -> None:
        self.outputs = {step.argv: step.output for step in steps_of(held)}
        self.fail = fail or {}
        self.ran: list[str] = []
        self.answers: dict[str, str] = {}

    def __call__(self, argv: Sequence[str], log: Path | None) -> int:
        self.ran.append(argv[0])
        code = next((code for word, code in self.fail.items() if word in argv), 0)
        if code in (0, 8) or (code == 1 and argv[0] == "validate"):
            output = self.outputs[tuple(argv)]
            output.parent.mkdir(parents=True, exist_ok=True)
            output.write_text(self.answers.get(argv[0], " ".join(argv)))
        return code


def test_a_plan_becomes_every_combination_in_order(tmp_path: Path) -> None:
    names = [step.name for step in steps_of(plan(tmp_path))]
    assert names == [
        "export clip-vit-base-patch32-onnx-fp32",
        "export clip-vit-base-patch32-onnx-int8",
        "bench clip-vit-base-patch32-onnx-fp32 on local, single-stream",
        "bench clip-vit-base-patch32-onnx-fp32 on pi5, single-stream",
        "bench clip-vit-base-patch32-onnx-int8 on local, single-stream",
        "bench clip-vit-base-patch32-onnx-int8 on pi5, single-stream",
        "eval clip-vit-base-patch32-onnx-fp32",
        "eval clip-vit-base-patch32-onnx-int8",
        "score",
        "validate",
        "size",
        "report",
    ]


def test_every_step_comes_after_what_it_needs(tmp_path: Path) -> None:
    seen: set[str] = set()
    for step in steps_of(plan(tmp_path)):
        assert set(step.needs) <= seen
        seen.add(step.name)


def test_a_class_of_one_s_own_is_named_by_its_class(tmp_path: Path) -> None:
    assert steps_of(plan(tmp_path, "plan: 1\nmodels: ['towers:Tiny']\n"))[0].name == "export Tiny-onnx-fp32"


def test_models_of_one_name_do_not_write_over_each_other(tmp_path: Path) -> None:
    (tmp_path / "old" / "clip-onnx-fp32").mkdir(parents=True)
    (tmp_path / "old" / "clip-onnx-fp32" / "manifest.json").write_text("{}")
    models = [
        "one/clip",
        "two/clip",
        "a/b/net",
        "c/b/net",
        "m:Tiny",
        "n:Tiny",
        "./old/clip-onnx-fp32",
        "x/clip-onnx-fp32",
    ]
    held = plan(tmp_path, TEXT.replace("[openai/clip-vit-base-patch32]", json.dumps(models)))
    steps = steps_of(held)
    assert len({step.name for step in steps}) == len(steps)
    assert len({step.output for step in steps}) == len(steps)
    names = [step.name for step in steps]
    assert {"export one-clip-onnx-fp32", "export two-clip-onnx-fp32", "export m-Tiny-onnx-fp32"} <= set(names)


def test_what_a_step_was_made_from_is_looked_at_again(tmp_path: Path) -> None:
    """New weights, new photographs or new code under the old name are not what was measured."""
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "weights").write_text("old")
    (tmp_path / "photos").mkdir()
    held = plan(tmp_path, TEXT.replace("[openai/clip-vit-base-patch32]", "[./net]"))
    run_plan(held, run=Commands(held))
    again = Commands(held)
    run_plan(held, run=again)
    assert again.ran == []
    (tmp_path / "photos" / "one.jpg").write_text("x")
    run_plan(held, run=again)
    assert "eval" in again.ran
    assert "export" not in again.ran
    again.ran.clear()
    (tmp_path / "net" / "weights").write_text("newer")
    run_plan(held, run=again)
    assert again.ran.count("export") == 2


def test_what_a_plan_leaves_in_the_folder_of_its_photographs_is_no_new_photograph(tmp_path: Path) -> None:
    held = plan(tmp_path, TEXT.replace("./photos", "."))
    run_plan(held, run=Commands(held))
    again = Commands(held)
    run_plan(held, run=again)
    assert again.ran == []


def test_a_measurement_s_words_go_to_a_file_and_a_decision_s_to_the_terminal(tmp_path: Path) -> None:
    held = plan(tmp_path)
    logs = {step.name: log_of(held, step) for step in steps_of(held)}
    assert logs["validate"] is None
    assert logs["eval clip-vit-base-patch32-onnx-int8"] == held.out / "logs/eval-clip-vit-base-patch32-onnx-int8.txt"
    assert len(set(logs.values()) - {None}) == 8


def test_the_words_of_a_command_are_kept(tmp_path: Path) -> None:
    assert run_command(["--version"], tmp_path / "logs" / "version.txt") == 0
    assert "argus-edge" in (tmp_path / "logs" / "version.txt").read_text()


def test_every_command_is_one_that_argus_edge_takes(tmp_path: Path) -> None:
    from argus_edge.cli.main import cli

    for step in steps_of(plan(tmp_path)):
        command = cli.get_command(None, step.argv[0])
        assert command is not None
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in step.argv if word.startswith("--")} <= known, step.argv


def test_with_random_weights_nothing_is_evaluated(tmp_path: Path) -> None:
    steps = steps_of(plan(tmp_path, TEXT + "random_weights: true\n"))
    assert not any(step.name.startswith(("eval", "score")) for step in steps)
    assert all("--random-weights" in step.argv for step in steps if step.argv[0] == "export")


def test_a_bench_waits_for_what_a_killed_plan_left_on_the_board(tmp_path: Path) -> None:
    benches = [step.argv for step in steps_of(plan(tmp_path)) if step.argv[0] == "bench"]
    assert benches
    assert all(argv[-1] == "--wait" for argv in benches), "the last word, since it would take the next as its value"


def test_a_bundle_is_not_exported_again(tmp_path: Path) -> None:
    (tmp_path / "clip-int8").mkdir()
    (tmp_path / "clip-int8" / "manifest.json").write_text("{}")
    steps = steps_of(plan(tmp_path, "plan: 1\nmodels: [./clip-int8]\n"))
    assert [step.argv[0] for step in steps] == ["bench", "bench", "report"]


def test_a_plan_is_carried_out_once(tmp_path: Path) -> None:
    held = plan(tmp_path)
    first, again = Commands(held), Commands(held)
    assert run_plan(held, run=first).exit_code == 0
    assert len(first.ran) == 12
    outcome = run_plan(held, run=again)
    assert again.ran == []
    assert set(outcome.states.values()) == {"kept"}


def test_a_step_whose_output_changed_is_done_again_with_what_follows(tmp_path: Path) -> None:
    held = plan(tmp_path)
    run_plan(held, run=Commands(held))
    (held.out / "bundles" / "clip-vit-base-patch32-onnx-int8" / "manifest.json").write_text("another export")
    again = Commands(held)
    run_plan(held, run=again)
    # The export makes the same file again, so nothing that follows has changed.
    assert again.ran == ["export"]


def test_a_budget_that_changed_is_held_against_again_and_the_report_follows(tmp_path: Path) -> None:
    held = plan(tmp_path)
    run_plan(held, run=Commands(held))
    (tmp_path / "doorbell.yaml").write_text("budget: 1 # stricter")
    again = Commands(held)
    again.answers = {"validate": "another verdict"}
    run_plan(held, run=again)
    assert again.ran == ["validate", "size", "report"]


def test_a_failure_leaves_out_what_needs_it_and_the_rest_goes_on(tmp_path: Path) -> None:
    held = plan(tmp_path)
    outcome = run_plan(held, run=Commands(held, fail={"int8": 6}))
    assert outcome.states["export clip-vit-base-patch32-onnx-int8"] == "failed"
    assert outcome.states["bench clip-vit-base-patch32-onnx-int8 on pi5, single-stream"] == "left out"
    assert outcome.states["bench clip-vit-base-patch32-onnx-fp32 on pi5, single-stream"] == "done"
    assert outcome.states["report"] == "done"
    assert outcome.exit_code == 6


@pytest.mark.parametrize(("gate", "board", "code"), [(1, 0, 1), (8, 0, 8), (1, 3, 1), (8, 3, 3), (0, 3, 3)])
def test_a_failed_gate_comes_before_an_unreachable_board(tmp_path: Path, gate: int, board: int, code: int) -> None:
    held = plan(tmp_path)
    outcome = run_plan(held, run=Commands(held, fail={"validate": gate, "pi5": board}))
    assert outcome.exit_code == code
    assert outcome.states["report"] == "done"


def test_a_gate_s_verdict_is_kept_with_its_code(tmp_path: Path) -> None:
    held = plan(tmp_path)
    run_plan(held, run=Commands(held, fail={"validate": 1}))
    assert run_plan(held, run=Commands(held)).exit_code == 1


def test_an_interrupted_plan_goes_on(tmp_path: Path) -> None:
    held = plan(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run_plan(held, run=Commands(held, fail={"eval": 130}))
    again = Commands(held)
    run_plan(held, run=again)
    assert again.ran == ["eval", "eval", "score", "validate", "size", "report"]


def test_a_command_that_leaves_nothing_behind_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="left no output"):
        run_plan(plan(tmp_path), run=lambda _, __: 0)


def test_a_spoilt_record_is_named(tmp_path: Path) -> None:
    held = plan(tmp_path)
    held.out.mkdir(parents=True)
    for spoilt in ({"score": 5}, {"score": {"key": "k", "output": "o", "code": "x"}}):
        (held.out / LEDGER).write_text(json.dumps(spoilt))
        with pytest.raises(InputError, match="record of finished steps"):
            run_plan(held, run=Commands(held))


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("models: [a]", 1, "plan: 1"),
        ("plan: 1\nname: x", 1, "no models"),
        ("plan: 1\nmodels: [a]\nprecisions: [fp33]", 3, "'fp33' is none of"),
        ("plan: 1\nmodels: [a]\nscenario: [server]", 3, "unknown key 'scenario'"),
        ("plan: 1\nmodels: [a, a]", 2, "stands twice"),
        ("plan: 1\nmodels: []", 2, "no models"),
        ("plan: 1\nmodels: [a]\ndata: {cocoo: x}", 3, "'cocoo' is none of the datasets"),
        ("plan: 1\nmodels: [a]\nduration: long", 3, "'long' is not a time"),
        ("plan: 1\nmodels: [a]\nbudget: absent.yaml", 3, "there is no .*absent.yaml"),
        ("plan: 1\nmodels: [a]\nprecisions: []", 3, "no precisions"),
        ("plan: 1\nmodels: [a]\ndevices: []", 3, "no devices"),
        ("plan: 1\nmodels: [a]\ndevices: ['a,b']", 3, "no single device"),
        ("plan: 1\nmodels: [a]\nscenarios: []", 3, "no scenarios"),
        ("plan: 1\nmodels: [a]\nduration: 0s", 3, "'0s' is not a time"),
        ("plan: 1\nmodels: [a]\nperturb: fogg", 3, "Unknown perturbation 'fogg'"),
        ("plan: 1\nmodels: [a]\ndata: {mine: 'a,b'}", 3, "has a comma"),
        ("plan: 1\nmodels: [a]\nruns: 0", 3, "whole number"),
        ("plan: 1\nmodels: [a]\nrandom_weights: maybe", 3, "true or false"),
    ],
)
def test_an_error_names_the_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        plan(tmp_path, text)
    assert error.value.where == f"{tmp_path / 'plan.yaml'}, line {line}"
