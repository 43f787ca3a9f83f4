"""The user's own images and texts: golden inputs, and the scales of static quantisation."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the export extra")
pytest.importorskip("transformers", minversion="5", reason="the families need transformers 5")
Image = pytest.importorskip("PIL.Image", reason="needs the export extra")

from argus_edge.bundles import load_golden
from argus_edge.errors import InputError
from argus_edge.exporters.calibration import _captions, load_calibration
from argus_edge.exporters.export import ExportOptions, export_model

TEXTS = ["a red cat", "two dogs", "a cat and a dog", ""]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "red", "cat", "two", "dogs", "and", "dog"]


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "mine"
    (root / "deeper").mkdir(parents=True)
    rng = np.random.default_rng(0)
    for index in range(3):
        Image.fromarray(rng.integers(0, 256, (40, 50, 3), np.uint8)).save(root / f"{index}.png")
    (root / "deeper" / "texts.txt").write_text("\n".join(TEXTS))
    return root


@pytest.mark.slow
def test_images_calibrate_and_become_golden_inputs(folder, tiny, tmp_path):
    out = tmp_path / "bundle"
    manifest = export_model(
        ExportOptions(model=str(tiny("clip")), out=out, precision="int8-static", opset=15, calibration=folder)
    )
    case = manifest.component("image").golden[0]
    assert case.origin == "calibration"
    inputs, _ = load_golden(out, case)
    # Three images, repeated to the number of samples.
    assert len(np.unique(inputs["pixel_values"].reshape(case.samples, -1), axis=0)) == 3
    assert manifest.component("text").golden[0].origin == "random"  # this model came without a tokenizer
    assert manifest.parity_passed


def test_texts_are_tokenised_by_the_models_own_tokenizer(folder, tmp_path):
    import transformers

    processor = tmp_path / "bundle" / "processor"
    processor.mkdir(parents=True)
    (processor / "vocab.txt").write_text("\n".join(VOCABULARY))
    transformers.BertTokenizer(vocab=str(processor / "vocab.txt")).save_pretrained(processor)
    found = load_calibration(folder, None, tmp_path / "bundle")
    assert len(found.texts) == 3
    assert found.texts[0] == [2, 5, 6, 7, 3]


def test_an_empty_folder_and_a_broken_image(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="neither images nor texts"):
        load_calibration(tmp_path / "empty", None, tmp_path)
    with pytest.raises(InputError, match="No such calibration folder"):
        load_calibration(tmp_path / "nothing", None, tmp_path)
    from argus_edge.exporters.clip import MEAN, STD
    from argus_edge.schema.bundle import ImagePreprocess

    spec = ImagePreprocess(
        height=8, width=8, resize="stretch", resample="bilinear", rescale=1, mean=MEAN, std=STD, layout="NCHW"
    )
    (folder / "4.jpg").write_bytes(b"not an image")
    with pytest.raises(InputError, match="Not a readable image"):
        load_calibration(folder, spec, tmp_path)


def test_a_dataset_of_one_s_own_gives_its_captions(tmp_path):
    lines = tmp_path / "data.jsonl"
    lines.write_text(
        '{"image": "a.jpg", "captions": ["A cat. ", "On a mat."]}\n\n{"image": "a.jpg", "question": "?"}\n'
    )
    assert _captions(lines) == ["A cat.", "On a mat."]
    lines.write_text("{}\nnot json\n")
    with pytest.raises(InputError, match="Line 2 is not JSON"):
        _captions(lines)
