"""Loading a model's weights, or making up random ones at the real size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from argus_edge.errors import HostError, InputError
from argus_edge.exporters.plan import Family
from argus_edge.exporters.quiet import quiet
from argus_edge.exporters.source import ModelSource, explain

# Of biases, of norms around their neutral value, and of whatever is neither a matrix nor an embedding table: not zero,
# so that an exporter that drops one is found out.
RANDOM_STD = 0.02
# Linear layers that add to the residual stream, by the names that transformers gives them.
RESIDUAL = ("o_proj", "out_proj", "down_proj", "fc2", "proj", "projection", "output.dense")


def load_model(source: ModelSource, family: Family, dtype: torch.dtype) -> Any:
    """Load the model in evaluation mode, with eager attention.

    Eager attention is what exporters and counters of operations understand; its result is that of the other kernels.

    Parameters
    ----------
    dtype
        Of the weights in memory.

    Raises
    ------
    InputError
        The weights are missing, are a pickle that was not allowed, or do not belong to the configuration.
    HostError
        Not enough memory.
    """
    if source.loaded is not None:
        return source.loaded
    import transformers

    if source.architecture not in family.architectures:
        known = ", ".join(family.architectures)
        raise InputError(
            f"{source.architecture} is not supported for the family {family.name}.",
            where=source.source_id,
            next_step=f"supported: {known}",
        )
    model_class = getattr(transformers, family.architectures[source.architecture])
    if source.random_weights:
        return empty_model(model_class, source.config, dtype)
    return trained_model(model_class, source, dtype)


def empty_model(model_class: Any, config: Any, dtype: torch.dtype) -> Any:
    """Build the architecture with weights allocated and not yet filled: untouched pages cost no memory."""
    try:
        from transformers.initialization import no_init_weights
    except ImportError:  # before transformers 5, which Optimum needs
        from transformers.modeling_utils import no_init_weights

    config._attn_implementation = "eager"
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with no_init_weights():
            model = model_class(config)
        model.tie_weights()  # left out with the initialisation: a vocabulary would be there twice
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "allocate memory" not in str(error):
            raise InputError(f"The configuration does not hold together: {error}.", where=config.model_type) from error
        raise HostError("Not enough memory for this model.", next_step="use a machine with more memory") from error
    except (TypeError, ValueError, KeyError, AttributeError, AssertionError) as error:
        raise InputError(f"The configuration does not hold together: {error}.", where=config.model_type) from error
    finally:
        torch.set_default_dtype(before)
    return model.eval()


@torch.no_grad()
def randomise(module: nn.Module, seed: int) -> None:
    """Fill a module's parameters so that signals and errors keep their size from the first layer to the last.

    Matrices are normal with variance 1 / fan-in (LeCun et al., 1998), and those that add to the residual stream are
    divided by the square root of how many there are (Radford et al., 2019, section 2.3): as at the start of training.
    Without this a deep network is chaotic, and a rounding that trained weights bear well decides its output.
    """
    generator = torch.Generator().manual_seed(seed)
    drawn = distributions(module)
    for parameter in module.parameters():
        mean, std = drawn.get(id(parameter), (0.0, RANDOM_STD))
        parameter.normal_(mean, std, generator=generator)


def distributions(module: nn.Module) -> dict[int, tuple[float, float]]:
    """Return the mean and standard deviation of a module's weights by the parameter's ``id``; biases are not listed."""
    # BERT's descendants call every matrix "dense"; those that close a sublayer stand in an "output".
    kinds = [
        ("output.dense" if name.endswith("output.dense") else name.rpartition(".")[2], child, type(child).__name__)
        for name, child in module.named_modules()
    ]
    # Gemma normalises what a sublayer adds, and so undoes what its last matrix is divided by; its scales are 1 + w.
    closing = sum(_closes_sublayer(name, kind) for name, _, kind in kinds)
    adding = sum(name in RESIDUAL and kind.endswith("Linear") for name, _, kind in kinds)
    drawn: dict[int, tuple[float, float]] = {}
    for name, child, kind in kinds:
        weight = getattr(child, "weight", None)
        if not isinstance(weight, torch.Tensor):
            continue
        if "norm" in kind.lower():
            neutral = 0.0 if kind.startswith("Gemma") else 1.0
            drawn[id(weight)] = closing**-0.5 - 1 if _closes_sublayer(name, kind) else neutral, RANDOM_STD
        elif "Embedding" in kind and weight.ndim == 2:
            drawn[id(weight)] = 0.0, 1 / float(getattr(child, "scalar_embed_scale", 1.0))
        elif kind.endswith("Linear") or "Conv" in kind:
            shrunk = name in RESIDUAL and kind.endswith("Linear")
            std = (weight[0].numel() * (adding if shrunk else 1)) ** -0.5
            # A projection to the vocabulary may be the embedding table, which was drawn already.
            drawn.setdefault(id(weight), (0.0, std))
    return drawn


def _closes_sublayer(name: str, kind: str) -> bool:
    return kind.startswith("Gemma") and name.startswith("post_")


def trained_model(model_class: Any, source: ModelSource, dtype: torch.dtype) -> Any:
    """Load a checkpoint, refusing pickles unless allowed and configurations that disagree with the weights."""
    try:
        with quiet():  # what transformers would say about keys is said below, as an error
            model, info = model_class.from_pretrained(
                source.location,
                config=source.config,
                revision=source.revision,
                dtype=dtype,
                attn_implementation="eager",
                use_safetensors=None if source.allow_pickle else True,
                trust_remote_code=source.trust_remote_code,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # they are named, and refused, below
            )
    except Exception as error:
        raise explain_weights(error, source) from error
    check_keys(model, info, source)
    return model.eval()


def explain_weights(error: Exception, source: ModelSource) -> Exception:
    """Turn an error of loading weights into one of ours."""
    text = str(error)
    where = source.location or source.source_id
    folder = Path(where)
    pickles = [path.name for path in folder.glob("*.bin")] if folder.is_dir() else []
    unsafe = "use_safetensors" in text or ("safetensors" in text and "pytorch_model.bin" in text)
    if not source.allow_pickle and (pickles or unsafe):
        return InputError(
            "The weights are no safetensors. A pickle can run code when it is opened; none is unless you ask for it.",
            where=str(folder / pickles[0]) if pickles else where,
            next_step="convert them to safetensors, or add --allow-pickle if you trust their author",
        )
    if "Weights only load failed" in text:
        return InputError(
            "The pickle holds more than weights, so that opening it would run code; --allow-pickle does not go so far.",
            where=str(folder / pickles[0]) if pickles else where,
            next_step="convert it to safetensors in a place that you can spare",
        )
    if "mismatch" in text or ("size" in text and "shape" in text):
        return InputError(
            f"The configuration disagrees with the weights: {text.strip().splitlines()[0][:300]}",
            where=where,
            next_step="use the config.json that the weights were saved with",
        )
    if "no file named" in text:
        return InputError(
            "The model has no weights.", where=where, next_step="copy model.safetensors there, or add --random-weights"
        )
    if type(error).__name__ == "SafetensorError":
        return InputError(f"The weights are damaged: {text[:200]}.", where=where, next_step="copy them again")
    return explain(error, where)


def check_keys(model: nn.Module, info: dict[str, Any], source: ModelSource) -> None:
    """Raise where the checkpoint lacks weights of the model, has other shapes, or has layers that the model lacks.

    Raises
    ------
    InputError
        With up to three of the names concerned.
    """
    missing = sorted(info.get("missing_keys", ()))
    mismatched = sorted(_mismatch(key) for key in info.get("mismatched_keys", ()))
    extra = sorted(key for key in info.get("unexpected_keys", ()) if _is_extra_layer(model, key))
    for what, keys in (("lack", missing), ("have other shapes for", mismatched), ("have layers beyond it:", extra)):
        if keys:
            more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""
            raise InputError(
                f"The configuration disagrees with the weights: they {what} {', '.join(keys[:3])}{more}.",
                where=source.location,
                next_step="use the config.json that the weights were saved with",
            )


def _mismatch(key: Any) -> str:
    """Return in words what transformers says of a weight of another shape: its name, or (name, stored, expected)."""
    if isinstance(key, (tuple, list)) and len(key) == 3:
        return f"{key[0]} ({list(key[1])} stored, {list(key[2])} configured)"
    return str(key)


def _is_extra_layer(model: nn.Module, key: str) -> bool:
    """Tell whether a key belongs to a list of layers of the model, at an index that it does not have."""
    parts = key.split(".")
    for index, part in enumerate(parts):
        if part.isdigit():
            try:
                parent = model.get_submodule(".".join(parts[:index]))
            except AttributeError:
                return False
            if isinstance(parent, nn.ModuleList) and int(part) >= len(parent):
                return True
    return False
