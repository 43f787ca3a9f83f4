"""A user's own images: what the table may say, and what is wrong with it by line."""

from __future__ import annotations

import json

import pytest

from argus_edge.errors import InputError
from argus_edge.evaluate.datasets import read_dataset
from argus_edge.evaluate.datasets.check import check_dataset

Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "shots").mkdir()
    for name in ("a.png", "b.png", "shots/c.jpg"):
        Image.new("RGB", (8, 8), "red").save(tmp_path / name)
    return tmp_path


def read(folder):
    return read_dataset("mine", folder)


def jsonl(folder, *rows):
    text = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
    (folder / "data.jsonl").write_text(text)


def test_json_lines(folder):
    jsonl(
        folder,
        {"image": "a.png", "captions": ["a red square", "something red"]},
        "",
        {"image": "shots/c.jpg", "caption": "another red square"},
        {"image": "a.png", "question": "Which colour?", "answers": ["red", "crimson"], "type": "colour"},
        {"image": "b.png", "question": "Round?", "answer": "no", "choices": ["yes", "no"], "id": "q7"},
    )
    dataset = read(folder)
    assert [image.id for image in dataset.images] == ["a.png", "shots/c.jpg", "b.png"]
    assert dataset.captions == (("a red square", "something red"), ("another red square",), ())
    free, chosen = dataset.questions
    assert (free.answers, free.type, free.id, free.image) == (("red", "crimson"), "colour", "line-4", 0)
    assert (chosen.choices, chosen.correct, chosen.id, chosen.image) == (("yes", "no"), 1, "q7", 2)
    assert dataset.answer_set == ("red", "crimson")


def test_csv_with_bars_between_several_and_a_byte_order_mark(folder):
    text = 'image,captions,question,answer,choices\na.png,"a square, red|red thing",,,\nb.png,,Round?,no,yes|no\n'
    (folder / "labels.csv").write_text(text, encoding="utf-8-sig")
    dataset = read(folder)
    assert dataset.captions[0] == ("a square, red", "red thing")
    assert dataset.questions[0].choices == ("yes", "no")


def test_a_quoted_text_may_span_lines_and_the_next_error_still_names_its_line(folder):
    (folder / "data.csv").write_text('image,caption\na.png,"two\nlines"\nnone.png,x\n')
    with pytest.raises(InputError, match=r"line 4: no image 'none\.png'"):
        read(folder)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{broken", "not JSON"),
        ("[1]", "not a JSON object"),
        ({"caption": "x"}, "no image"),
        ({"image": "none.png", "caption": "x"}, r"no image 'none\.png' in the folder"),
        ({"image": "../a.png", "caption": "x"}, "not inside the folder"),
        ({"image": "/etc/passwd", "caption": "x"}, "not inside the folder"),
        ({"image": "a.png"}, "neither a caption nor a question"),
        ({"image": "a.png", "captoin": "x"}, "unknown field 'captoin'"),
        ({"image": "a.png", "question": "x?"}, "without an answer"),
        ({"image": "a.png", "caption": "x", "answer": "y"}, "answer without a question"),
        ({"image": "a.png", "question": "x?", "answer": "c", "choices": ["a", "b"]}, "not one of the choices"),
        ({"image": "a.png", "question": "x?", "answer": "a", "choices": ["a", "a"]}, "all different"),
        ({"image": "a.png", "question": "x?", "answer": "1", "choices": [str(n) for n in range(27)]}, "at most 26"),
        ({"image": "a.png", "caption": ["x", "y"]}, "several go into captions"),
        ({"image": "a.png", "caption": {"x": 1}}, "must be a text"),
        ({"image": "a.png", "caption": "x" * 5000}, "longer than"),
    ],
)
def test_mistakes_by_line(folder, row, message):
    jsonl(folder, {"image": "a.png", "caption": "fine"}, row)
    with pytest.raises(InputError, match=f"line 2: .*{message}") as caught:
        read(folder)
    assert caught.value.where.endswith("data.jsonl")


def test_all_mistakes_are_told_together(folder):
    jsonl(folder, *({"image": f"{n}.png", "caption": "x"} for n in range(30)))
    with pytest.raises(InputError, match=r"30 line\(s\)") as caught:
        read(folder)
    assert "line 20:" in str(caught.value)
    assert "10 more" in str(caught.value)


def test_an_id_is_taken_once(folder):
    row = {"image": "a.png", "question": "x?", "answer": "y", "id": "1"}
    jsonl(folder, row, row)
    with pytest.raises(InputError, match="taken by another"):
        read(folder)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "no .csv or .jsonl"),
        ({"a.csv": "image\n", "b.csv": "image\n"}, "several tables"),
        ({"data.csv": "picture,caption\na.png,x\n"}, "must name the columns"),
        ({"data.csv": "image,caption\na.png,x,y\n"}, "more fields than columns"),
        ({"data.jsonl": ""}, "no lines"),
    ],
)
def test_a_folder_without_one_good_table(folder, files, message):
    for name, text in files.items():
        (folder / name).write_text(text)
    with pytest.raises(InputError, match=message):
        read(folder)


@pytest.mark.parametrize("mark", [";", "\t"])
def test_a_spreadsheets_other_separator_is_named(folder, mark):
    (folder / "data.csv").write_text(f"image{mark}captions\na.png{mark}one\n")
    with pytest.raises(InputError, match="separated by") as caught:
        read(folder)
    assert repr(mark) in caught.value.what


def test_a_folder_that_is_not_there_or_may_not_be_read(folder, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="No such folder"):
        read_dataset("mine", tmp_path / "none")
    with pytest.raises(InputError, match="There is no such folder to hold coco"):
        read_dataset("coco", folder / "a.png")

    def denied(self):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(type(folder), "is_file", denied)
    with pytest.raises(InputError, match="Permission denied"):
        read_dataset("mine", folder)
    with pytest.raises(InputError, match="Permission denied"):
        check_dataset("mine", folder)


def test_a_table_that_is_not_utf8(folder):
    (folder / "data.csv").write_bytes("image,caption\na.png,Grün\n".encode("latin-1"))
    with pytest.raises(InputError, match="UTF-8"):
        read(folder)
