"""From what the user typed to a model that can be loaded: a bundle, a Hugging Face id or folder, ``module:Class``."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argus_edge.artifacts import sha256_file
from argus_edge.bundles import MANIFEST, is_bundle, read_bundle
from argus_edge.errors import InputError, MissingDependencyError, UsageError
from argus_edge.evaluate.models.base import ModelSpec
from argus_edge.evaluate.models.bundle_base import providers
from argus_edge.evaluate.models.regions import RegionFeatures
from argus_edge.evaluate.models.user_class import class_sha256, find_class, is_class
from argus_edge.text import pasted

__all__ = ["Resolved", "resolve_model"]

_COMPUTE = re.compile(r"cpu|cuda(:\d+)?")
_WAY_OUT = "connect to the hub, or copy the model's folder here and give its path"
# What a model's hash is over; documentation and images of a hub folder are not.
_MODEL_FILES = ("*.safetensors", "*.json", "*.txt", "*.model", "*.jinja")


@dataclass(frozen=True)
class Resolved:
    """A model that was found, not loaded yet, and what a report says about it."""

    spec: ModelSpec
    name: str
    precision: str
    sha256: str
    revision: str | None = None
    source_id: str | None = None
    bundle_sha256: str | None = None
    features_sha256: str | None = None


def resolve_model(
    reference: str,
    *,
    compute: str = "cpu",
    dtype: str = "auto",
    threads: int,
    revision: str | None = None,
    features: Path | None = None,
    here: bool = True,
) -> Resolved:
    """Find a model.

    Parameters
    ----------
    here
        The model is loaded on this machine; False: on others (Ray), whose GPUs this one does not see.

    Raises
    ------
    UsageError
        No such compute device or type.
    InputError
        No such model, an LXMERT without its features, a bundle of another format, or one with random weights:
        capability cannot be measured on those.
    """
    if not _COMPUTE.fullmatch(compute):
        raise UsageError(f"Unknown compute device {compute!r}.", next_step="cpu, cuda or cuda:N")
    folder = Path(reference)
    if is_bundle(folder):
        found = _bundle(folder, compute, threads, here)
    elif is_class(reference):
        found = _class(reference, compute, threads)
    elif reference.endswith((".onnx", ".tflite")):
        raise InputError(
            "A bare model file does not say how images and texts go into it.",
            where=reference,
            next_step="evaluate the bundle that argus-edge export writes, or wrap the file in a class of your own",
        )
    else:
        found = _torch(reference, compute, dtype, threads, revision, here)
    if features is not None:
        found = _with_features(found, features)
    if found.spec.family == "lxmert":
        RegionFeatures(found.spec.features, found.name)  # missed before anything is read, not after
    return found


def _class(reference: str, compute: str, threads: int) -> Resolved:
    search_path = os.getcwd()
    found = find_class(reference, search_path)
    sha256 = class_sha256(found)
    dtype = str(getattr(found, "dtype", "float32"))
    spec = ModelSpec("class", "class", reference, sha256, compute, dtype, threads, search_path)
    return Resolved(spec, reference, precision=str(getattr(found, "precision", "fp32")), sha256=sha256)


def _bundle(folder: Path, compute: str, threads: int, here: bool) -> Resolved:
    manifest = read_bundle(folder)
    if manifest.random_weights:
        raise InputError(
            "The bundle has random weights (export --random-weights): it is for sizing boards, not for capability.",
            where=str(folder),
            next_step="export it from the trained model",
        )
    if manifest.format != "onnx":
        raise InputError(
            f"The bundle's format is {manifest.format}; ONNX bundles can be evaluated on the host.",
            where=str(folder),
            next_step=f"argus-edge export {pasted(manifest.source_id)} --format onnx --precision {manifest.precision}",
        )
    if here:
        import onnxruntime

        providers(compute, onnxruntime)  # missed before the images are read, not after
    sha256 = sha256_file(folder / MANIFEST)
    spec = ModelSpec("bundle", manifest.family, str(folder.resolve()), sha256, compute, "float32", threads)
    return Resolved(
        spec,
        name=manifest.name,
        precision=manifest.precision,
        sha256=sha256,
        revision=manifest.source_revision,
        source_id=manifest.source_id,
        bundle_sha256=sha256,
    )


def _torch(reference: str, compute: str, dtype: str, threads: int, revision: str | None, here: bool) -> Resolved:
    try:
        import torch
        import transformers  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(str(error.name), "models", needed_for="Evaluating a Hugging Face model") from error
    from argus_edge.exporters.source import resolve

    if here:
        _check_cuda(compute, torch)
    try:
        source = resolve(reference, revision=revision)
    except InputError as error:
        if error.next_step and "--random-weights" in error.next_step:
            # Sizing's way out is none here: capability wants the trained weights.
            raise InputError(error.what, where=error.where, next_step=_WAY_OUT) from error
        raise
    folder = _local_folder(source.location or source.source_id, source.revision)
    digest = hashlib.sha256()
    for path in _files(folder):
        digest.update(f"{path.relative_to(folder)} {sha256_file(path)}\n".encode())
    sha256 = digest.hexdigest()
    chosen = _dtype(dtype, compute, torch, here)
    spec = ModelSpec("torch", source.config.model_type, str(folder), sha256, compute, chosen, threads)
    precision = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}[chosen]
    # A report never holds a full path of the host.
    name = Path(reference).resolve().name if Path(reference).is_dir() else reference
    return Resolved(spec, name, precision, sha256, revision=source.revision, source_id=source.source_id)


def _check_cuda(compute: str, torch: Any) -> None:
    if not compute.startswith("cuda"):
        return
    if not torch.cuda.is_available():
        raise UsageError(
            "torch sees no CUDA device.", where=compute, next_step="--compute cpu, or a CUDA build of torch"
        )
    count = torch.cuda.device_count()
    if int(compute.partition(":")[2] or 0) >= count:
        raise UsageError(f"torch sees {count} CUDA device(s).", where=compute, next_step=f"cuda:0 to cuda:{count - 1}")


def _dtype(asked: str, compute: str, torch: Any, here: bool) -> str:
    if asked != "auto":
        return asked
    if not compute.startswith("cuda"):
        return "float32"
    # A GPU elsewhere is taken to have it: what a cluster is made of has had it since 2020.
    return "bfloat16" if not here or torch.cuda.is_bf16_supported() else "float16"


def _files(folder: Path) -> Sequence[Path]:
    found = sorted(path for pattern in _MODEL_FILES for path in folder.glob(pattern))
    if not any(path.suffix == ".safetensors" for path in found):
        raise InputError(
            "The model has no safetensors weights.",
            where=str(folder),
            next_step="convert them to safetensors (a pickle can run code when it is opened), or give the --revision "
            "that has them",
        )
    return found


def _local_folder(location: str, revision: str | None) -> Path:
    if Path(location).is_dir():
        return Path(location).resolve()
    from huggingface_hub import snapshot_download

    from argus_edge.exporters.source import explain

    try:
        return Path(snapshot_download(location, revision=revision, allow_patterns=list(_MODEL_FILES)))
    except Exception as error:
        raise explain(error, location) from error


def _with_features(found: Resolved, features: Path) -> Resolved:
    if not features.is_file():
        raise InputError("No such file of features.", where=str(features), next_step="see docs/eval.md, LXMERT")
    own = sha256_file(features)
    combined = hashlib.sha256(f"{found.spec.sha256} {own}".encode()).hexdigest()
    fields = {**vars(found.spec), "sha256": combined, "features": str(features.resolve())}
    return Resolved(**{**vars(found), "spec": ModelSpec(**fields), "features_sha256": own})
