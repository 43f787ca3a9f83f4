"""A small folder of one's own: twelve painted images whose colour is known."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

pytest.importorskip("PIL")
pytest.importorskip("pyarrow")

COLOURS = ("red", "green", "blue")


def paint(folder, count=12):
    """Write painted images and their table; return the folder."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for number in range(count):
        colour = COLOURS[number % 3]
        pixels = np.random.default_rng(number).integers(0, 60, (24, 32, 3), np.uint8)
        pixels[..., number % 3] += 120
        name = f"{number:02d}.png"
        Image.fromarray(pixels).save(folder / name)
        captions = [f"a {colour} picture number {number}", f"{colour} paint on a wall"]
        lines.append({"image": name, "captions": captions})
        lines.append({"image": name, "question": "Which colour is it?", "answer": colour, "type": "free"})
        choice = {"question": "Choose the colour", "answer": colour, "choices": list(COLOURS), "type": "choice"}
        lines.append({"image": name, **choice})
    (folder / "data.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture
def painted(tmp_path):
    """The folder."""
    return paint(tmp_path / "painted")


@pytest.fixture
def rule_models(tmp_path, monkeypatch):
    """Make ``rule_models:Class`` importable from the working folder."""
    from pathlib import Path

    home = tmp_path / "home"
    home.mkdir()
    (home / "rule_models.py").write_text(Path(__file__).with_name("support_models.py").read_text())
    monkeypatch.chdir(home)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield home
    sys.modules.pop("rule_models", None)
