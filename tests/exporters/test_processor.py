"""What a checkpoint says of its own images and ends, in the layouts that checkpoints are published in."""

import json
import shutil

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the export extra")
transformers = pytest.importorskip("transformers", minversion="5", reason="the families need transformers 5")
Image = pytest.importorskip("PIL.Image")

from argus_edge.errors import InputError, UsageError
from argus_edge.evaluate.models.bundle_base import preprocess_image
from argus_edge.exporters.clip import MEAN, STD
from argus_edge.exporters.processor import checkpoint_ends, checkpoint_preprocess
from argus_edge.schema.bundle import ImagePreprocess

SIZE = 32
STATISTICS = {"do_normalize": True, "image_mean": MEAN, "image_std": STD, "do_resize": True, "resample": 3}
OTHER = {**STATISTICS, "image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.3, 0.4], "resample": 2}
# As openai/clip-vit-base-patch32, Salesforce/blip-image-captioning-base and google/gemma-3-4b-it are published, but
# for the size, and as transformers 5 saves a processor.
CLIP = {**STATISTICS, "crop_size": SIZE, "do_center_crop": True, "size": SIZE}
PUBLISHED = {
    "clip": ("preprocessor_config.json", {**CLIP, "feature_extractor_type": "CLIPFeatureExtractor"}),
    "blip": ("preprocessor_config.json", {**STATISTICS, "image_processor_type": "BlipImageProcessor", "size": SIZE}),
    "gemma3": (
        "preprocessor_config.json",
        {
            "do_convert_rgb": None,
            "do_normalize": True,
            "do_pan_and_scan": None,
            "do_rescale": True,
            "do_resize": True,
            "image_mean": [0.5] * 3,
            "image_processor_type": "Gemma3ImageProcessor",
            "image_seq_length": 256,
            "image_std": [0.5] * 3,
            "pan_and_scan_max_num_crops": None,
            "resample": 2,
            "rescale_factor": 1 / 255,
            "size": {"height": SIZE, "width": SIZE},
        },
    ),
    "nested": (
        "processor_config.json",
        {
            "processor_class": "CLIPProcessor",
            "image_processor": {
                **OTHER,
                "image_processor_type": "CLIPImageProcessor",
                "size": {"shortest_edge": SIZE},
                "do_center_crop": True,
                "crop_size": {"height": SIZE, "width": SIZE},
            },
        },
    ),
    "stretched": (
        "preprocessor_config.json",
        {
            **OTHER,
            "image_processor_type": "CLIPImageProcessor",
            "do_center_crop": False,
            "size": {"height": SIZE, "width": SIZE},
        },
    ),
    "unscaled": (
        "preprocessor_config.json",
        {**CLIP, "image_processor_type": "CLIPImageProcessor", "do_rescale": False, "do_normalize": False},
    ),
}


def spec(resize):
    return ImagePreprocess(
        height=SIZE, width=SIZE, resize=resize, resample="bicubic", rescale=1 / 255, mean=MEAN, std=STD, layout="NCHW"
    )


def write(root, name, document):
    folder = root / "processor"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(document))
    return folder


@pytest.mark.parametrize("case", PUBLISHED)
def test_images_are_prepared_as_by_the_checkpoints_own_processor(tmp_path, case):
    folder = write(tmp_path, *PUBLISHED[case])
    how = spec("stretch" if case in ("blip", "gemma3") else "shortest-edge-then-centre-crop")
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (50, 70, 3), np.uint8))
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    theirs = processor(images=[picture], return_tensors="np")["pixel_values"][0]
    ours = preprocess_image(picture, checkpoint_preprocess(how, tmp_path))
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


@pytest.mark.parametrize(
    "change",
    [
        {"size": {"shortest_edge": SIZE + 8}},
        {"size": {"shortest_edge": SIZE}, "do_center_crop": False},
        {"size": {"height": SIZE, "width": SIZE + 8}, "do_center_crop": False},
        {"size": {"height": SIZE + 8, "width": SIZE + 8}},
        {"do_resize": False},
        {"resample": 4},
    ],
    ids=[
        "cuts less than it resizes to",
        "cuts nothing",
        "not square",
        "stretches, then cuts",
        "resizes nothing",
        "box filter",
    ],
)
def test_what_a_bundle_cannot_say_is_not_said_otherwise(tmp_path, change):
    write(tmp_path, "preprocessor_config.json", {**CLIP, **change})
    assert checkpoint_preprocess(spec("shortest-edge-then-centre-crop"), tmp_path) is None


