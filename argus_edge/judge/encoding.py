"""A method's state as JSON: arrays become base64 of their little-endian bytes, never pickles."""

from __future__ import annotations

import base64
import binascii
import math
from typing import Any

import numpy as np

__all__ = ["decode", "encode"]

_KINDS = {"<f4", "<f8", "<i4", "<i8", "|b1"}
_MAX_DEPTH = 8


def encode(value: Any) -> Any:
    """Return numbers, strings, lists and dictionaries as they are, arrays as dictionaries."""
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value)
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        kind = array.dtype.str
        if kind not in _KINDS:
            raise TypeError(f"an array of {array.dtype} cannot be stored")
        return {"dtype": kind, "shape": list(array.shape), "base64": base64.b64encode(array.tobytes()).decode()}
    if isinstance(value, dict):
        return {key: encode(part) for key, part in value.items()}
    if isinstance(value, np.generic):
        return value.item()
    return value


def decode(value: Any, depth: int = 0) -> Any:
    """Undo :func:`encode`.

    Raises
    ------
    ValueError
        An array's type, shape and bytes do not agree, or the nesting is too deep.
    """
    if depth > _MAX_DEPTH:
        raise ValueError("the state is nested too deeply")
    if not isinstance(value, dict):
        return value
    if set(value) != {"dtype", "shape", "base64"}:
        return {key: decode(part, depth + 1) for key, part in value.items()}
    kind, shape = value["dtype"], value["shape"]
    if kind not in _KINDS or not isinstance(shape, list) or not all(isinstance(s, int) and s >= 0 for s in shape):
        raise ValueError("an array of the state has no valid type or shape")
    try:
        data = base64.b64decode(value["base64"], validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise ValueError("an array of the state is not base64") from error
    if len(data) != math.prod(shape) * np.dtype(kind).itemsize:
        raise ValueError("an array of the state has not as many bytes as its shape says")
    return np.frombuffer(data, dtype=kind).reshape(shape).copy()
