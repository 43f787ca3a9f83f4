"""Greedy decoding with a bundle's decoder: prefill and decode are calls of the same file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from argus_edge.errors import InputError
from argus_edge.evaluate.models.bundle_base import Arrays, Bundle, Runner
from argus_edge.schema.bundle import Generation

__all__ = ["BundleDecoder"]

Array = npt.NDArray[Any]


class BundleDecoder:
    """One sequence at a time, with its keys and values.

    Raises
    ------
    InputError
        The bundle does not say how to generate.
    """

    def __init__(self, bundle: Bundle) -> None:
        generation = bundle.manifest.generation
        if generation is None:
            raise InputError("The bundle does not say how to generate.", where=str(bundle.folder))
        self.generation: Generation = generation
        self._runner: Runner = bundle.runner(generation.decoder)

    def _past(self, outputs: Arrays | None) -> dict[str, Array]:
        kv = self.generation.kv
        sizes = {"batch": 1, "kv_heads": kv.kv_heads, "past": 0, "head_dim": kv.head_dim}
        empty = np.zeros([sizes[axis] for axis in kv.layout], kv.dtype)
        found = {}
        for layer in range(kv.layers):
            for past, present in ((kv.past_key, kv.present_key), (kv.past_value, kv.present_value)):
                name = present.format(layer=layer)
                found[past.format(layer=layer)] = empty if outputs is None else outputs[name]
        return found

    def _step(
        self, ids: Sequence[int], past: dict[str, Array], before: int, positions: Array | None, fixed: Arrays
    ) -> dict[str, Array]:
        names = self.generation
        feeds: dict[str, Any] = {**fixed, **past, names.input_ids: np.array([ids], np.int64)}
        if names.attention_mask:
            feeds[names.attention_mask] = np.ones((1, before + len(ids)), np.int64)
        if names.position_ids:
            if positions is None:
                positions = np.arange(before, before + len(ids))
            shape = (names.position_axes, 1, len(ids)) if names.position_axes > 1 else (1, len(ids))
            feeds[names.position_ids] = np.broadcast_to(positions.reshape(-1, 1, len(ids)), shape).reshape(shape)
        return self._runner(feeds)

    def _logits(self, outputs: Arrays) -> Array:
        logits: Array = np.asarray(outputs[self.generation.logits])[0, -1].astype(np.float64)
        return logits

    def first_token(self, ids: Sequence[int], fixed: Arrays, positions: Array | None = None) -> Array:
        """Return the log-probabilities of the token after a prompt, shape (vocabulary,)."""
        logits = self._logits(self._step(ids, self._past(None), 0, positions, fixed))
        shifted = logits - logits.max()
        log_probabilities: Array = shifted - np.log(np.exp(shifted).sum())
        return log_probabilities

    def generate(self, ids: Sequence[int], limit: int, fixed: Arrays, positions: Array | None = None) -> list[int]:
        """Return the ids that follow a prompt, greedily, without the end token.

        Parameters
        ----------
        ids
            The prompt's ids, image placeholders included.
        fixed
            What the vision component gave, by the decoder's input names.
        positions
            Positions of the prompt, shape (axes, length); None where they count up from 0.
        """
        names = self.generation
        outputs = self._step(ids, self._past(None), 0, positions, fixed)
        if names.image_features and names.image_features in fixed:
            # The placeholders were in the prompt: later steps take no image feature.
            fixed = {**fixed, names.image_features: np.asarray(fixed[names.image_features])[:0]}
        following = int(positions.max()) + 1 if positions is not None else len(ids)
        found: list[int] = []
        while len(found) < limit:
            token = int(self._logits(outputs).argmax())
            if token in names.eos_token_ids:
                break
            found.append(token)
            before = len(ids) + len(found) - 1
            if len(found) == limit or before + 1 >= names.context_length:
                break
            place = np.full((names.position_axes, 1), following + len(found) - 1)
            outputs = self._step([token], self._past(outputs), before, place, fixed)
        return found
