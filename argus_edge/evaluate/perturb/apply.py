"""One perturbation of one image or text, from a random generator that its item alone decides."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from argus_edge.errors import InputError, UsageError
from argus_edge.evaluate.perturb.registry import IMAGE_PERTURBATIONS, SEVERITIES, TEXT_PERTURBATIONS

__all__ = ["generator", "perturb_image", "perturb_text"]


def generator(name: str, item_id: str, seed: int) -> np.random.Generator:
    """Return the generator of an item under a perturbation.

    It depends on nothing else, so that order, batch and shard do not matter. The severity does not enter: the noise of
    severity 5 is that of severity 1, stronger, which keeps chance out of a comparison of severities. (numpy may change
    how it draws from one version to the next; the report names the version.)
    """
    digest = hashlib.sha256(f"{seed}\0{name}\0{item_id}".encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "little")))


def perturb_image(
    image: npt.NDArray[np.uint8], name: str, severity: int, item_id: str, seed: int = 0
) -> npt.NDArray[np.uint8]:
    """Return the image under a perturbation.

    Parameters
    ----------
    image
        Shape (height, width, 3), uint8, RGB; it is not changed.
    name
        One of :data:`~argus_edge.evaluate.perturb.IMAGE_PERTURBATIONS`.
    severity
        1 to 5, as in ImageNet-C (D. Hendrycks and T. Dietterich. Benchmarking Neural Network Robustness to Common
        Corruptions and Perturbations. ICLR 2019).
    item_id
        What identifies the image in its dataset; with ``name`` and ``seed`` it decides all that is random.
    seed
        Of the whole evaluation.

    Raises
    ------
    UsageError
        An unknown name, or a severity outside 1 to 5.
    InputError
        Not an image of that shape and type.
    """
    _check_severity(severity)
    function = IMAGE_PERTURBATIONS[name]
    pixels = np.ascontiguousarray(image)
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
        raise InputError(
            f"An image must be uint8 of the shape (height, width, 3), not {pixels.dtype} {pixels.shape}.",
            where=item_id,
        )
    result: npt.NDArray[np.uint8] = function(pixels, severity, generator(name, item_id, seed))
    return result


def perturb_text(text: str, name: str, severity: int, item_id: str, seed: int = 0) -> str:
    """Return the text under a perturbation; see :func:`perturb_image`.

    Which words or letters are hit grows with the severity: those of severity 1 are hit at severity 5 too. A text with
    nothing to hit (no letter, one word) comes back as it is.
    """
    _check_severity(severity)
    function = TEXT_PERTURBATIONS[name]
    result: str = function(text, severity, generator(name, item_id, seed))
    return result


def _check_severity(severity: int) -> None:
    if severity not in SEVERITIES:
        raise UsageError(f"A severity is one of {', '.join(map(str, SEVERITIES))}, not {severity!r}.")
