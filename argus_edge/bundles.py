"""Reading and checking a bundle: every file inside the folder, whole, and with the hash that the manifest gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from argus_edge.artifacts import host_errors, read_artifact, sha256_file
from argus_edge.errors import InputError
from argus_edge.schema.bundle import BundleFile, BundleManifest, Component, GoldenCase, SymbolicDim, TensorSpec

if TYPE_CHECKING:
    import numpy as np

MANIFEST = "manifest.json"
# Arrays of zeros pack a thousand to one; a whole file that does so, and is large then, was made to fill memory.
UNPACKED_BYTES = 1 << 30
UNPACKED_RATIO = 20


def is_bundle(path: Path | str) -> bool:
    """Tell whether a path is a folder with a bundle's manifest."""
    return (Path(path) / MANIFEST).is_file()


def read_bundle(folder: Path | str, *, check: bool = True) -> BundleManifest:
    """Read a bundle's manifest and check that every file it names is there, inside the folder, and unchanged.

    Parameters
    ----------
    folder
        The bundle.
    check
        Hash every file; without it only presence, place and size are looked at.

    Raises
    ------
    InputError
        No manifest, a newer one, a file that is missing, changed, or reached through a link out of the folder.
    """
    root = Path(folder)
    if not root.is_dir():
        raise InputError(
            "No such bundle folder.", where=str(root), next_step=f"make one: argus-edge export MODEL --out {root}"
        )
    if not (root / MANIFEST).is_file():
        raise InputError(
            f"This folder is no bundle: it has no {MANIFEST}.",
            where=str(root),
            next_step=f"make one: argus-edge export MODEL --out {root}",
        )
    manifest = read_artifact(root / MANIFEST, BundleManifest)
    for file in manifest.files:
        check_file(root, file, hashed=check)
    check_external_data(root, manifest)
    return manifest


def bundle_path(root: Path | str, file: BundleFile) -> Path:
    """Return where a bundle's file lies, refusing links that lead out of the folder.

    Raises
    ------
    InputError
        The path leads out of the bundle.
    """
    base = Path(root).resolve()
    path = (base / file.path).resolve()
    if not path.is_relative_to(base):
        raise InputError(f"The file {file.path} leads out of the bundle.", where=str(root))
    return base / file.path


def check_file(root: Path | str, file: BundleFile, *, hashed: bool = True) -> Path:
    """Return the path of a bundle's file after checking its size and, unless told not to, its SHA-256.

    Raises
    ------
    InputError
        Missing, outside the bundle, truncated or changed.
    """
    path = bundle_path(root, file)
    again = "export the model again, or copy the whole folder again"
    if not path.is_file():
        raise InputError(f"The bundle lacks its file {file.path}.", where=str(root), next_step=again)
    with host_errors(path):
        size = path.stat().st_size
        if size != file.bytes:
            raise InputError(
                f"{file.path} has {size} bytes, the manifest says {file.bytes}.", where=str(root), next_step=again
            )
        if hashed and sha256_file(path) != file.sha256:
            raise InputError(f"{file.path} is not the file that was exported.", where=str(root), next_step=again)
    return path


def check_external_data(root: Path | str, manifest: BundleManifest) -> None:
    """Check that ONNX files refer to no external data beside the files that the manifest lists.

    Raises
    ------
    InputError
        An ONNX file refers to data outside the bundle, or to data that the manifest does not vouch for.
    """
    for component in manifest.components:
        if component.format != "onnx":
            continue
        parent = Path(component.file.path).parent
        known = {file.path for file in component.external_data}
        for location in onnx_external_locations(bundle_path(root, component.file)):
            if (parent / location).as_posix() not in known:
                raise InputError(
                    f"{component.file.path} refers to the external data {location[:200]!r}, "
                    "which the manifest does not list.",
                    where=str(root),
                )


def onnx_external_locations(path: Path | str) -> set[str]:
    """Return the file names of external data that an ONNX file refers to, as written in it.

    Raises
    ------
    InputError
        Not a readable ONNX file.
    """
    import onnx
    from google.protobuf.message import DecodeError
    from onnx.external_data_helper import _get_all_tensors, uses_external_data

    try:
        model = onnx.load(str(path), load_external_data=False)
    except (DecodeError, OSError, ValueError) as error:
        raise InputError(f"Not a readable ONNX file: {error}.", where=str(path)) from error
    return {
        entry.value
        for tensor in _get_all_tensors(model)
        if uses_external_data(tensor)
        for entry in tensor.external_data
        if entry.key == "location"
    }


def typical_dims(dims: Iterable[SymbolicDim]) -> dict[str, int]:
    """Return the length of every symbolic dim that a benchmark uses unless told otherwise."""
    return {dim.name: dim.typical for dim in dims}


