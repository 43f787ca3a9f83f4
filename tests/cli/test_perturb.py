"""argus-edge perturb: the sheet of an image, the table of a text, and what it says when it cannot."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PIL", reason="the extra eval is not installed")
pytest.importorskip("scipy", reason="the extra eval is not installed")

from PIL import Image

from argus_edge.cli.main import main


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as caught:
        main(["perturb", *map(str, arguments)])
    return int(caught.value.code or 0)


@pytest.fixture
def photograph(tmp_path: Path) -> Path:
    y, x = np.mgrid[0:60, 0:80]
    Image.fromarray(np.stack([3 * x, 4 * y, x + y], axis=2).astype(np.uint8)).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


def test_a_sheet_of_an_image(photograph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(photograph, "--sheet", tmp_path / "sheet.png", "--set", "quick") == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "sheet.png")
    sheet = Image.open(tmp_path / "sheet.png")
    assert sheet.width > 5 * 200
    assert sheet.height > 7 * 150, "clean and six perturbations"


def test_the_same_sheet_wherever_the_image_lies(photograph: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.png").write_bytes(photograph.read_bytes())
    for source, sheet in ((photograph, "a.png"), (tmp_path / "elsewhere.png", "b.png")):
        assert run(source, "--sheet", tmp_path / sheet, "--set", "quick") == 0
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_a_text_is_printed_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("A big dog runs.", "--sheet", tmp_path / "sheet.png") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split(maxsplit=1) == ["clean", "A big dog runs."]
    assert len(lines) == 1 + 10 * 5
    assert Image.open(tmp_path / "sheet.png").height > 50 * 15


def test_json_of_a_text_is_clean(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("A big dog runs.", "--set", "quick", "--json", "-") == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows[0] == {"name": "clean", "severity": 0, "text": "A big dog runs."}
    assert {row["name"] for row in rows} == {"clean", "keyboard", "ocr", "delete", "case", "word_delete", "synonym"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.png", "--sheet", "s.png"], "no such image"),
        (["{photo}"], "needs --sheet"),
        (["{photo}", "--sheet", "sheet.txt"], "sheet is an image"),
        (["{photo}", "--sheet", "s.png", "--set", "huge"], "Unknown set"),
        (["{text}", "--sheet", "s.png"], "Not an image"),
        ([" "], "text is empty"),
    ],
)
def test_what_cannot_be_done_is_said(
    arguments: list[str], message: str, photograph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text.txt").write_text("not a picture")
    places = {"photo": photograph, "text": tmp_path / "text.txt"}
    assert run(*[argument.format(**places) for argument in arguments]) == 2
    assert message in capsys.readouterr().err
