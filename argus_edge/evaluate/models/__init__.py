"""Models by what they can do: adapters for five families in torch, for bundles, and for a user's class."""

from __future__ import annotations

from typing import Any

from argus_edge.errors import InputError
from argus_edge.evaluate.models.base import (
    Answerer,
    Captioner,
    Chooser,
    Embedder,
    ModelSpec,
    PairScorer,
    capabilities_of,
)
from argus_edge.registry import Registry

__all__ = [
    "BUNDLE_FAMILIES",
    "TORCH_FAMILIES",
    "Answerer",
    "Captioner",
    "Chooser",
    "Embedder",
    "ModelSpec",
    "PairScorer",
    "capabilities_of",
    "load_model",
]

# By the configuration's model_type; each is called with a ModelSpec and returns an adapter.
TORCH_FAMILIES = Registry(
    "model family",
    {
        "clip": "argus_edge.evaluate.models.clip:load_clip",
        "blip": "argus_edge.evaluate.models.blip:load_blip",
        "lxmert": "argus_edge.evaluate.models.lxmert:load_lxmert",
        "gemma3": "argus_edge.evaluate.models.gemma3:load_gemma3",
        "qwen2_5_vl": "argus_edge.evaluate.models.qwen2_5_vl:load_qwen2_5_vl",
    },
)

# By the manifest's family.
BUNDLE_FAMILIES = Registry(
    "bundle family",
    {
        "clip": "argus_edge.evaluate.models.bundle_clip:load_clip_bundle",
        "dual-encoder": "argus_edge.evaluate.models.bundle_clip:load_clip_bundle",
        "blip": "argus_edge.evaluate.models.bundle_blip:load_blip_bundle",
        "lxmert": "argus_edge.evaluate.models.bundle_lxmert:load_lxmert_bundle",
        "gemma3": "argus_edge.evaluate.models.bundle_chat:load_chat_bundle",
        "qwen2_5_vl": "argus_edge.evaluate.models.bundle_chat:load_chat_bundle",
    },
)


def load_model(spec: ModelSpec) -> Any:
    """Load a model for evaluation.

    Raises
    ------
    InputError
        The files or the class cannot be used.
    MissingDependencyError
        torch or transformers is not installed.
    """
    if spec.kind == "class":
        from argus_edge.evaluate.models.user_class import load_class

        return load_class(spec)
    families = TORCH_FAMILIES if spec.kind == "torch" else BUNDLE_FAMILIES
    if spec.family not in families:
        raise InputError(
            f"The family {spec.family!r} cannot be evaluated.",
            where=spec.location,
            next_step=f"families: {', '.join(families)}; or wrap it in a class of your own (docs/eval.md)",
        )
    return families[spec.family](spec)
