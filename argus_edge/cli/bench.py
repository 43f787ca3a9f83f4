"""`argus-edge bench`: time a model on one or more devices."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from argus_edge.cli.numbers import Finite, Seconds
from argus_edge.cli.output import emit_json, json_option, report_path, say
from argus_edge.errors import UsageError

if TYPE_CHECKING:
    from argus_edge.bench.fleet import Result

# The schema's own lists, written out here so that `--help` imports no pydantic; a test holds them equal.
RUNTIMES = ("auto", "onnxruntime", "litert", "torch", "tensorrt", "server", "null")
PROVIDERS = ("cpu", "cuda", "tensorrt", "xnnpack")
SCENARIOS = ("single-stream", "multi-stream", "offline", "server", "paced", "soak")

# Calls, samples or tokens beyond this are a slip, and would hold a board for days.
MOST = 1_000_000
# What `--resume RUN` takes beside it; all else was settled when the run began.
WITH_A_RUN = {"resumed", "meter", "inventory", "strict", "out", "json_path"}


@click.command(context_settings={"show_default": True})
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@click.option("--device", "-d", "devices", metavar="NAME[,NAME…]", help="Inventory entries, user@host, local, or all.")
@click.option("--tag", help="Of these devices, or of all, only those with this tag.")
@click.option("--inventory", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Another inventory.")
@click.option("--runtime", type=click.Choice(RUNTIMES), default="auto", help="auto: by the model's format.")
@click.option("--provider", type=click.Choice(PROVIDERS), help="Execution provider.  [default: the runtime's own]")
@click.option("--scenario", type=click.Choice(SCENARIOS), default="single-stream", help="How calls are issued.")
@click.option("--duration", type=Seconds(), help="Of the timed window.  [default: 10s; soak: 60s]")
@click.option("--runs", type=click.IntRange(1, 1000), default=1, help="Repeats of the whole run, each a new process.")
@click.option("--warmup", type=click.IntRange(0, MOST), metavar="N", help="Exactly N calls.  [default: until steady]")
@click.option("--batch", type=click.IntRange(1, MOST), help="Samples a call; binds a free first dimension.")
@click.option("--threads", type=click.IntRange(1, 1024), help="Of the runtime.  [default: the runtime's own]")
@click.option("--fps", type=Finite(0, min_open=True), help="paced: frames a second.  [default: 30]")
@click.option("--latency-bound", type=Seconds(), metavar="TIME", help="server: what p99 must stay within, e.g. 50ms.")
@click.option("--qps", type=Finite(0, min_open=True), help="server: arrivals a second, in place of a search.")
@click.option("--streams", type=click.IntRange(1, MOST), help="multi-stream: samples a query.  [default: 8]")
@click.option("--shape", "shapes", multiple=True, metavar="IN=1x3x224x224", help="Lengths of an input, or DIM=N.")
@click.option("--input", "input_file", type=click.Path(path_type=Path), metavar="FILE.npz", help="Inputs by name.")
@click.option(
    "--prompt-tokens", type=click.IntRange(1, MOST), metavar="N", help="Of a model that writes; an image's included."
)
@click.option("--output-tokens", type=click.IntRange(1, 65536), metavar="N", help="That it writes.  [default: 32]")
@click.option("--url", metavar="URL", help="--runtime server: as the device reaches it, http://127.0.0.1:8080/v1.")
@click.option("--image", "images", multiple=True, metavar="FILE|WxH", help="--runtime server: a picture a request.")
@click.option("--profile-ops", is_flag=True, help="A pass of its own that lists the slowest operators.")
@click.option("--energy", is_flag=True, help="A pass of its own for power sensors that disturb the timing (Pi 5).")
@click.option("--label", "labels", multiple=True, metavar="K=V", help="Kept in the report.")
@click.option("--background", multiple=True, metavar="UNIT", help="Declares a load that is part of the set-up.")
@click.option("--meter", type=click.Path(path_type=Path), metavar="FILE.csv", help="An external power meter's log.")
@click.option("--until-decided", "budget", metavar="BUDGET", help="Run until this budget passes or fails.")
@click.option(
    "--max-duration", type=Seconds(), default="600s", help="--until-decided: of all runs together, e.g. 1800s."
)
@click.option("--strict", is_flag=True, help="A run that is not valid exits with 1.")
@click.option("--out", metavar="FILE|FOLDER/", help="Where the report goes.  [default: ./RUN.json]")
@click.option(
    "--wait",
    "patience",
    type=Seconds(),
    is_flag=False,
    flag_value=math.inf,
    metavar="[TIME]",
    help="Queue for a device that another run holds, so long at most.",
)
@click.option("--container", "contained", is_flag=True, help="Run the agent in the device's docker image (Jetson).")
@click.option("--power-cycle", is_flag=True, help="Switch a board that does not answer off and on by its own command.")
@click.option(
    "--resume",
    "resumed",
    is_flag=False,
    flag_value="",
    metavar="[RUN]",
    help="Come back to a run that was left; without RUN, run what this same command has not measured yet.",
)
@json_option
def bench(
    models: tuple[str, ...],
    devices: str | None,
    tag: str | None,
    inventory: Path | None,
    labels: tuple[str, ...],
    meter: Path | None,
    budget: str | None,
    max_duration: float,
    strict: bool,
    out: str | None,
    patience: float | None,
    contained: bool,
    power_cycle: bool,
    resumed: str | None,
    json_path: str | None,
    **how: Any,
) -> int:
    """Time each MODEL on each device: latency, memory, throughput, energy, and whether the run can be trusted.

    MODEL is a bundle, a .onnx, .tflite or torch file. Without one it is ResNet-50 of the onnx package, whose weights
    are constant: its times are real. Devices work at the same time, each at one bench after the other.
    """
    from argus_edge.bench.fleet import run
    from argus_edge.bench.matrix import Means, come_back_task, matrix
    from argus_edge.bench.models import long_to_read
    from argus_edge.bench.prepare import prepare
    from argus_edge.bench.quarantine import Quarantine
    from argus_edge.bench.request import make_request, meter_reader
    from argus_edge.bench.waiting import Queue
    from argus_edge.devices.container import check_containers, in_container
    from argus_edge.devices.inventory import Inventory
    from argus_edge.interrupts import Interrupts
    from argus_edge.report.fleet_view import fleet_view
    from argus_edge.store.records import Store

    check_writable(out, json_path)
    read = meter_reader(meter)
    if resumed is not None and budget is not None:
        raise UsageError(
            "--until-decided makes runs of its own.",
            next_step="leave out --resume; or come back to the run first, then argus-edge validate",
        )
    if resumed:
        if others := given_options(besides=WITH_A_RUN):
            raise UsageError(
                f"--resume RUN takes no {', '.join(others)}: the run has its own.",
                next_step="to finish what a command began, put --resume at its end, without RUN",
            )
        means = Means(Store(), meter=read)
        tasks = [come_back_task(means.store.find(resumed), means)]
    else:
        if devices is None and tag is None:
            if resumed is not None and not models:
                raise UsageError(
                    "Come back to what?",
                    next_step="--resume RUN, one of `argus-edge runs list`; or the whole command that was left, "
                    "with --resume at its end",
                )
            raise UsageError("Which device?", next_step="--device local is this machine; argus-edge device list")
        boards = Inventory(inventory, existing=True)
        entries = boards.select("all" if devices is None else devices, tag=tag)
        if contained:
            entries = [in_container(entry) for entry in entries]
        check_containers(entries, how["runtime"])
        if power_cycle and not any(entry.power_cycle for entry in entries):
            raise UsageError(
                "--power-cycle: no device here has a command for it.",
                where=", ".join(entry.name for entry in entries),
                next_step="argus-edge device add NAME --power-cycle COMMAND --replace",
            )
        prepared = []
        for model in models or (None,):
            if size := long_to_read(model):
                say(f"reading {model}: {size / 1e9:.1f} GB, whose hashes are compared")
            request = make_request(model, command=command_line(), labels=read_labels(labels), **how)
            prepared.append(prepare(request))
            for note in prepared[-1].model.notes:
                say(f"note: {note}")
        means = Means(Store(), read, Queue(patience or 0.0), Quarantine(boards), power_cycle)
        if budget is not None:
            from argus_edge.cli.bench_until import bench_until

            return bench_until(
                prepared, entries, means, budget_file=budget, most_s=max_duration, out=out, json_path=json_path
            )
        tasks = matrix(prepared, entries, means, again=resumed is not None)
        if len(tasks) > 1:
            check_folder(out, len(tasks))
            say(f"{len(tasks)} benches on {len(entries)} devices (if this ends early: {finishing()})")
    view = fleet_view([task.entry.name for task in tasks])
    with Interrupts() as interrupts:
        try:
            results = run(tasks, view, interrupts)
        finally:
            view.close()
        finish(results, out=out, json_path=json_path, strict=strict)
    return 0


def given_options(*, besides: Set[str]) -> list[str]:
    """Return what stands on the command line, as it is written in the help."""
    context = click.get_current_context()
    return [
        param.opts[0] if isinstance(param, click.Option) else "MODEL"
        for param in context.command.params
        if param.name not in besides and context.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
    ]


def finishing() -> str:
    """Return the command that runs what this one leaves out."""
    words = sys.argv[1:]
    return shlex.join(["argus-edge", *words, *([] if "--resume" in words else ["--resume"])])


def read_labels(labels: tuple[str, ...]) -> dict[str, str]:
    """Return the labels as a mapping."""
    pairs = {}
    for label in labels:
        key, equals, value = label.partition("=")
        if not equals or not key:
            raise UsageError(f"Cannot read --label {label!r}.", next_step="--label KEY=VALUE")
        pairs[key] = value
    return pairs


def check_writable(out: str | None, json_path: str | None) -> None:
    """Raise before anything is measured where the report could not be written; makes the folder it goes to."""
    import tempfile

    from argus_edge.artifacts import host_errors, is_stream

    if out is None and json_path == "-":
        return
    for target in filter(None, (out, json_path if json_path != "-" else None)) if out or json_path else ("./",):
        if is_stream(target):
            continue
        folder = Path(target) if target.endswith("/") or Path(target).is_dir() else Path(target).parent
        with host_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass


def check_folder(out: str | None, reports: int) -> None:
    """Raise where several reports would go to one file: ``--out FILE.json``, or a file that is there."""
    if out is None or out.endswith("/") or Path(out).is_dir():
        return
    if Path(out).suffix == ".json" or Path(out).exists():
        raise UsageError(
            f"--out {out} is one file, and there will be {reports} reports.",
            next_step="a folder: --out reports/; or one list of them all: --json FILE",
        )


def finish(results: Sequence[Result], *, out: str | None, json_path: str | None, strict: bool) -> None:
    """Write and print the reports, say what is missing, and raise the error to end with."""
    from argus_edge.artifacts import dump_artifact, write_artifact
    from argus_edge.bench.matrix import missing, worst
    from argus_edge.report.console import stdout_console
    from argus_edge.report.fleet_table import fleet_table
    from argus_edge.report.terminal import print_report

    outcomes = [result.outcome for result in results if result.outcome is not None]
    for outcome in outcomes:
        if out is not None or json_path is None:
            path = report_path(out, outcome.report.run, several=len(results) > 1)
            write_artifact(outcome.report, path)
            say(f"report: {path}")
    if json_path is not None and outcomes:
        texts = [dump_artifact(outcome.report) for outcome in outcomes]
        emit_json(texts[0] if len(results) == 1 else "[\n" + ",\n".join(texts) + "]\n", json_path)
    if json_path != "-" and outcomes:
        if len(results) == 1:
            print_report(outcomes[0].report, stdout_console())
        else:
            stdout_console().print(fleet_table(results))
    lacking = missing(results)
    if lacking and len(results) > 1:
        lines = [f"missing: {len(lacking)} of {len(results)}", *(f"  {line}" for line in lacking)]
        say("\n".join([*lines, f"finish with: {finishing()}"]))
    error = worst(results, strict=strict)
    if error is not None:
        raise error


def command_line() -> str:
    """Return the command as typed, without the folders of paths: they are nobody's business but the user's."""
    words = [word.rpartition("/")[2] if word.startswith(("/", "./", "../", "~")) else word for word in sys.argv[1:]]
    return " ".join(["argus-edge", *words])[:2000]
