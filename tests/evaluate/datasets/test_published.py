"""Datasets in the layouts that their authors publish, made small by hand."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from click.testing import CliRunner

from argus_edge.cli.data import check
from argus_edge.errors import InputError, UsageError
from argus_edge.evaluate.content import prepare
from argus_edge.evaluate.datasets import parse_data_option, read_dataset, sample_folder
from argus_edge.evaluate.datasets.annotations import iter_json_array
from argus_edge.evaluate.datasets.check import check_dataset
from argus_edge.evaluate.datasets.clevr import ANSWERS
from argus_edge.evaluate.datasets.index import dataset_sha256, inspect_images, open_image
from argus_edge.evaluate.datasets.vcr import render_tokens
from argus_edge.evaluate.store import Store
from argus_edge.text import pasted

Image = pytest.importorskip("PIL.Image")


def picture(path, size=(40, 30), colour="grey"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour).save(path)


def karpathy(root, name, folder, count=3, captions=5):
    images = []
    for number in range(count + 1):
        filename = f"{folder}_{number:03d}.jpg"
        picture(root / folder / filename)
        sentences = [{"raw": f"caption {k} of {number} ", "tokens": [], "sentid": k} for k in range(captions)]
        split = "test" if number < count else "train"
        entry = {"filename": filename, "filepath": folder, "split": split, "sentences": sentences, "imgid": number}
        images.append(entry | ({"cocoid": 1000 + number} if name == "coco" else {}))
    (root / f"dataset_{name}.json").write_text(json.dumps({"images": images, "dataset": name}))
    return root


def clevr(root, count=4):
    questions = []
    programs = [("exist", "yes"), ("count", "3"), ("equal_integer", "no"), ("query_color", "gray")]
    for number in range(count):
        function, answer = programs[number % 4]
        filename = f"CLEVR_val_{number // 2:06d}.png"
        picture(root / "images" / "val" / filename)
        program = [{"function": "scene", "inputs": []}, {"function": function, "inputs": [0]}]
        questions.append(
            {
                "image_filename": filename,
                "question": f"question {number}?",
                "answer": answer,
                "program": program,
                "question_index": number,
            }
        )
    (root / "questions").mkdir()
    document = {"info": {"split": "val"}, "questions": questions}
    (root / "questions" / "CLEVR_val_questions.json").write_text(json.dumps(document))
    return root


def vcr(root, count=2):
    lines = []
    for number in range(count):
        image = f"movie/{number}.jpg"
        picture(root / "vcr1images" / image, (200, 100))
        metadata = {
            "boxes": [[10, 10, 60, 90, 0.9], [100, 20, 180, 90, 0.8], [0, 0, 5, 5, 0.1]],
            "names": ["person", "person", "cup"],
            "width": 200,
            "height": 100,
            "segms": [],
        }
        (root / "vcr1images" / f"movie/{number}.json").write_text(json.dumps(metadata))
        lines.append(
            {
                "annot_id": f"val-{number}",
                "img_id": f"val-{number}",
                "img_fn": image,
                "metadata_fn": f"movie/{number}.json",
                "objects": ["person", "person", "cup"],
                "question": ["Why", "is", [0], "smiling", "?"],
                "answer_choices": [[[0], "is", "happy", "."], ["No", "."], ["Maybe", "."], [[1], "is", "n't", "."]],
                "answer_label": number,
                "rationale_choices": [["One", "."], ["Two", "."], ["Three", "."], ["Four", "."]],
                "rationale_label": 3,
            }
        )
    (root / "val.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return root


def visual_genome(root):
    ids = [1, 2, 3]
    for number in ids:
        picture(root / ("VG_100K" if number < 3 else "VG_100K_2") / f"{number}.jpg")
    (root / "image_data.json").write_text(json.dumps([{"image_id": n, "width": 40, "height": 30} for n in ids]))
    regions = [{"id": n, "regions": [{"phrase": f"thing {k} of {n}", "region_id": k} for k in (0, 1, 1)]} for n in ids]
    (root / "region_descriptions.json").write_text(json.dumps(regions))
    qas = [{"id": n, "qas": [{"qa_id": 10 * n, "question": "What is it?", "answer": "A thing."}]} for n in ids]
    (root / "question_answers.json").write_text(json.dumps(qas))
    (root / "densecap_splits.json").write_text(json.dumps({"train": [2], "val": [], "test": [3, 1]}))
    return root


def test_coco_has_the_karpathy_split_and_its_own_ids(tmp_path):
    dataset = read_dataset("coco", karpathy(tmp_path, "coco", "val2014"))
    assert [image.id for image in dataset.images] == ["1000", "1001", "1002"]
    assert dataset.captions[1][0] == "caption 0 of 1"
    assert dataset.split == "karpathy-test"
    assert dataset.tasks == ("retrieval", "captioning")
    assert [len(read_dataset("coco", tmp_path, split="train").images)] == [1]


def test_the_gallery_holds_five_captions_an_image_though_some_have_more(tmp_path):
    from argus_edge.evaluate.units import Content

    dataset = read_dataset("coco", karpathy(tmp_path, "coco", "val2014", captions=7))
    assert len(dataset.captions[0]) == 7
    assert len(Content(dataset, ("",) * 3).gallery) == 15


def test_flickr30k(tmp_path):
    dataset = read_dataset("flickr30k", karpathy(tmp_path, "flickr30k", "flickr30k-images"))
    assert dataset.images[0].id == "flickr30k-images_000"
    assert len(dataset.images) == 3


def test_visual_genome_has_its_published_split_and_regions_as_captions(tmp_path):
    dataset = read_dataset("vg", visual_genome(tmp_path))
    assert [image.id for image in dataset.images] == ["1", "3"]
    assert dataset.captions[0] == ("thing 0 of 1", "thing 1 of 1")  # the same phrase twice is one caption
    assert dataset.images[1].path.endswith("VG_100K_2/3.jpg")
    assert dataset.optional_tasks == ("reasoning",)
    assert dataset.questions[0].type == "what"
    assert len(read_dataset("vg", tmp_path, split="all").images) == 3


def test_visual_genome_without_its_split_says_where_it_comes_from(tmp_path):
    visual_genome(tmp_path)
    (tmp_path / "densecap_splits.json").unlink()
    with pytest.raises(InputError, match=r"densecap_splits\.json") as caught:
        read_dataset("vg", tmp_path)
    assert "raw.githubusercontent.com/jcjohnson/densecap" in caught.value.next_step


def test_clevr_has_types_by_the_last_function_and_a_closed_answer_set(tmp_path):
    dataset = read_dataset("clevr", clevr(tmp_path))
    assert [q.type for q in dataset.questions] == ["exist", "count", "compare_integer", "query_attribute"]
    assert len(dataset.images) == 2
    assert dataset.questions[2].image == 1
    assert len(ANSWERS) == len(set(ANSWERS)) == 28


def test_vcr_names_people_and_asks_twice(tmp_path):
    dataset = read_dataset("vcr", vcr(tmp_path))
    answer, rationale = dataset.questions[:2]
    assert answer.text == "Why is [person1] smiling?"
    assert answer.choices[3] == "[person2] isn't."
    assert rationale.text == "Why is [person1] smiling? [person1] is happy."
    assert (answer.type, rationale.type, answer.group) == ("q_a", "qa_r", rationale.group)
    assert dataset.images[0].drawn == (0, 1)


def test_vcr_boxes_are_drawn_where_they_are(tmp_path):
    dataset = read_dataset("vcr", vcr(tmp_path))
    shown = np.asarray(open_image(dataset.images[0])).astype(int)
    plain = np.asarray(Image.open(dataset.images[0].path).convert("RGB")).astype(int)
    changed = np.abs(shown - plain).max(axis=2) > 40
    assert changed[50, 10]
    assert changed[50, 100]
    assert not changed[50, 85]
    assert not changed[2, 2]  # nobody speaks of the cup


def test_vcr_boxes_stay_legible_when_the_photograph_is_perturbed(tmp_path):
    dataset = read_dataset("vcr", vcr(tmp_path))
    black = open_image(dataset.images[0], lambda image: Image.new("RGB", image.size))
    assert np.asarray(black).max() > 150


def test_broken_boxes_make_a_broken_image(tmp_path):
    dataset = read_dataset("vcr", vcr(tmp_path))
    (tmp_path / "vcr1images" / "movie" / "1.json").write_text("{}")
    statuses = list(inspect_images(dataset.images, threads=2))
    assert [bool(status.reason) for status in statuses] == [False, True]


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (["Is", [0, 1], "here", ",", "too", "?"], "Is [person1] and [car2] here, too?"),
        (["It", "'s", "(", [1], ")", "does", "n't"], "It's ( [car2]) doesn't"),
    ],
)
def test_tokens_as_text(tokens, text):
    assert render_tokens(tokens, ["person", "car"]) == text


@pytest.mark.parametrize(("name", "make"), [("clevr", clevr), ("vcr", vcr), ("vg", visual_genome)])
def test_check_counts_and_is_content(tmp_path, name, make):
    finding = check_dataset(name, make(tmp_path))
    assert finding.ok
    assert finding.images >= 2


def test_check_finds_what_is_missing_and_broken(tmp_path):
    karpathy(tmp_path, "coco", "val2014")
    (tmp_path / "val2014" / "val2014_000.jpg").unlink()
    (tmp_path / "val2014" / "val2014_001.jpg").write_bytes(b"\xff\xd8\xff")
    finding = check_dataset("coco", tmp_path)
    assert not finding.ok
    assert finding.missing_images == ("1000",)
    assert [image for image, _ in finding.broken] == ["1001"]
    (tmp_path / "dataset_coco.json").unlink()
    finding = check_dataset("coco", tmp_path)
    assert "karpathy" in finding.missing_files[0].source


@pytest.mark.parametrize(
    ("name", "make", "inner"),
    [
        ("coco", lambda root: karpathy(root, "coco", "val2014"), "coco"),
        ("clevr", clevr, "CLEVR_v1.0"),
        ("vcr", vcr, "vcr1"),
        ("vg", visual_genome, "visual genome"),
    ],
)
def test_an_archive_unpacked_into_a_folder_of_its_own_is_found(tmp_path, name, make, inner):
    (tmp_path / inner).mkdir()
    (tmp_path / "other").mkdir()
    make(tmp_path / inner)
    with pytest.raises(InputError) as caught:
        read_dataset(name, tmp_path)
    assert caught.value.next_step == f"it is one folder deeper: {pasted(f'{name}={tmp_path / inner}')}"
    checked = CliRunner().invoke(check, [f"{name}={tmp_path}"])
    assert checked.exit_code == 2
    assert caught.value.next_step in checked.stdout


def test_a_folder_that_may_not_be_looked_into_holds_nothing(tmp_path, monkeypatch):
    (tmp_path / "lost+found").mkdir()
    real = os.stat

    def stat(path, *args, **kwargs):
        if "lost+found/" in str(path):
            raise PermissionError(13, "Permission denied")
        return real(path, *args, **kwargs)

    monkeypatch.setattr(os, "stat", stat)
    with pytest.raises(InputError, match="The folder does not hold clevr"):
        read_dataset("clevr", tmp_path)


@pytest.mark.parametrize(("name", "folder"), [("coco", "val2014"), ("flickr30k", "flickr30k-images")])
def test_annotations_without_images_say_where_the_images_come_from(tmp_path, name, folder):
    karpathy(tmp_path, name, folder)
    (tmp_path / folder).rename(tmp_path / "elsewhere")
    finding = check_dataset(name, tmp_path)
    assert [item.path for item in finding.missing_files] == [f"{folder}/"]
    assert len(finding.missing_images) == 3
    with pytest.raises(InputError, match="the file is missing") as caught:
        prepare(name, tmp_path, store=Store(tmp_path / "store"), threads=1, say=print)
    assert caught.value.where == str(tmp_path / folder / f"{folder}_000.jpg")
    for image in (tmp_path / "elsewhere").iterdir():
        image.rename(tmp_path / image.name)
    assert check_dataset(name, tmp_path).ok


def test_flickr30k_as_kaggle_has_it(tmp_path):
    made = karpathy(tmp_path, "flickr30k", "flickr30k_images")
    (made / "flickr30k_images").rename(made / "inner")
    (made / "flickr30k_images").mkdir()
    (made / "inner").rename(made / "flickr30k_images" / "flickr30k_images")
    (made / "flickr30k_images" / "results.csv").write_text("image_name| comment_number| comment\n")
    assert check_dataset("flickr30k", made).ok


@pytest.mark.parametrize(
    "damage",
    ['{"images": [{"split": "test"}]}', '{"images": 3}', "[1, 2", "", '{"images": [{"split": "test", "cocoid": 1}]}'],
)
def test_annotations_that_are_not_as_published_are_named(tmp_path, damage):
    (tmp_path / "dataset_coco.json").write_text(damage)
    with pytest.raises(InputError) as caught:
        read_dataset("coco", tmp_path)
    assert "dataset_coco.json" in caught.value.where


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b.jpg", ".."])
def test_a_file_name_that_leaves_the_folder_is_refused(tmp_path, name):
    karpathy(tmp_path, "coco", "val2014")
    document = json.loads((tmp_path / "dataset_coco.json").read_text())
    document["images"][0]["filename"] = name
    (tmp_path / "dataset_coco.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="leaves the folder"):
        read_dataset("coco", tmp_path)


def test_a_large_array_is_read_piece_by_piece(tmp_path):
    path = tmp_path / "array.json"
    elements = [{"id": n, "text": "x]},{" * (n % 700)} for n in range(3000)]
    for indent in (None, 1):
        path.write_text(json.dumps({"info": {"a": [1]}, "questions": elements}, indent=indent))
        assert list(iter_json_array(path, dataset="clevr", key="questions")) == elements
    path.write_text(json.dumps(elements))
    assert list(iter_json_array(path, dataset="vg")) == elements
    path.write_text(json.dumps(elements)[:-500])
    with pytest.raises(InputError, match="does not end"):
        list(iter_json_array(path, dataset="vg"))


def test_the_hash_follows_images_texts_and_order(tmp_path):
    dataset = read_dataset("clevr", clevr(tmp_path))
    hashes = ["a" * 64, "b" * 64]
    first = dataset_sha256(dataset, hashes)
    assert dataset_sha256(dataset, hashes) == first
    assert dataset_sha256(dataset, hashes[::-1]) != first
    assert dataset_sha256(dataset.select([1, 0]), hashes) != first


def test_the_data_option(tmp_path):
    karpathy(tmp_path / "coco", "coco", "val2014")
    clevr(tmp_path / "CLEVR_v1.0")
    assert set(parse_data_option([f"all={tmp_path}"])) == {"coco", "clevr"}
    assert parse_data_option(["sample"]) == {"sample": sample_folder()}
    for wrong, message in (("cocoa=/x", "Unknown dataset"), ("coco", "names no folder"), ("", "No dataset")):
        with pytest.raises(UsageError, match=message):
            parse_data_option([wrong])
    with pytest.raises(UsageError, match="twice"):
        parse_data_option(["coco=/a,coco=/b"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="No dataset is found"):
        parse_data_option([f"all={tmp_path / 'empty'}"])


def test_the_sample_is_whole():
    finding = check_dataset("sample", sample_folder())
    assert finding.ok
    assert (finding.images, finding.captions) == (20, 100)
    size = sum(path.stat().st_size for path in sample_folder().iterdir())
    assert size < 1_500_000
    licences = (sample_folder() / "LICENCES.md").read_text()
    assert all(path.name in licences for path in sample_folder().glob("*.jpg"))
