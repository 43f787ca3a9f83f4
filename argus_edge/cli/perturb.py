"""`argus-edge perturb`: draw every perturbation of an image or a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from argus_edge.cli.output import emit_json, json_option, say
from argus_edge.text import pasted

if TYPE_CHECKING:
    from PIL.Image import Image

    from argus_edge.evaluate.perturb import PerturbationLine


@click.command()
@click.argument("subject", metavar="IMAGE|TEXT")
@click.option("--sheet", type=click.Path(dir_okay=False), metavar="FILE", help="Image to write (.png, .jpg, .webp).")
@click.option("--set", "set_name", default="full", show_default=True, help="Which set: quick, standard or full.")
@click.option("--seed", default=0, show_default=True, help="Of the whole evaluation, as in eval.")
@json_option
def perturb(subject: str, sheet: str | None, set_name: str, seed: int, json_path: str | None) -> None:
    """Draw every perturbation of an image or a text at every severity.

    An image needs --sheet. A text is printed, one line for each perturbation and severity; --sheet draws it as well.
    The same image or text and the same seed give the same sheet.
    """
    from pathlib import Path

    from argus_edge.errors import MissingDependencyError, UsageError

    try:
        import PIL  # noqa: F401
        import scipy  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(error.name or "scipy", "eval", needed_for="argus-edge perturb") from error
    from argus_edge.evaluate.perturb import PERTURBATION_SETS

    if set_name not in PERTURBATION_SETS:
        raise UsageError(f"Unknown set {set_name!r}.", next_step=f"choose one of: {', '.join(PERTURBATION_SETS)}")
    suffixes = (".png", ".jpg", ".jpeg", ".webp")
    if sheet and Path(sheet).suffix.lower() not in suffixes:
        raise UsageError("The sheet is an image.", where=sheet, next_step=f"name it {Path(sheet).stem or 'sheet'}.png")
    lines = PERTURBATION_SETS[set_name]
    if _is_image(subject):
        if not sheet:
            raise UsageError(
                "An image needs --sheet.", next_step=f"argus-edge perturb {pasted(subject)} --sheet sheet.png"
            )
        _image(subject, sheet, [line for line in lines if line.modality == "image"], seed, json_path)
    else:
        _text(subject, sheet, [line for line in lines if line.modality == "text"], seed, json_path)


def _is_image(subject: str) -> bool:
    """Whether the argument names a file; a name that looks like one and is missing is an error, not a text."""
    import os

    from argus_edge.errors import InputError

    if len(subject) < 4096 and os.path.exists(subject):
        return True
    if " " not in subject and subject.lower().endswith(
        (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff", ".gif")
    ):
        raise InputError("There is no such image.", where=subject)
    if not subject.strip():
        raise InputError("The text is empty.")
    return False


def _image(path: str, sheet: str, lines: list[PerturbationLine], seed: int, json_path: str | None) -> None:
    import hashlib
    import json

    from argus_edge.errors import InputError
    from argus_edge.evaluate.datasets.images import ImageBrokenError, decode_image, read_image_bytes
    from argus_edge.evaluate.perturb.sheet import image_sheet

    try:
        data = read_image_bytes(path)
        image = decode_image(data)
    except ImageBrokenError as error:
        raise InputError(f"Not an image that can be read: {error}.", where=path) from error
    say(f"drawing {len(lines)} perturbations …")
    # The content names the item, so that the sheet does not depend on where the file lies.
    _save(image_sheet(image, lines, hashlib.sha256(data).hexdigest(), seed), sheet)
    if json_path:
        drawn = [{"name": line.name, "severities": list(line.severities)} for line in lines]
        emit_json(json.dumps({"sheet": sheet, "seed": seed, "perturbations": drawn}, indent=1), json_path)
    if json_path != "-":
        click.echo(sheet)


def _text(text: str, sheet: str | None, lines: list[PerturbationLine], seed: int, json_path: str | None) -> None:
    import json

    from argus_edge.evaluate.perturb.sheet import text_sheet, text_table

    table = text_table(text, lines, text, seed)
    if sheet:
        _save(text_sheet(table), sheet)
        say(f"wrote {sheet}")
    if json_path:
        rows = [{"name": name, "severity": severity, "text": line} for name, severity, line in table]
        emit_json(json.dumps(rows, ensure_ascii=False, indent=1), json_path)
    if json_path != "-":
        for name, severity, line in table:
            click.echo(f"{name:12} {severity or ' '}  {line}")


def _save(picture: Image, path: str) -> None:
    import io
    from pathlib import Path

    from argus_edge.artifacts import atomic_open

    buffer = io.BytesIO()
    kind = {".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP"}.get(Path(path).suffix.lower(), "PNG")
    picture.save(buffer, kind)
    with atomic_open(path) as file:
        file.write(buffer.getvalue())