def resolve_dims(dims: Iterable[SymbolicDim], chosen: Mapping[str, int]) -> dict[str, int]:
    """Return all lengths from the chosen ones: the rest typical, sums computed, bounds checked.

    Raises
    ------
    InputError
        An unknown dim, a length outside its bounds, or a sum that does not hold.
    """
    known = {dim.name: dim for dim in dims}
    for name in chosen:
        if name not in known:
            raise InputError(f"Unknown dim {name!r}.", next_step=f"choose from: {', '.join(known) or 'none'}")
    lengths = {name: int(chosen.get(name, dim.typical)) for name, dim in known.items()}
    for name, dim in known.items():
        if dim.sum_of:
            total = sum(lengths[part] for part in dim.sum_of)
            if name in chosen and lengths[name] != total:
                raise InputError(f"{name} is {lengths[name]}, but {' + '.join(dim.sum_of)} is {total}.")
            lengths[name] = total
        if not dim.minimum <= lengths[name] <= dim.maximum:
            raise InputError(f"{name} = {lengths[name]} is outside {dim.minimum} … {dim.maximum}.")
    return lengths


def tensor_shape(spec: TensorSpec, lengths: Mapping[str, int]) -> tuple[int, ...]:
    """Return a tensor's shape with the symbolic dims replaced by their lengths."""
    return tuple(axis if isinstance(axis, int) else lengths[axis] for axis in spec.shape)


def make_inputs(specs: Iterable[TensorSpec], lengths: Mapping[str, int], *, seed: int = 0) -> dict[str, np.ndarray]:
    """Make up plausible inputs by their value ranges.

    Parameters
    ----------
    specs
        The inputs.
    lengths
        Length of every symbolic dim, see :func:`resolve_dims`.
    seed
        Of the generator.

    Returns
    -------
    dict
        Input name -> array of the spec's shape and dtype.
    """
    import numpy as np

    generator = np.random.default_rng(seed)
    arrays: dict[str, np.ndarray] = {}
    values: np.ndarray
    for spec in specs:
        shape = tensor_shape(spec, lengths)
        low, high, fill = (
            (spec.values.minimum, spec.values.maximum, spec.values.fill) if spec.values else (0, 1, "zeros")
        )
        if fill == "normal":
            values = np.clip(generator.standard_normal(shape), low, high)
        elif fill == "uniform":
            values = generator.uniform(low, high, shape)
        elif fill == "tokens":
            values = generator.integers(int(low), int(high), shape, endpoint=True)
        elif fill == "ones":
            values = np.ones(shape)
        elif fill == "positions":
            values = np.broadcast_to(lengths.get("past", 0) + np.arange(shape[-1]), shape)
        else:
            values = np.zeros(shape)
        arrays[spec.name] = np.ascontiguousarray(values).astype(spec.dtype)
    return arrays


def multimodal_positions(is_image: Sequence[bool] | np.ndarray) -> np.ndarray:
    """Return Qwen2-VL's positions on three axes (time, height, width) of a prompt with one square image.

    Text counts up on all three alike; an image's tokens share one time and count rows and columns of their grid; text
    goes on after the largest position so far (P. Wang et al. Qwen2-VL. 2024, section 2.1).

    Parameters
    ----------
    is_image
        Shape (length,): where the prompt holds the image's tokens, one run of them.

    Returns
    -------
    numpy.ndarray
        int64 of shape (3, length).

    Examples
    --------
    >>> multimodal_positions([False, True, True, True, True, False]).tolist()
    [[0, 1, 1, 1, 1, 3], [0, 1, 1, 2, 2, 3], [0, 1, 2, 1, 2, 3]]
    """
    import numpy as np

    mask = np.asarray(is_image, bool)
    positions = np.tile(np.arange(len(mask), dtype=np.int64), (3, 1))
    count = int(mask.sum())
    if count:
        start = int(mask.argmax())
        side = round(count**0.5)
        rows, columns = np.divmod(np.arange(count), side)
        positions[:, mask] = start + np.stack([np.zeros(count, np.int64), rows, columns])
        positions[:, start + count :] += side - count
    return positions


def _check_unpacked(path: Path | str) -> None:
    import zipfile

    with zipfile.ZipFile(path) as archive:
        # zipfile gives no more of a member than its entry says.
        unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > max(UNPACKED_BYTES, UNPACKED_RATIO * Path(path).stat().st_size):
        raise InputError(f"The .npz file unpacks to {unpacked} bytes.", where=str(path))


def load_arrays(path: Path | str) -> dict[str, np.ndarray]:
    """Read an ``.npz`` file, never unpickling, and never unpacking a small file into more memory than there is.

    Raises
    ------
    InputError
        Not an ``.npz`` file of plain arrays, or one that unpacks to far more than a file of that size can mean.
    """
    import numpy as np

    try:
        _check_unpacked(path)
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except FileNotFoundError:
        raise InputError("No such .npz file.", where=str(path), next_step="check the path") from None
    except InputError:
        raise
    except Exception as error:  # numpy, zipfile, zlib and even tokenize each raise their own
        raise InputError(
            f"Not a readable .npz file of plain arrays: {error}.",
            where=str(path),
            next_step="write it with numpy.savez: one array of numbers for each input, by its name",
        ) from error


def load_golden(root: Path | str, case: GoldenCase) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return a golden case's inputs and the original's outputs, each with the sample as first axis."""
    return load_arrays(check_file(root, case.inputs)), load_arrays(check_file(root, case.outputs))


def component_bytes(component: Component) -> int:
    """Return the size of a component's files on disk in bytes."""
    return sum(file.bytes for file in component.files)
