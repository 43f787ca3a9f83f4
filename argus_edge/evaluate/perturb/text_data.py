"""What the text perturbations know, from text_data.yaml: neighbouring keys, characters that look alike, synonyms."""

from __future__ import annotations

from importlib.resources import files

import yaml

__all__ = ["KEYBOARD", "OCR", "SYNONYMS"]

_DOCUMENT = yaml.safe_load((files("argus_edge.evaluate.perturb") / "text_data.yaml").read_text("utf-8"))

_ROWS: list[str] = _DOCUMENT["keyboard_rows"]


def _neighbours() -> dict[str, str]:
    """Return each key's neighbours; each row of keys is half a key to the right of the one above it."""
    places = {key: (row, 2 * column + row) for row, keys in enumerate(_ROWS) for column, key in enumerate(keys)}
    return {
        key: "".join(
            other
            for other, (row, column) in places.items()
            if other != key and abs(row - here[0]) <= 1 and abs(column - here[1]) <= 2 - abs(row - here[0])
        )
        for key, here in places.items()
    }


KEYBOARD: dict[str, str] = _neighbours()
"""Key to the keys beside it."""

OCR: dict[str, tuple[str, ...]] = {key: tuple(options) for key, options in _DOCUMENT["ocr"].items()}
"""Character to what it is taken for."""

SYNONYMS: dict[str, tuple[str, ...]] = {
    word: tuple(other for other in group if other != word) for group in _DOCUMENT["synonyms"] for word in group
}
"""Word to its synonyms, of the same number and form."""
