"""From what the user typed as MODEL to something that can be benched: a file, a bundle, or the built-in ResNet-50."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from argus_edge.bench.model_types import BenchComponent, Format, InputSpec, ModelFile, ResolvedModel
from argus_edge.bundles import bundle_path, is_bundle, read_bundle
from argus_edge.errors import InputError
from argus_edge.schema.bundle import BundleManifest, Component
from argus_edge.text import clean

RESNET50_NOTE = (
    "No MODEL was given: this is ResNet-50 of the onnx package, whose weights are constant. "
    "Times are real, outputs are not."
)
LIGHT_NOTE = "The weights of this model of the onnx package are constant: times are real, outputs are not."
LFS_POINTER = b"version https://git-lfs."
# Below this a bundle is read before anybody wonders.
LONG_TO_READ_BYTES = 1_000_000_000
NULL_NOTE = "The null runtime calls nothing: these figures are the cost of the harness itself."


def resolve_model(given: str | None, *, runtime: str = "auto") -> ResolvedModel:
    """Return the model that a user named.

    Parameters
    ----------
    given
        A bundle's folder, a ``.onnx``, ``.tflite`` or torch file; None for ResNet-50 of the installed onnx package.
    runtime
        ``"null"`` with no model: nothing is sent, the harness itself is measured.

    Raises
    ------
    InputError
        Missing, empty, truncated, of no known kind, or with external data that is missing or leads out of its folder.
    """
    if given is None:
        return _null_model() if runtime == "null" else _resnet50()
    path = Path(given)
    if path.is_dir():
        return _bundle(path)
    if not path.exists():
        raise _not_there(given)
    if not path.is_file():
        raise InputError("The model is not a file.", where=given)
    try:
        with path.open("rb") as file:
            head = file.read(max(8, len(LFS_POINTER)))
    except OSError as error:
        raise InputError(f"Cannot read the model: {error.strerror}.", where=given) from error
    if not head:
        raise InputError("The model file is empty.", where=given, next_step="copy or export the model again")
    component = _reader(path, head)(path, None)
    constant = is_light_model(path)
    return ResolvedModel(
        name=clean(path.name, limit=200),
        sha256=component.model.sha256 if component.model else None,
        components=(component,),
        constant_weights=constant,
        notes=(LIGHT_NOTE,) if constant else (),
    )


def _not_there(given: str) -> InputError:
    if Path(given).suffix or given.startswith((".", "/", "~")):
        return InputError("No such model.", where=given, next_step="check the path")
    return InputError(
        "No such file or bundle; a model by its name must be exported first.",
        where=given,
        next_step=_export_first(given),
    )


def _export_first(given: str) -> str:
    bundle = f"{Path(given).resolve().name}.bundle"
    return f"argus-edge export {shlex.quote(given)} --format onnx --out {shlex.quote(bundle)}, then bench that folder"


def _reader(path: Path, head: bytes) -> Callable[[Path, str | None], BenchComponent]:
    """Choose by what the file holds; its suffix decides where its first bytes do not."""
    if head.startswith(LFS_POINTER):
        raise InputError(
            "This is a pointer of Git LFS's, not the model itself.",
            where=str(path),
            next_step="git lfs pull, where the model was cloned",
        )
    suffix = path.suffix.lower()
    if head[4:8] == b"TFL3" or suffix in (".tflite", ".lite"):
        from argus_edge.bench.tflite_files import tflite_component

        return tflite_component
    if head[:4] == b"PK\x03\x04" or suffix in (".pt", ".pth", ".pt2", ".ts", ".torchscript"):
        from argus_edge.bench.torch_files import torch_component

        return torch_component
    if suffix in (".engine", ".plan"):
        raise InputError(
            "A TensorRT engine fits only the board and version it was built on.",
            where=str(path),
            next_step="give the ONNX file with --runtime tensorrt: the engine is built on the board and cached there",
        )
    from argus_edge.bench.onnx_files import onnx_component

    return onnx_component


def light_folder() -> Path:
    """Return the folder of the onnx package's models with constant weights."""
    import onnx

    return Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def is_light_model(path: Path) -> bool:
    """Tell whether a file is one of the onnx package's models with constant weights (or a copy under its name)."""
    return path.name.startswith("light_") and (light_folder() / path.name).is_file()


