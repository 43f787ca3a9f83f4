"""Putting what a run needs onto its device: models, inputs, golden arrays, pictures; nothing is sent twice."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from argus_edge.bench.end_to_end import END_TO_END
from argus_edge.bench.inputs import Arrays, PreparedInputs
from argus_edge.bench.plan import Placed
from argus_edge.bench.prepare import Prepared
from argus_edge.bench.watching import Listener
from argus_edge.devices.deploy import deploy_files
from argus_edge.devices.transport import Transport
from argus_edge.schema.device import DeviceEntry


def place(transport: Transport, entry: DeviceEntry, prepared: Prepared, told: Listener) -> dict[str, Placed]:
    """Send every component's files and inputs; what is there is not sent again."""
    placed: dict[str, Placed] = {}
    sent = 0
    with tempfile.TemporaryDirectory(prefix="argus-edge-") as folder:
        for number, component in enumerate(prepared.model.components):
            if component.model is None:
                images = _deploy_images(transport, entry, prepared, Path(folder, "images"), told)
                placed[component.name] = Placed(model=None, images=images)
                continue
            files = {file.name: file.path for file in component.files}
            model = deploy_files(transport, entry, files, progress=told.transfer, say=told.say)
            arrays = _input_files(Path(folder, str(number)), prepared.inputs[component.name])
            inputs = deploy_files(transport, entry, arrays, say=told.say)
            sent += model.sent_bytes + inputs.sent_bytes
            placed[component.name] = Placed(
                model=model.path(component.model.name),
                inputs=inputs.path("inputs.npz"),
                golden=inputs.path("golden.npz") if "golden.npz" in arrays else None,
            )
        if prepared.whole is not None:
            arrays = _input_files(Path(folder, "whole"), PreparedInputs(prepared.whole.inputs, ""))
            whole = deploy_files(transport, entry, arrays, say=told.say)
            sent += whole.sent_bytes
            placed[END_TO_END] = Placed(model=None, inputs=whole.path("inputs.npz"))
    told.quiet()
    if sent:
        size = f"{sent / 1e6:,.1f} MB" if sent >= 1e5 else f"{sent / 1e3:,.1f} kB"
        told.say(f"sent {size} to {transport.description}")
    return placed


def _deploy_images(
    transport: Transport, entry: DeviceEntry, prepared: Prepared, folder: Path, told: Listener
) -> tuple[str, ...]:
    """Send the pictures that a server is shown; return where they are on the device."""
    if prepared.served is None or not prepared.served.pictures:
        return ()
    folder.mkdir()
    files = {f"{number}.image": folder / f"{number}.image" for number in range(len(prepared.served.pictures))}
    for path, content in zip(files.values(), prepared.served.pictures, strict=True):
        path.write_bytes(content)
    sent = deploy_files(transport, entry, files, progress=told.transfer, say=told.say)
    return tuple(sent.path(name) for name in files)


def _input_files(folder: Path, inputs: PreparedInputs) -> dict[str, Path]:
    folder.mkdir()
    files = {"inputs.npz": folder / "inputs.npz"}
    _save(files["inputs.npz"], inputs.arrays)
    if inputs.golden is not None:
        files["golden.npz"] = folder / "golden.npz"
        _save(files["golden.npz"], inputs.golden)
    return files


def _save(path: Path, arrays: Arrays) -> None:
    # Not **arrays: an input may well be called "file".
    import zipfile

    with zipfile.ZipFile(path, "w", allowZip64=True) as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
