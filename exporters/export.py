"""Exporting a model: load, split, convert, run, compare, count; the bundle appears only when all of it is done."""

from __future__ import annotations

import contextlib
import errno
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from argus_edge.artifacts import host_errors, write_artifact
from argus_edge.bundles import MANIFEST, is_bundle
from argus_edge.errors import HostError, InputError, ParityError, UsageError
from argus_edge.evaluate.models.user_class import is_class
from argus_edge.exporters import capacity, optimum_route
from argus_edge.exporters.calibration import Calibration, load_calibration
from argus_edge.exporters.component import ComponentJob, export_component
from argus_edge.exporters.format import Format
from argus_edge.exporters.limits import choose_opset
from argus_edge.exporters.plan import Family
from argus_edge.exporters.processor import checkpoint_ends, checkpoint_preprocess, copy_processor
from argus_edge.exporters.registry import FAMILIES, FORMATS
from argus_edge.exporters.source import ModelSource, resolve, unsupported
from argus_edge.exporters.stored import store
from argus_edge.exporters.user_class import open_class
from argus_edge.exporters.weights import load_model
from argus_edge.schema.base import Source
from argus_edge.schema.bundle import BundleManifest, Component, Generation, Precision, UnitOfWork

PACKAGES = (
    "torch",
    "transformers",
    "onnx",
    "onnxruntime",
    "onnxscript",
    "litert-torch",
    "ai-edge-litert",
    "optimum-onnx",
)
CACHE_NAMES = ("past_key", "past_value", "present_key", "present_value")
Say = Callable[[str], None]


@dataclass(frozen=True)
class ExportOptions:
    """What the user asked for; see ``argus-edge export --help``."""

    model: str
    out: Path
    format: str = "onnx"
    precision: Precision = "fp32"
    device: str | None = None
    opset: int | None = None
    random_weights: bool = False
    seed: int = 0
    revision: str | None = None
    calibration: Path | None = None
    fp16_embeddings: bool = False
    trust_remote_code: bool = False
    allow_pickle: bool = False
    allow_parity_fail: bool = False
    force: bool = False
    check: bool = True


def export_model(options: ExportOptions, say: Say = lambda message: None) -> BundleManifest:
    """Export a model into a checked bundle.

    Parameters
    ----------
    options
        What to export, how, and where to.
    say
        Receives one line of progress at a time.

    Returns
    -------
    BundleManifest
        Of the bundle, which is at ``options.out``.

    Raises
    ------
    UsageError, InputError
        The request, the model or its configuration does not hold together.
    MisfitError
        The device cannot run what was asked for; found out before any work starts.
    ParityError
        The exported files do not compute what the original computes; nothing is written unless allowed.
    HostError
        No room, no memory, no permission.
    """
    file_format: Format = FORMATS[options.format]()
    file_format.check_precision(options.precision)
    opset = choose_opset(options.device, options.format, options.precision, options.opset)
    file_format.check_installed()
    check_target(options.out, force=options.force)
    family: Family
    if is_class(options.model):
        source, family = open_class(options.model, random_weights=options.random_weights, seed=options.seed)
    else:
        say(f"reading the configuration of {options.model}")
        source = resolve(
            options.model,
            revision=options.revision,
            random_weights=options.random_weights,
            seed=options.seed,
            trust_remote_code=options.trust_remote_code,
            allow_pickle=options.allow_pickle,
        )
        family = family_of(source)
    file_format = family.file_format(file_format)
    file_format.check_precision(options.precision)
    with work_folder(options.out) as folder:
        manifest = build(options, source, family, file_format, opset, folder, say)
        write_artifact(manifest, folder / MANIFEST)
        publish(folder, options.out)
    return manifest