def long_to_read(given: str | None) -> int:
    """Return the bytes of a bundle that takes its time to be read; 0 for what does not, or is no bundle."""
    try:
        if given is None or not is_bundle(Path(given)):
            return 0
        size = sum(path.stat().st_size for path in Path(given).rglob("*") if path.is_file())
    except OSError:  # what is the matter with it is said when it is read
        return 0
    return size if size >= LONG_TO_READ_BYTES else 0


def _resnet50() -> ResolvedModel:
    path = light_folder() / "light_resnet50.onnx"
    if not path.is_file():
        raise InputError(
            "The installed onnx package does not bring its ResNet-50.", where=str(path), next_step="name a MODEL"
        )
    from argus_edge.bench.onnx_files import onnx_component

    component = onnx_component(path, "resnet50")
    return ResolvedModel(
        name="resnet50",
        sha256=component.model.sha256 if component.model else None,
        components=(component,),
        constant_weights=True,
        notes=(RESNET50_NOTE,),
    )


def _null_model() -> ResolvedModel:
    component = BenchComponent(name="null", format="none", model=None, inputs=())
    return ResolvedModel(name="null", sha256=None, components=(component,), notes=(NULL_NOTE,))


def _bundle(folder: Path) -> ResolvedModel:
    if not is_bundle(folder):
        raise InputError(
            "This folder is no bundle: it has no manifest.json.",
            where=str(folder),
            next_step=_export_first(str(folder)),
        )
    from argus_edge.artifacts import sha256_file

    manifest = read_bundle(folder)
    return ResolvedModel(
        name=manifest.name,
        sha256=sha256_file(folder / "manifest.json"),
        components=tuple(_bundled(folder, manifest, component) for component in manifest.components),
        manifest=manifest,
        root=folder,
        notes=tuple(_bundle_notes(manifest)),
    )


def _bundle_notes(manifest: BundleManifest) -> list[str]:
    notes = list(manifest.warnings)
    if manifest.random_weights:
        # Said once: the exporter's warning is about the bundle, this is about its figures.
        notes = [note for note in notes if not note.startswith("random weights")]
        notes.append("The weights are random: times and memory are real, outputs are not.")
    if manifest.encoder_only:
        notes.append("Encoder only: the region features come from a detector that is not part of this figure.")
    if not manifest.parity_passed:
        notes.append("The export's parity check failed: this bundle does not compute what the original computes.")
    return notes


def _bundled(folder: Path, manifest: BundleManifest, component: Component) -> BenchComponent:
    path = bundle_path(folder, component.file)
    parent = Path(component.file.path).parent
    try:
        names = [Path(file.path).relative_to(parent).as_posix() for file in component.external_data]
    except ValueError as error:
        raise InputError(
            f"External data of {component.name} does not lie beside its model file.", where=str(folder)
        ) from error
    external = tuple(
        ModelFile(path=bundle_path(folder, file), name=name, sha256=file.sha256, bytes=file.bytes)
        for name, file in zip(names, component.external_data, strict=True)
    )
    inputs = tuple(InputSpec(spec.name, spec.dtype, tuple(spec.shape), values=spec.values) for spec in component.inputs)
    return BenchComponent(
        name=component.name,
        format=_format(component, path),
        model=ModelFile(path=path, name=path.name, sha256=component.file.sha256, bytes=component.file.bytes),
        external=external,
        inputs=inputs,
        opset=component.opset,
        ir_version=component.ir_version,
        ops=component.ops,
        precision=component.precision,
        bundled=component,
    )


def _format(component: Component, path: Path) -> Format:
    if component.format != "torch":
        return component.format
    from argus_edge.bench.torch_files import torch_component

    return torch_component(path).format
