"""`argus-edge export`: turn a model into a checked bundle."""

from __future__ import annotations

from pathlib import Path

import click

from argus_edge.cli.output import emit_json, json_option, say
from argus_edge.errors import needing


@click.command()
@click.argument("model")
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["onnx", "tflite", "torch"]),
    default="onnx",
    show_default=True,
    help="onnx: ONNX Runtime and TensorRT; tflite: LiteRT; torch: PyTorch.",
)
@click.option(
    "--precision",
    type=click.Choice(["fp32", "fp16", "int8", "int8-static", "int4"]),
    default="fp32",
    show_default=True,
    help="int8 scales activations at run time, int8-static by samples; int4 is for the weights of linear layers.",
)
@click.option("--device", metavar="NAME", help="Entry of the inventory or profile that the bundle is for.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the bundle [default: MODEL-PRECISION].")
@click.option(
    "--random-weights", is_flag=True, help="The real size with made-up weights: sizing before weights are here."
)
@click.option("--seed", default=0, show_default=True, help="Of random weights and made-up inputs.")
@click.option("--opset", type=int, help="ONNX opset [default: by the device's profile].")
@click.option(
    "--calibration",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Your images and .txt files: golden inputs, and the scales of int8-static.",
)
@click.option("--fp16-embeddings", is_flag=True, help="int4: keep the embedding table in fp16.")
@click.option("--revision", help="Branch, tag or commit on the hub.")
@click.option("--trust-remote-code", is_flag=True, help="Run Python code that comes with the model.")
@click.option("--allow-pickle", is_flag=True, help="Open pickle checkpoints, which can run code.")
@click.option("--allow-parity-fail", is_flag=True, help="Write a bundle that fails its comparison, marked as such.")
@click.option("--force", is_flag=True, help="Replace a bundle that is there.")
@json_option
def export(
    model: str,
    file_format: str,
    precision: str,
    device: str | None,
    out: Path | None,
    random_weights: bool,
    seed: int,
    opset: int | None,
    calibration: Path | None,
    fp16_embeddings: bool,
    revision: str | None,
    trust_remote_code: bool,
    allow_pickle: bool,
    allow_parity_fail: bool,
    force: bool,
    json_path: str | None,
) -> None:
    """Turn MODEL into a checked bundle.

    MODEL is a Hugging Face id, a local model folder, or with --random-weights a shipped configuration (clip-vit-b32,
    blip-captioning-base, lxmert-vqa, gemma-3-4b, qwen2.5-vl-3b). Every component is run in its target runtime and
    compared with the original before the bundle appears.
    """
    with needing("export", "Exporting"):
        from argus_edge.exporters.export import ExportOptions, export_model
    import signal
    import sys

    from argus_edge.artifacts import dump_artifact
    from argus_edge.bench.models import resolve_model
    from argus_edge.inspection import text

    named = Path(model).resolve().name if Path(model).is_dir() else Path(model).name
    target = out or Path(f"{named}-{precision}")
    # Told to end, it takes its gigabytes of half-made files with it, as when it is interrupted.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    manifest = export_model(
        ExportOptions(
            model=model,
            out=target,
            format=file_format,
            precision=precision,  # type: ignore[arg-type]
            device=device,
            opset=opset,
            random_weights=random_weights,
            seed=seed,
            revision=revision,
            calibration=calibration,
            fp16_embeddings=fp16_embeddings,
            trust_remote_code=trust_remote_code,
            allow_pickle=allow_pickle,
            allow_parity_fail=allow_parity_fail,
            force=force,
        ),
        say,
    )
    say(f"bundle written: {target}")
    if json_path:
        emit_json(dump_artifact(manifest), json_path)
    if json_path != "-":
        click.echo(text(resolve_model(str(target))))
