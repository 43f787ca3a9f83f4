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

# Wide enough that no signal dies out on its way (BLIP's vision configuration says 1e-10), narrow enough that none
# explodes; the value that most of these models were themselves initialised with.
RANDOM_STD = 0.02


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
    """Fill a module's parameters: matrices normal(0, 0.02), norms' scales near neutral, biases small but not zero."""
    generator = torch.Generator().manual_seed(seed)
    norms = {
        id(child.weight): 0.0 if type(child).__name__.startswith("Gemma") else 1.0
        for child in module.modules()
        if "norm" in type(child).__name__.lower() and isinstance(getattr(child, "weight", None), torch.Tensor)
    }
    for parameter in module.parameters():
        parameter.normal_(norms.get(id(parameter), 0.0), RANDOM_STD, generator=generator)


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
    if not source.allow_pickle and (pickles or ("safetensors" in text and "pytorch_model.bin" in text)):
        return InputError(
            "The weights are a pickle, which can run code when it is opened; it is not opened unless you ask for it.",
            where=str(folder / pickles[0]) if pickles else where,
            next_step="convert it to safetensors, or add --allow-pickle if you trust its author",
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
    mismatched = sorted(str(key) for key in info.get("mismatched_keys", ()))
    extra = sorted(key for key in info.get("unexpected_keys", ()) if _is_extra_layer(model, key))
    for what, keys in (("lack", missing), ("have other shapes for", mismatched), ("have layers beyond it:", extra)):
        if keys:
            more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""
            raise InputError(
                f"The configuration disagrees with the weights: they {what} {', '.join(keys[:3])}{more}.",
                where=source.location,
                next_step="use the config.json that the weights were saved with",
            )


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
