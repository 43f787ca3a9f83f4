"""A plan in YAML becomes a list of commands, each with what it needs and what it leaves behind."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from argus_edge.errors import UsageError
from argus_edge.times import parse_seconds
from argus_edge.yaml_lines import YamlReader, read_yaml_text

VERSION = 1
GUIDE = "docs/plans.md"
TOP_LEVEL = (
    "plan", "name", "models", "formats", "precisions", "devices", "data", "perturb", "scenarios", "duration", "runs",
    "threads", "budget", "weights", "random_weights", "calibration", "limit", "out",
)  # fmt: skip
PRECISIONS = ("fp32", "fp16", "int8", "int8-static", "int4")
FORMATS = ("onnx", "tflite", "torch")
CLASS = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@dataclass(frozen=True)
class Plan:
    """What to do, as the user wrote it; paths are relative to the plan's folder."""

    name: str
    models: tuple[str, ...]
    out: Path
    formats: tuple[str, ...] = ("onnx",)
    precisions: tuple[str, ...] = ("fp32",)
    devices: tuple[str, ...] = ("local",)
    data: tuple[tuple[str, str], ...] = ()
    perturb: str = "none"
    scenarios: tuple[str, ...] = ("single-stream", "offline")
    duration: str | None = None
    runs: int = 1
    threads: int | None = None
    budget: Path | None = None
    weights: Path | None = None
    random_weights: bool = False
    calibration: Path | None = None
    limit: int | None = None


@dataclass(frozen=True)
class Step:
    """One command.

    Attributes
    ----------
    name
        For a person, unique in the plan.
    argv
        Arguments of ``argus-edge``.
    output
        The file that shows it is done.
    needs
        Names of the steps before it; one that failed leaves this one out, unless ``tolerant``.
    tolerant
        Goes on with what there is, as long as one of its needs was done.
    gate
        Its exit codes 1 and 8 are verdicts, not failures.
    reads
        Files and folders of the user's that it is made from, beside what the steps before it left; some may not exist.
    """

    name: str
    argv: tuple[str, ...]
    output: Path
    needs: tuple[str, ...] = ()
    tolerant: bool = False
    gate: bool = False
    reads: tuple[Path, ...] = ()


