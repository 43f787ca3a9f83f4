"""An exported bundle in onnxruntime: its components, its image preprocessing, its tokenizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from argus_edge.artifacts import read_artifact
from argus_edge.errors import InputError, MissingDependencyError, UsageError
from argus_edge.evaluate.models.base import ModelSpec
from argus_edge.schema.bundle import BundleManifest, Component, ImagePreprocess
from argus_edge.text import first_line

__all__ = ["Bundle", "Runner", "preprocess_image", "providers"]

Arrays = Mapping[str, npt.NDArray[Any]]

_RESAMPLE = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}


class Runner:
    """One component as an onnxruntime session; inputs are cast to what the file wants."""

    def __init__(self, component: Component, folder: Path, spec: ModelSpec) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = spec.threads
        options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            str(folder / component.file.path), options, providers=providers(spec.compute, onnxruntime)
        )
        if spec.compute != "cpu" and "CUDAExecutionProvider" not in self._session.get_providers():
            raise UsageError(
                "onnxruntime could not start CUDA; it would compute on the CPU and not say so.",
                where=spec.compute,
                next_step="check the GPU's number and that onnxruntime-gpu goes with the CUDA that is installed, "
                "or --compute cpu",
            )
        self._types = {tensor.name: np.dtype(tensor.dtype) for tensor in component.inputs}
        self._outputs = [output.name for output in self._session.get_outputs()]
        self.component = component

    def __call__(self, feeds: Arrays) -> dict[str, npt.NDArray[Any]]:
        """Run the component on its inputs by name; other arrays are passed over."""
        given = {name: np.asarray(feeds[name], dtype) for name, dtype in self._types.items()}
        return dict(zip(self._outputs, self._session.run(self._outputs, given), strict=True))

    def takes(self, name: str) -> bool:
        """Tell whether the component has an input of that name."""
        return name in self._types


def providers(compute: str, onnxruntime: Any) -> list[Any]:
    """Return what onnxruntime is to compute with.

    Raises
    ------
    UsageError
        It has no CUDA provider.
    """
    if compute == "cpu":
        return ["CPUExecutionProvider"]
    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        raise UsageError(
            "This onnxruntime has no CUDA provider.",
            where=compute,
            next_step="pip install onnxruntime-gpu in its place, or --compute cpu",
        )
    device = int(compute.partition(":")[2] or 0)
    return [("CUDAExecutionProvider", {"device_id": device}), "CPUExecutionProvider"]


class Bundle:
    """A bundle's manifest with its components loaded."""

    def __init__(self, spec: ModelSpec) -> None:
        self.spec = spec
        self.family = spec.family
        self.folder = Path(spec.location)
        self.manifest = read_artifact(self.folder / "manifest.json", BundleManifest)
        self.runners = {component.name: Runner(component, self.folder, spec) for component in self.manifest.components}

    def runner(self, name: str) -> Runner:
        """Return a component.

        Raises
        ------
        InputError
            The bundle has none of that name.
        """
        if name not in self.runners:
            raise InputError(
                f"The bundle has no component {name!r}.",
                where=str(self.folder),
                next_step=f"it has {', '.join(self.runners)}; export the whole model",
            )
        return self.runners[name]

    def tokenizer(self) -> Any:
        """Return the bundle's own tokenizer.

        Raises
        ------
        MissingDependencyError
            transformers is not installed.
        InputError
            The bundle has no tokenizer (it was made from a configuration alone).
        """
        try:
            from transformers import AutoTokenizer
        except ImportError as error:
            raise MissingDependencyError("transformers", "models", needed_for="A bundle's tokenizer") from error
        location = self.folder / "processor"
        try:
            return AutoTokenizer.from_pretrained(str(location))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"The bundle's tokenizer cannot be read: {first_line(error, 200)}",
                where=str(location),
                next_step="export the model again from a folder that holds its tokenizer",
            ) from error

    def pixels(self, images: Sequence[Image.Image]) -> npt.NDArray[np.float32]:
        """Return images as the vision input, shape (images, 3, height, width)."""
        if self.manifest.preprocess is None:
            raise InputError("The bundle does not say how its images are prepared.", where=str(self.folder))
        return np.stack([preprocess_image(image, self.manifest.preprocess) for image in images])


def preprocess_image(image: Image.Image, how: ImagePreprocess) -> npt.NDArray[np.float32]:
    """Return one RGB image resized, scaled and normalised: shape (3, height, width).

    The same arithmetic as the image processors on Pillow that the models come with.
    """
    if how.layout != "NCHW":
        raise InputError(f"The image layout {how.layout!r} cannot be prepared.")
    resample = _RESAMPLE[how.resample]
    if how.resize == "stretch":
        resized = image.resize((how.width, how.height), resample)
    else:
        # The shorter edge comes to the crop's, the longer one in proportion, cut down to whole pixels.
        edge = max(how.height, how.width)
        short, long = sorted(image.size)
        longer = int(edge * long / short)
        size = (edge, longer) if image.width <= image.height else (longer, edge)
        resized = image.resize(size, resample)
        top, left = (resized.height - how.height) // 2, (resized.width - how.width) // 2
        resized = resized.crop((left, top, left + how.width, top + how.height))
    values = np.asarray(resized, np.float32) * np.float32(how.rescale)
    normalised = (values - np.asarray(how.mean, np.float32)) / np.asarray(how.std, np.float32)
    return np.ascontiguousarray(normalised.transpose(2, 0, 1), np.float32)