def family_of(source: ModelSource) -> Family:
    """Return the family of a model.

    Raises
    ------
    InputError
        There is none for its architecture.
    """
    model_type = str(getattr(source.config, "model_type", ""))
    if model_type not in FAMILIES:
        if optimum_route.available():
            return optimum_route.OptimumFamily(source.config, source.architecture)
        raise unsupported(f"The architecture {source.architecture} ({model_type})", source.source_id)
    family: type[Family] = FAMILIES[model_type]
    if source.architecture not in family.architectures:
        raise InputError(
            f"{source.architecture} is not supported for the family {family.name}.",
            where=source.source_id,
            next_step=f"supported: {', '.join(family.architectures)}",
        )
    return family(source.config, source.architecture)


def build(
    options: ExportOptions,
    source: ModelSource,
    family: Family,
    file_format: Format,
    opset: int,
    folder: Path,
    say: Say,
) -> BundleManifest:
    """Export every component into ``folder`` and return the manifest."""
    load_dtype = storage_dtype(source, options.precision)
    capacity.check_memory(source, family, options.precision, load_dtype)
    unit_of_work = renamed_steps(family.unit_of_work(), file_format.tensor_name)
    processor = copy_processor(source, folder)
    generation = renamed_cache(checkpoint_ends(family.generation(), folder), file_format.tensor_name)
    preprocess = family.preprocess()
    if source.loaded is None:  # a class of the user's says for itself how its images are prepared
        preprocess = checkpoint_preprocess(preprocess, folder)
    warnings = []
    if preprocess is None and family.preprocess() is not None:
        unsaid = "the image processor resizes or cuts otherwise than a bundle can say"
        if options.precision == "int8-static" and not source.random_weights:
            raise UsageError(
                f"int8-static cannot be calibrated on images: {unsaid}.", next_step="choose another --precision"
            )
        warnings.append(f"{unsaid}: `eval` cannot prepare images for it")
    calibration = Calibration()
    if options.calibration is not None:
        calibration = load_calibration(options.calibration, preprocess, folder)
    if source.random_weights:
        warnings.append("random weights: for sizing only, its outputs mean nothing")
    if options.precision == "int8-static" and not calibration:
        if not source.random_weights:
            raise UsageError("int8-static needs samples to calibrate on.", next_step="add --calibration FOLDER")
        warnings.append("int8-static was calibrated on made-up inputs")

    components: list[Component] = []
    model: Any = None
    bindings = {target: fed for step in unit_of_work.steps for target, fed in step.bindings.items()}
    for index, plan in enumerate(family.components()):
        if model is None or source.random_weights:
            model = None  # give the last component's random weights back before the next ones are made
            model = load_model(source, family, load_dtype)
            if load_dtype is not torch.float32:
                store(model)
        job = ComponentJob(
            plan=plan,
            file_format=file_format,
            precision=options.precision,
            opset=opset,
            folder=folder,
            seed=source.seed + 1000 * index,
            random_weights=source.random_weights,
            calibration=calibration,
            bindings=bindings,
            fp16_embeddings=options.fp16_embeddings,
            check=options.check,
        )
        components.append(export_component(job, plan.build(model), say))
    passed = all(component.parity.passed for component in components if component.parity)
    if not passed:
        if not options.allow_parity_fail:
            raise ParityError(
                f"The exported files do not compute what {source.source_id} computes: {worst(components)}.",
                next_step="choose another --precision, or --allow-parity-fail to look at the bundle anyway",
            )
        warnings.append(f"parity failed: {worst(components)}")
    return BundleManifest(
        name=options.out.name,
        family=family.name,
        architecture=source.architecture,
        source_id=source.source_id,
        source_revision=source.revision,
        format=options.format,  # type: ignore[arg-type]
        precision=options.precision,
        random_weights=source.random_weights,
        seed=source.seed if source.random_weights else None,
        encoder_only=family.encoder_only,
        load_dtype=str(load_dtype).removeprefix("torch."),  # type: ignore[arg-type]
        device=options.device,
        parity_passed=passed,
        components=components,
        processor=processor,
        generation=generation,
        preprocess=preprocess,
        unit_of_work=unit_of_work,
        toolchain=toolchain(),
        warnings=warnings,
        sources=[Source(name=source.source_id, revision=source.revision)],
    )


