"""A contact sheet: every perturbation of one image or text at every severity, to be looked at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from argus_edge.evaluate.perturb.apply import perturb_image, perturb_text
from argus_edge.evaluate.perturb.registry import SEVERITIES
from argus_edge.evaluate.perturb.sets import PerturbationLine

__all__ = ["MAX_SIDE", "image_sheet", "text_sheet", "text_table"]

MAX_SIDE = 640
"""A larger image is made smaller first: the strengths are meant for images of about that size."""

_THUMB = 200
_LABEL = 150
_LINE = 18
_GAP = 6
_INK, _PAPER = (20, 20, 20), (255, 255, 255)


def image_sheet(image: Image.Image, lines: Sequence[PerturbationLine], item_id: str, seed: int = 0) -> Image.Image:
    """Draw an RGB image under each perturbation (rows) at each severity (columns), the clean one on top."""
    picture = image.copy()
    picture.thumbnail((MAX_SIDE, MAX_SIDE))
    pixels = np.asarray(picture)
    height = max(1, round(_THUMB * picture.height / picture.width))
    size = (_THUMB, height)
    sheet = Image.new(
        "RGB",
        (_LABEL + len(SEVERITIES) * (_THUMB + _GAP), (len(lines) + 1) * (height + _GAP) + _LINE),
        _PAPER,
    )
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(14)
    draw.text((_GAP, _LINE + height // 2), "clean", _INK, font)
    sheet.paste(picture.resize(size), (_LABEL, _LINE))
    for column, severity in enumerate(SEVERITIES):
        draw.text((_LABEL + column * (_THUMB + _GAP), 1), f"severity {severity}", _INK, font)
    for row, line in enumerate(lines, start=1):
        top = _LINE + row * (height + _GAP)
        draw.text((_GAP, top + height // 2 - _LINE // 2), line.name, _INK, font)
        for severity in line.severities:
            perturbed = Image.fromarray(perturb_image(pixels, line.name, severity, item_id, seed))
            sheet.paste(perturbed.resize(size), (_LABEL + (severity - 1) * (_THUMB + _GAP), top))
    return sheet


def text_table(text: str, lines: Sequence[PerturbationLine], item_id: str, seed: int = 0) -> list[tuple[str, int, str]]:
    """Return (perturbation, severity, text) for each line and severity, after ("clean", 0, text)."""
    return [("clean", 0, text)] + [
        (line.name, severity, perturb_text(text, line.name, severity, item_id, seed))
        for line in lines
        for severity in line.severities
    ]


def text_sheet(table: Sequence[tuple[str, int, str]]) -> Image.Image:
    """Draw the table of a text, one line each."""
    font = ImageFont.load_default(14)
    width = max(int(font.getlength(text)) for _, _, text in table)
    sheet = Image.new("RGB", (_LABEL + 30 + width + 2 * _GAP, len(table) * _LINE + 2 * _GAP), _PAPER)
    draw = ImageDraw.Draw(sheet)
    for row, (name, severity, text) in enumerate(table):
        top = _GAP + row * _LINE
        if severity < 2 or table[row - 1][0] != name:
            draw.text((_GAP, top), name, _INK, font)
        draw.text((_LABEL, top), str(severity or ""), _INK, font)
        draw.text((_LABEL + 30, top), text, _INK, font)
    return sheet
