"""What LXMERT does not bring itself: region features that a detector computed before, and the names of its answers.

A ``.npz`` file with two arrays an image: ``<image id>.features`` (regions, 2048) float32 and ``<image id>.boxes``
(regions, 4) float32, left, top, right, bottom as shares of the width and height.
"""

from __future__ import annotations

import zipfile

import numpy as np

from argus_edge.errors import InputError
from argus_edge.evaluate.models.base import Array

__all__ = ["RegionFeatures", "answer_names"]


def answer_names(labels: object, count: int, where: str) -> list[str]:
    """Return the answers that a configuration names (``id2label``), by their index.

    Parameters
    ----------
    count
        How many answers the model chooses among.

    Raises
    ------
    InputError
        Some have no name, or all have the one that transformers makes up: a number is no answer to a question.
    """
    try:
        names = {int(index): str(name) for index, name in labels.items()}  # type: ignore[attr-defined]
        found = [names[index] for index in range(count)]
    except (KeyError, ValueError, TypeError, AttributeError):
        found = []
    if not found or all(name == f"LABEL_{index}" for index, name in enumerate(found)):
        raise InputError(
            f"The model's configuration does not name its {count} answers (id2label).",
            where=where,
            next_step="add them to its config.json; docs/eval.md, LXMERT, says where they are published",
        )
    return found


class RegionFeatures:
    """A file of region features, read image by image.

    Parameters
    ----------
    path
        The ``.npz`` file; empty where the user gave none.
    model
        What wants the features, for the error.

    Raises
    ------
    InputError
        No file was given, or it is not an ``.npz`` file.
    """

    def __init__(self, path: str, model: str) -> None:
        if not path:
            raise InputError(
                "LXMERT takes region features that were computed before.",
                where=model,
                next_step="--features FILE.npz (docs/eval.md, LXMERT, has the layout)",
            )
        self._path = path
        try:
            self._arrays = np.load(path, allow_pickle=False)
            self._arrays.files  # noqa: B018 - a lone .npy has none
        except (OSError, ValueError, AttributeError, EOFError, zipfile.BadZipFile) as error:
            raise InputError(
                "The features are not an .npz file.", where=path, next_step="see docs/eval.md, LXMERT"
            ) from error

    def get(self, image_id: str) -> tuple[Array, Array]:
        """Return an image's features (regions, width) and boxes (regions, 4).

        Raises
        ------
        InputError
            The image is not in the file, or its arrays do not go together.
        """
        try:
            features = np.asarray(self._arrays[f"{image_id}.features"], np.float32)
            boxes = np.asarray(self._arrays[f"{image_id}.boxes"], np.float32)
        except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
            raise InputError(
                f"The features of image {image_id!r} cannot be read.", where=self._path, next_step="see docs/eval.md"
            ) from error
        if features.ndim != 2 or boxes.shape != (len(features), 4) or not len(features):
            raise InputError(
                f"Image {image_id!r}: features {features.shape} and boxes {boxes.shape} do not go together.",
                where=self._path,
            )
        return features, boxes