def renamed_steps(work: UnitOfWork, rename: Callable[[str], str]) -> UnitOfWork:
    """Return a unit of work whose bindings name tensors as the files do."""
    steps = []
    for step in work.steps:
        parts = {target: source.partition(".") for target, source in step.bindings.items()}
        fed = {rename(target): f"{component}.{rename(output)}" for target, (component, _, output) in parts.items()}
        steps.append(step.model_copy(update={"bindings": fed}))
    return work.model_copy(update={"steps": steps})


def renamed_cache(generation: Generation | None, rename: Callable[[str], str]) -> Generation | None:
    """Return how to generate with the cache's tensors named as in the files."""
    if generation is None:
        return None
    names = {field: rename(getattr(generation.kv, field)) for field in CACHE_NAMES}
    return generation.model_copy(update={"kv": generation.kv.model_copy(update=names)})


def storage_dtype(source: ModelSource, precision: Precision) -> torch.dtype:
    """Return the type that weights have in memory: int4 exports keep a bfloat16 checkpoint as it is."""
    stored = getattr(source.config, "dtype", None) or getattr(source.config, "torch_dtype", None)
    if precision == "int4" and str(stored).removeprefix("torch.") == "bfloat16":
        return torch.bfloat16
    return torch.float32


def worst(components: list[Component]) -> str:
    """Return, in words, the outputs that are furthest from the original."""
    failed = [
        (figure, component.name)
        for component in components
        if component.parity
        for figure in component.parity.figures
        if not figure.passed
    ]
    # NaN sorts first: it is the worst of all.
    failed.sort(key=lambda item: (item[0].cosine == item[0].cosine, item[0].cosine))
    return "; ".join(
        f"{name}/{figure.output} at case {figure.case}: cosine {figure.cosine:.6f}, "
        f"max abs error {figure.max_abs_error:.3g} of {figure.max_abs_reference:.3g}"
        for figure, name in failed[:3]
    )


def toolchain() -> dict[str, str]:
    """Return the versions of the packages that can change an export."""
    found = {}
    for package in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def check_target(out: Path, *, force: bool) -> None:
    """Raise where the bundle's folder is taken; only a bundle may be replaced, and only when told to.

    Raises
    ------
    UsageError
        The path exists.
    """
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not is_bundle(out):
        raise UsageError("The output path exists and is no bundle.", where=str(out), next_step="choose another --out")
    if not force:
        raise UsageError(
            "There is a bundle already.", where=str(out), next_step="choose another --out, or add --force to replace it"
        )


@contextlib.contextmanager
def work_folder(out: Path) -> Iterator[Path]:
    """Give a hidden folder beside the target, and remove it whatever happens.

    Raises
    ------
    HostError
        The disk filled up, or the place is not writable.
    """
    with host_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{out.name[:80]}.", suffix=".partial", dir=out.parent))
    try:
        yield folder
    except MemoryError as error:
        raise HostError(
            f"Not enough memory: {error}.", next_step="close other programs, or use a larger machine"
        ) from error
    except OSError as error:
        with host_errors(out):
            raise
        raise HostError(f"Writing the bundle failed: {error}.", where=str(out)) from error
    except Exception as error:
        # Converters wrap a full disk in exceptions of their own.
        if disk_is_full(error, out.parent):
            raise HostError(
                "The disk is full.", where=str(out), next_step="free some space, or choose another --out"
            ) from error
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def disk_is_full(error: BaseException, folder: Path) -> bool:
    """Tell whether an error, or one that it came from, is about a full disk."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        if "No space left on device" in str(seen):
            return True
        seen = seen.__cause__ or seen.__context__
    return shutil.disk_usage(folder).free < 1 << 20


def publish(folder: Path, out: Path) -> None:
    """Move the finished bundle to its place, replacing a bundle that was there."""
    with host_errors(out):
        folder.chmod(0o755)
        if out.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{out.name[:80]}.", suffix=".old", dir=out.parent))
            out.rename(old / "bundle")
            try:
                folder.rename(out)
            except OSError:
                (old / "bundle").rename(out)
                raise
            shutil.rmtree(old, ignore_errors=True)
        else:
            folder.rename(out)