def test_a_model_without_a_processor_has_its_familys_way(tmp_path):
    assert checkpoint_preprocess(spec("stretch"), tmp_path) == spec("stretch")
    assert checkpoint_preprocess(None, tmp_path) is None
    write(tmp_path, "processor_config.json", {"processor_class": "CLIPProcessor"})
    assert checkpoint_preprocess(spec("stretch"), tmp_path) == spec("stretch")
    write(tmp_path, "preprocessor_config.json", {"min_pixels": 3136, "max_pixels": 12845056, "patch_size": 14})
    assert checkpoint_preprocess(spec("stretch"), tmp_path) == spec("stretch")


@pytest.mark.parametrize("document", [[1], {"image_mean": "grey"}, {"image_processor": 3}])
def test_a_processor_that_cannot_be_read(tmp_path, document):
    name = "processor_config.json" if "image_processor" in document else "preprocessor_config.json"
    write(tmp_path, name, document)
    with pytest.raises(InputError, match="not readable"):
        checkpoint_preprocess(spec("stretch"), tmp_path)


def test_files_that_are_nested_without_end(tmp_path):
    from argus_edge.exporters.qwen2_5_vl import Qwen25VlFamily
    from tests.exporters.tiny_models import qwen2_5_vl

    for name in ("preprocessor_config.json", "generation_config.json"):
        (write(tmp_path, name, {}) / name).write_text("[" * 100_000)
    with pytest.raises(InputError, match="not readable"):
        checkpoint_preprocess(spec("stretch"), tmp_path)
    generation = Qwen25VlFamily(qwen2_5_vl().config, "Qwen2_5_VLForConditionalGeneration").generation()
    with pytest.raises(InputError, match="not readable"):
        checkpoint_ends(generation, tmp_path)


def test_a_bundle_ends_where_the_checkpoints_own_settings_end(tmp_path):
    from argus_edge.exporters.qwen2_5_vl import Qwen25VlFamily
    from tests.exporters.tiny_models import qwen2_5_vl

    model = qwen2_5_vl()
    generation = Qwen25VlFamily(model.config, "Qwen2_5_VLForConditionalGeneration").generation()
    assert checkpoint_ends(generation, tmp_path).eos_token_ids == [156]
    write(tmp_path, "generation_config.json", {"eos_token_id": [156, 155], "repetition_penalty": 1.05})
    assert checkpoint_ends(generation, tmp_path).eos_token_ids == [156, 155]
    write(tmp_path, "generation_config.json", {"eos_token_id": 155})
    assert checkpoint_ends(generation, tmp_path).eos_token_ids == [155]
    write(tmp_path, "generation_config.json", {"do_sample": True})
    assert checkpoint_ends(generation, tmp_path).eos_token_ids == [156]
    write(tmp_path, "generation_config.json", {"eos_token_id": ["end"]})
    with pytest.raises(InputError, match="not readable"):
        checkpoint_ends(generation, tmp_path)


def test_nothing_is_calibrated_on_images_that_cannot_be_prepared(tiny, tmp_path):
    from argus_edge.exporters.export import ExportOptions, export_model

    folder = tmp_path / "model"
    shutil.copytree(tiny("clip"), folder)
    (folder / "preprocessor_config.json").write_text(json.dumps({"do_resize": False}))
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "a.txt").write_text("a cat\n")
    Image.new("RGB", (8, 8)).save(tmp_path / "samples" / "a.png")
    options = ExportOptions(
        model=str(folder), out=tmp_path / "bundle", precision="int8-static", calibration=tmp_path / "samples"
    )
    with pytest.raises(UsageError, match="cannot be calibrated on images"):
        export_model(options)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_manifest_holds_what_the_checkpoint_says(tiny, tmp_path):
    from argus_edge.exporters.export import ExportOptions, export_model

    folder = tmp_path / "model"
    shutil.copytree(tiny("qwen2_5_vl"), folder)
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [156, 155]}))
    (folder / "preprocessor_config.json").write_text(json.dumps({"do_resize": False}))
    manifest = export_model(ExportOptions(model=str(folder), out=tmp_path / "bundle"))
    assert manifest.generation.eos_token_ids == [156, 155]
    assert manifest.preprocess is None
    assert any("cannot prepare images" in warning for warning in manifest.warnings)