class _PlanReader(YamlReader):
    """Reads the choices that have a closed set of answers."""

    def choices(self, node: yaml.Node, what: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
        found = self.several(node, what)
        for name in found:
            if name not in allowed:
                raise self.fail(node, f"{name!r} is none of the {what}: {', '.join(allowed)}")
        return tuple(found)

    def several(self, node: yaml.Node, what: str) -> tuple[str, ...]:
        found = self.texts(node, what)
        if not found:
            raise self.fail(node, f"there are no {what}")
        return tuple(found)

    def devices(self, node: yaml.Node) -> tuple[str, ...]:
        found = self.several(node, "devices")
        for name in found:
            if "," in name or name == "all":
                raise self.fail(node, f"{name!r} is no single device; give a list of names")
        return found

    def perturb(self, node: yaml.Node) -> str:
        from argus_edge.evaluate.conditions import perturbation_lines

        text = self.text(node, "perturb")
        try:
            perturbation_lines(text)
        except UsageError as error:
            raise self.fail(node, error.what.rstrip(".")) from error
        return text


def parse_plan(text: str, where: str, folder: Path) -> Plan:
    """Return the plan that a YAML text states.

    Parameters
    ----------
    text
        The plan.
    where
        Its file, for errors.
    folder
        What relative paths start from.

    Raises
    ------
    InputError
        Not YAML, an unknown key or choice, with the line number.
    """
    from argus_edge.agents.wire import SCENARIOS
    from argus_edge.evaluate.datasets import DATASETS

    reader = _PlanReader(where, "plan", GUIDE)
    node = reader.compose(text)
    top = reader.mapping(node, TOP_LEVEL, "the plan")
    values = {name: value for name, (_, value) in top.items()}
    version = reader.scalar(values["plan"], "plan") if "plan" in values else None
    if version != VERSION:
        raise reader.fail(values.get("plan", node), f"the first line must be `plan: {VERSION}`")
    if "models" not in values:
        raise reader.fail(node, "there are no models")
    models = reader.several(values["models"], "models")
    duration = str(reader.scalar(values["duration"], "duration")) if "duration" in values else None
    if duration is not None:
        try:
            parse_seconds(duration)
        except ValueError as error:
            raise reader.fail(values["duration"], str(error)) from error

    def path(name: str, *, there: bool = False) -> Path | None:
        if name not in values:
            return None
        found = folder / Path(reader.text(values[name], name)).expanduser()
        if there and not found.exists():
            raise reader.fail(values[name], f"there is no {found}")
        return found

    def whole(name: str) -> int | None:
        return reader.whole(values[name], name) if name in values else None

    data: tuple[tuple[str, str], ...] = ()
    if "data" in values:
        entries = reader.mapping(values["data"], None, "data")
        for dataset, (key, value) in entries.items():
            if dataset not in (*DATASETS, "all"):
                raise reader.fail(key, f"{dataset!r} is none of the datasets: {', '.join(DATASETS)}, all")
            if "," in _local(reader.text(value, dataset), folder):
                raise reader.fail(value, f"the path of {dataset} has a comma, which `eval --data` takes for its end")
        data = tuple((name, _local(reader.text(value, name), folder)) for name, (_, value) in entries.items())
    name = reader.text(values["name"], "name") if "name" in values else Path(where).stem
    return Plan(
        name=name,
        models=tuple(_local(model, folder) for model in models),
        out=path("out") or folder / "runs" / slug(name),
        formats=reader.choices(values["formats"], "formats", FORMATS) if "formats" in values else ("onnx",),
        precisions=reader.choices(values["precisions"], "precisions", PRECISIONS)
        if "precisions" in values
        else ("fp32",),
        devices=reader.devices(values["devices"]) if "devices" in values else ("local",),
        data=data,
        perturb=reader.perturb(values["perturb"]) if "perturb" in values else "none",
        scenarios=reader.choices(values["scenarios"], "scenarios", SCENARIOS)
        if "scenarios" in values
        else ("single-stream", "offline"),
        duration=duration,
        runs=whole("runs") or 1,
        threads=whole("threads"),
        budget=path("budget", there=True),
        weights=path("weights", there=True),
        random_weights=reader.flag(values["random_weights"], "random_weights") if "random_weights" in values else False,
        calibration=path("calibration", there=True),
        limit=whole("limit"),
    )


def _local(name: str, folder: Path) -> str:
    """Return a model or dataset that names a file of the plan's folder with that folder; a hub id stays as it is."""
    if name.startswith(("./", "../", "~")) or (folder / name).exists():
        return str(folder / Path(name).expanduser())
    return name


def read_plan(path: Path | str) -> Plan:
    """Read and check a plan's file; see :func:`parse_plan`."""
    return parse_plan(
        read_yaml_text(path, "plan", next_step=f"check the path; {GUIDE} has one to copy"),
        str(path),
        Path(path).resolve().parent,
    )


def slug(text: str) -> str:
    """Return a text as part of a file's name: of a path its last part, of ``module:Class`` the class."""
    name = text.rpartition(":")[2] if CLASS.fullmatch(text) else Path(text).name or text
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "model"


def labels_of(models: Sequence[str]) -> dict[str, str]:
    """Return what each model's files are called: its last part, after the folder or module where two are alike.

    Two models of one name would otherwise write over each other's bundles and reports.
    """
    short = {model: slug(model) for model in models}
    alike = {model for model in models if list(short.values()).count(short[model]) > 1}
    labels = short | {model: re.sub(r"[^A-Za-z0-9._-]+", "-", _longer(model)).strip("-.") for model in alike}
    again = {model for model in models if list(labels.values()).count(labels[model]) > 1}
    return labels | {model: f"{labels[model]}-{hashlib.sha256(model.encode()).hexdigest()[:8]}" for model in again}


def _longer(model: str) -> str:
    return model if CLASS.fullmatch(model) else "-".join(Path(model).parts[-2:])


def _is_bundle(model: str) -> bool:
    return (Path(model) / "manifest.json").is_file()


def steps_of(plan: Plan) -> list[Step]:
    """Return the commands of a plan in an order in which each finds what it needs.

    A model that is a bundle is not exported again. With random weights nothing is evaluated: there is no capability
    to measure.
    """
    exports = list(_exports(plan))
    evaluations = [] if plan.random_weights or not plan.data else [_evaluation(plan, *each) for each in exports]
    benches = [
        _bench(plan, *each, device, scenario)
        for each, device, scenario in itertools.product(exports, plan.devices, plan.scenarios)
    ]
    steps = [step for _, _, step in exports if step is not None] + benches + evaluations
    return steps + list(_decisions(plan, benches, evaluations))


def _exports(plan: Plan) -> Iterator[tuple[str, str, Step | None]]:
    """Iterate over (label, bundle folder, the step that makes it)."""
    labels = labels_of(plan.models)
    given = {labels[model] for model in plan.models if _is_bundle(model)}
    for model in plan.models:
        if _is_bundle(model):
            yield labels[model], model, None
            continue
        for file_format, precision in itertools.product(plan.formats, plan.precisions):
            label = f"{labels[model]}-{file_format}-{precision}"
            label += "-exported" if label in given else ""
            folder = plan.out / "bundles" / label
            argv = ["export", model, "--format", file_format, "--precision", precision, "--out", str(folder), "--force"]
            if plan.random_weights:
                argv.append("--random-weights")
            if plan.calibration is not None:
                argv += ["--calibration", str(plan.calibration)]
            reads = (_source(model), *(() if plan.calibration is None else (plan.calibration,)))
            yield label, str(folder), Step(f"export {label}", tuple(argv), folder / "manifest.json", reads=reads)


def _source(model: str) -> Path:
    """Return the file or folder that a local model is made of; a hub's id names none."""
    if CLASS.fullmatch(model) and not Path(model).exists():
        return Path(*model.partition(":")[0].split(".")).with_suffix(".py")
    return Path(model)


def _after(step: Step | None) -> tuple[str, ...]:
    return () if step is None else (step.name,)


def _given(bundle: str, made_by: Step | None) -> tuple[Path, ...]:
    return (Path(bundle),) if made_by is None else ()


def _evaluation(plan: Plan, label: str, bundle: str, made_by: Step | None) -> Step:
    out = plan.out / "eval" / label
    data = ",".join(f"{name}={path}" for name, path in plan.data)
    argv = ["eval", bundle, "--data", data, "--perturb", plan.perturb, "--out", str(out), "--force"]
    if plan.limit is not None:
        argv += ["--limit", str(plan.limit)]
    reads = (*_given(bundle, made_by), *(Path(path) for _, path in plan.data))
    return Step(f"eval {label}", tuple(argv), out / "eval.json", _after(made_by), reads=reads)


def _bench(plan: Plan, label: str, bundle: str, made_by: Step | None, device: str, scenario: str) -> Step:
    output = plan.out / "bench" / f"{label}.{slug(device)}.{scenario}.json"
    argv = ["bench", bundle, "--device", device, "--scenario", scenario, "--runs", str(plan.runs), "--out", str(output)]
    if plan.duration is not None:
        argv += ["--duration", plan.duration]
    if plan.threads is not None:
        argv += ["--threads", str(plan.threads)]
    # What holds the board may be the run that this plan, killed outright, has left there.
    argv.append("--wait")
    return Step(
        f"bench {label} on {device}, {scenario}", tuple(argv), output, _after(made_by), reads=_given(bundle, made_by)
    )


def _decisions(plan: Plan, benches: list[Step], evaluations: list[Step]) -> Iterator[Step]:
    measured = tuple(step.name for step in [*benches, *evaluations])
    folders = [str(plan.out / "bench"), *([str(plan.out / "eval")] if evaluations else [])]
    budget = [] if plan.budget is None else ["--budget", str(plan.budget)]
    budget_file = () if plan.budget is None else (plan.budget,)
    decided: list[Step] = []
    if evaluations:
        weights = [] if plan.weights is None else ["--score-weights", str(plan.weights)]
        out = plan.out / "score.json"
        single = budget if len({step.argv[1] for step in evaluations}) == 1 else []
        reads = (*(budget_file if single else ()), *(() if plan.weights is None else (plan.weights,)))
        argv = ("score", *folders, *weights, *single, "--out", str(out))
        decided.append(Step("score", argv, out, measured, tolerant=True, reads=reads))
    if plan.budget is not None:
        out = plan.out / "verdict.json"
        argv = ("validate", *folders, *budget, "--out", str(out), "--junit", str(plan.out / "gate.xml"))
        decided.append(Step("validate", argv, out, measured, tolerant=True, gate=True, reads=budget_file))
        out = plan.out / "sizing.json"
        argv = ("size", *folders, *budget, "--out", str(out))
        decided.append(Step("size", argv, out, measured, tolerant=True, reads=budget_file))
    yield from decided
    out = plan.out / "report.html"
    needs = (*measured, *(step.name for step in decided))
    yield Step("report", ("report", str(plan.out), "--html", str(out)), out, needs, tolerant=True)
