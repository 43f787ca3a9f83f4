"""Loading a Hugging Face folder into torch, and batches that fit the device's memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from argus_edge.errors import HostError, InputError
from argus_edge.evaluate.models.base import Array, ModelSpec
from argus_edge.exporters.source import ModelSource, architecture_of, explain, read_config
from argus_edge.exporters.weights import check_keys, explain_weights
from argus_edge.text import first_line

__all__ = ["Torch", "load_image_processor", "load_tokenizer", "load_torch", "only_greedy", "to_numpy"]

T = TypeVar("T")


class Torch:
    """A model on its device; the base of the adapters.

    Attributes
    ----------
    model
        In evaluation mode.
    location
        Folder of the tokenizer and the image processor.
    """

    def __init__(self, spec: ModelSpec, model: Any) -> None:
        self.spec = spec
        self.family = spec.family
        self.location = spec.location
        self.device = torch.device(spec.compute)
        self.dtype = getattr(torch, spec.dtype)
        self.model = model

    def fitting(self, call: Callable[..., list[T]], *columns: Sequence[Any]) -> list[T]:
        """Return ``call`` over a batch, in halves where the device's memory is too small for the whole."""
        try:
            with torch.inference_mode():
                return call(*columns)
        except torch.OutOfMemoryError:
            if len(columns[0]) < 2:
                raise
        torch.cuda.empty_cache()
        half = len(columns[0]) // 2
        return self.fitting(call, *(column[:half] for column in columns)) + self.fitting(
            call, *(column[half:] for column in columns)
        )

    def on_device(self, inputs: Any) -> dict[str, torch.Tensor]:
        """Return inputs on the device, floating ones in the model's type."""
        return {
            name: value.to(self.device, self.dtype if value.is_floating_point() else None)
            for name, value in inputs.items()
            if isinstance(value, torch.Tensor)
        }


def load_torch(spec: ModelSpec, architectures: Sequence[str]) -> tuple[Any, str]:
    """Load a checkpoint in evaluation mode and return it with its architecture's name.

    Raises
    ------
    InputError
        An architecture other than these, pickled or missing weights, weights that the configuration does not fit: what
        would be filled in at random is not evaluated.
    HostError
        The device has no room for the model, or cannot be used.
    """
    import transformers
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(spec.threads)
    config = read_config(spec.location, revision=None, trust_remote_code=False)
    architecture = architecture_of(config, spec.location)
    if architecture not in architectures:
        raise InputError(
            f"{architecture} cannot be evaluated.",
            where=spec.location,
            next_step=f"of this family: {', '.join(architectures)}",
        )
    source = ModelSource(
        config=config,
        architecture=architecture,
        source_id=Path(spec.location).name,
        location=spec.location,
        revision=None,
        random_weights=False,
        seed=0,
    )
    try:
        model, info = getattr(transformers, architecture).from_pretrained(
            spec.location,
            config=config,
            dtype=getattr(torch, spec.dtype),
            use_safetensors=True,
            output_loading_info=True,
        )
    except Exception as error:
        raise explain_weights(error, source) from error
    check_keys(model, info, source)
    try:
        return model.eval().to(spec.compute), architecture
    except (RuntimeError, AssertionError) as error:
        raise HostError(
            f"The model cannot be put on {spec.compute}: {first_line(error)}",
            where=spec.location,
            next_step="free its memory (nvidia-smi shows who has it), or choose another --compute",
        ) from error


def only_greedy(model: Any) -> None:
    """Keep of a checkpoint's generation settings only where an answer ends.

    The others (Qwen2.5-VL's penalty on repetition, beams, least lengths) bend probabilities, and an exported bundle,
    which is held against the original, has none of them.
    """
    from transformers import GenerationConfig

    own = model.generation_config
    ends = {name: getattr(own, name, None) for name in ("eos_token_id", "pad_token_id", "bos_token_id")}
    model.generation_config = GenerationConfig(do_sample=False, **ends)


def load_tokenizer(location: str) -> Any:
    """Load a tokenizer from a folder."""
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(location)
    except Exception as error:
        raise explain(error, location) from error


def load_image_processor(location: str) -> Any:
    """Load an image processor from a folder; the one on Pillow, whose pixels do not depend on torchvision."""
    from transformers import AutoImageProcessor

    try:
        return AutoImageProcessor.from_pretrained(location, backend="pil")
    except Exception as error:
        raise explain(error, location) from error


def to_numpy(tensor: torch.Tensor) -> Array:
    """Return a tensor as float32 on the host."""
    array: Array = tensor.detach().to("cpu", torch.float32).numpy()
    return array


def stacked(rows: Sequence[Array]) -> Array:
    """Return rows as one array."""
    return np.stack(rows)
