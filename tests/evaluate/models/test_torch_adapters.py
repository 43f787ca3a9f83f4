"""Each family's adapter against the original model called by hand, on tiny random weights."""

from __future__ import annotations

import json

import numpy as np
import pytest

from argus_edge.errors import InputError
from argus_edge.evaluate.models import capabilities_of, load_model
from argus_edge.evaluate.models.resolve import resolve_model
from tests.support import tiny_vlm

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
Image = pytest.importorskip("PIL.Image")


def picture(seed: int, size: tuple[int, int] = (48, 40)) -> Image.Image:
    """A picture with structure, so that two of them differ."""
    pixels = np.random.default_rng(seed).integers(0, 256, (6, 6, 3), np.uint8)
    return Image.fromarray(pixels).resize(size, Image.Resampling.BILINEAR)


def load(folder, **options):
    return load_model(resolve_model(str(folder), threads=1, **options).spec)


IMAGES = [picture(seed) for seed in range(3)]
TEXTS = ["a red cat", "a blue dog on the table", "what colour is the dog"]


def test_clip_embeds_as_the_original(tmp_path):
    from transformers import AutoImageProcessor, AutoTokenizer, CLIPModel

    folder = tiny_vlm.clip(tmp_path / "clip")
    adapter = load(folder)
    assert capabilities_of(adapter) == ("embed",)
    original = CLIPModel.from_pretrained(folder).eval()
    pixels = AutoImageProcessor.from_pretrained(folder, backend="pil")(images=IMAGES, return_tensors="pt")
    tokens = AutoTokenizer.from_pretrained(folder)(TEXTS, padding="max_length", max_length=20, return_tensors="pt")
    with torch.inference_mode():
        out = original(input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"], **pixels)
    images, texts = adapter.embed_images(IMAGES), adapter.embed_texts(TEXTS)
    cosine = (images @ texts.T) / np.linalg.norm(images, axis=1)[:, None] / np.linalg.norm(texts, axis=1)
    np.testing.assert_allclose(cosine * float(original.logit_scale.exp()), out.logits_per_image, rtol=1e-4, atol=1e-5)


def test_a_batch_gives_what_each_item_gives_alone(tmp_path):
    adapter = load(tiny_vlm.clip(tmp_path / "clip"))
    together = adapter.embed_texts(TEXTS)
    np.testing.assert_allclose(together, np.concatenate([adapter.embed_texts([text]) for text in TEXTS]), atol=1e-5)


@pytest.mark.parametrize(
    ("architecture", "capability"),
    [
        ("BlipForConditionalGeneration", "caption"),
        ("BlipForQuestionAnswering", "answer"),
        ("BlipForImageTextRetrieval", "embed"),
    ],
)
def test_blip_does_what_its_checkpoint_is_for(tmp_path, architecture, capability):
    adapter = load(tiny_vlm.blip(tmp_path / "blip", architecture))
    assert capabilities_of(adapter) == (capability,)
    if capability == "caption":
        captions = adapter.caption(IMAGES, "a picture of")
        assert len(captions) == 3
        assert not any(caption.startswith("a picture of") for caption in captions)
    elif capability == "answer":
        assert len(adapter.answer(IMAGES, TEXTS)) == 3
    else:
        assert adapter.embed_images(IMAGES).shape == adapter.embed_texts(TEXTS).shape == (3, 16)


def test_blip_retrieval_is_the_contrastive_head(tmp_path):
    from transformers import AutoImageProcessor, AutoTokenizer, BlipForImageTextRetrieval

    folder = tiny_vlm.blip(tmp_path / "blip", "BlipForImageTextRetrieval")
    adapter = load(folder)
    original = BlipForImageTextRetrieval.from_pretrained(folder).eval()
    pixels = AutoImageProcessor.from_pretrained(folder, backend="pil")(images=IMAGES[:1], return_tensors="pt")
    tokens = AutoTokenizer.from_pretrained(folder)(TEXTS[:1], return_tensors="pt")
    with torch.inference_mode():
        expected = original(
            input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"], use_itm_head=False, **pixels
        ).itm_score
    image, text = adapter.embed_images(IMAGES[:1])[0], adapter.embed_texts(TEXTS[:1])[0]
    cosine = image @ text / np.linalg.norm(image) / np.linalg.norm(text)
    np.testing.assert_allclose(cosine, float(expected[0, 0]), rtol=1e-4)


def test_blip_reads_a_statement_to_its_end(tmp_path):
    # A question of VCR with its answer has more tokens than a caption; what is chosen stands last.
    adapter = load(tiny_vlm.blip(tmp_path / "blip", "BlipForImageTextRetrieval"))
    first, second = adapter.embed_texts(["the cat " * 25 + "red", "the cat " * 25 + "blue"])
    assert np.abs(first - second).max() > 1e-6


def features_file(path, ids, width=8):
    rng = np.random.default_rng(0)
    arrays = {}
    for number, image_id in enumerate(ids):
        regions = 4 + number
        arrays[f"{image_id}.features"] = rng.normal(size=(regions, width)).astype(np.float32)
        arrays[f"{image_id}.boxes"] = rng.uniform(size=(regions, 4)).astype(np.float32)
    np.savez(path, **arrays)
    return path


def test_lxmert_answers_from_features_and_padding_regions_changes_nothing(tmp_path):
    features = features_file(tmp_path / "features.npz", ["7", "8", "9"])
    adapter = load(tiny_vlm.lxmert(tmp_path / "lxmert"), features=features)
    assert adapter.takes_image_ids
    together = adapter.answer(["7", "8", "9"], TEXTS)
    assert together == [adapter.answer([image], [text])[0] for image, text in zip("789", TEXTS, strict=True)]
    assert set(together) <= {"yes", "no", "red", "blue"}


def test_lxmert_matches_pairs(tmp_path):
    features = features_file(tmp_path / "features.npz", ["7", "8"])
    adapter = load(tiny_vlm.lxmert(tmp_path / "lxmert", "LxmertForPreTraining"), features=features)
    assert capabilities_of(adapter) == ("score_pairs",)
    assert adapter.score_pairs(["7", "8"], TEXTS[:2]).shape == (2,)


def test_lxmert_without_features_says_what_it_wants(tmp_path):
    with pytest.raises(InputError, match="region features") as caught:
        load(tiny_vlm.lxmert(tmp_path / "lxmert"))
    assert "--features" in caught.value.next_step


def test_missing_or_odd_features_are_noticed_before_anything_is_loaded(tmp_path):
    model = tiny_vlm.lxmert(tmp_path / "lxmert")
    with pytest.raises(InputError, match="region features"):
        resolve_model(str(model), threads=1)
    (tmp_path / "odd.npz").write_bytes(b"\xff\xd8\xff not an archive")
    with pytest.raises(InputError, match=r"not an \.npz file"):
        resolve_model(str(model), threads=1, features=tmp_path / "odd.npz")
    np.save(tmp_path / "one.npy", np.ones(3))
    with pytest.raises(InputError, match=r"not an \.npz file"):
        resolve_model(str(model), threads=1, features=tmp_path / "one.npy")


def test_an_image_without_features_is_named(tmp_path):
    features = features_file(tmp_path / "features.npz", ["7"])
    adapter = load(tiny_vlm.lxmert(tmp_path / "lxmert"), features=features)
    with pytest.raises(InputError, match="'12'"):
        adapter.answer(["12"], ["is the cat red"])


@pytest.mark.parametrize("family", ["gemma3", "qwen2_5_vl"])
def test_chat_models_do_everything_by_asking(tmp_path, family):
    adapter = load(getattr(tiny_vlm, family)(tmp_path / family))
    assert capabilities_of(adapter) == ("score_pairs", "caption", "answer", "choose")
    assert len(adapter.caption(IMAGES, "describe this image")) == 3
    assert len(adapter.answer(IMAGES, TEXTS)) == 3
    scores = adapter.choose(IMAGES, TEXTS, [["a", "b"], ["a", "b", "c"], ["a", "b"]])
    assert [len(row) for row in scores] == [2, 3, 2]
    assert (adapter.score_pairs(IMAGES, TEXTS) <= 0).all()


@pytest.mark.parametrize("family", ["gemma3", "qwen2_5_vl"])
def test_padding_a_batch_of_prompts_changes_nothing(tmp_path, family):
    adapter = load(getattr(tiny_vlm, family)(tmp_path / family))
    images = [picture(1), picture(2, (40, 64)), picture(3)]
    together = adapter.next_token(images, TEXTS)
    alone = [adapter.next_token([image], [text])[0] for image, text in zip(images, TEXTS, strict=True)]
    np.testing.assert_allclose(together, np.stack(alone), atol=2e-4)


@pytest.mark.parametrize("family", ["gemma3", "qwen2_5_vl"])
def test_what_is_generated_depends_on_the_image(tmp_path, family):
    adapter = load(getattr(tiny_vlm, family)(tmp_path / family))
    black, white = Image.new("RGB", (48, 48)), Image.new("RGB", (48, 48), "white")
    first, second = adapter.next_token([black, white], ["a red cat", "a red cat"])
    assert np.abs(first - second).max() > 1e-4


def test_a_batch_that_does_not_fit_is_halved_and_stays_in_order():
    from argus_edge.evaluate.models.base import ModelSpec
    from argus_edge.evaluate.models.torch_base import Torch

    model = Torch(ModelSpec("torch", "clip", "", "", "cpu", "float32", 1), model=None)
    sizes = []

    def call(first, second):
        sizes.append(len(first))
        if len(first) > 3:
            raise torch.OutOfMemoryError
        return [a + b for a, b in zip(first, second, strict=True)]

    assert model.fitting(call, range(10), range(10)) == [2 * n for n in range(10)]
    assert sizes == [10, 5, 2, 3, 5, 2, 3]
    with pytest.raises(torch.OutOfMemoryError):
        model.fitting(lambda batch: call(range(9), range(9)), [1])


def test_weights_that_are_missing_are_refused_rather_than_made_up(tmp_path):
    from safetensors.torch import load_file, save_file

    folder = tiny_vlm.clip(tmp_path / "clip")
    weights = load_file(folder / "model.safetensors")
    del weights["visual_projection.weight"]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(InputError, match="lack visual_projection"):
        load(folder)


def test_a_pickle_is_not_opened(tmp_path):
    folder = tiny_vlm.clip(tmp_path / "clip")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(InputError, match="safetensors"):
        load(folder)


def test_a_chat_model_without_a_template_is_refused(tmp_path):
    folder = tiny_vlm.gemma3(tmp_path / "gemma3")
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(InputError, match="chat template"):
        load(folder)


@pytest.mark.parametrize("family", ["gemma3", "qwen2_5_vl"])
def test_a_checkpoints_own_generation_settings_do_not_bend_its_answers(tmp_path, family):
    # Qwen2.5-VL is published with a penalty on repetition: its bundle has none, and the two are compared.
    folder = getattr(tiny_vlm, family)(tmp_path / family)

    def written():
        adapter = load(folder)
        return adapter.caption(IMAGES, "a picture of"), adapter.answer(IMAGES, TEXTS)

    plain = written()
    path = folder / "generation_config.json"
    bent = {"repetition_penalty": 50.0, "do_sample": True, "temperature": 9.0, "min_new_tokens": 7, "num_beams": 3}
    path.write_text(json.dumps(json.loads(path.read_text()) | bent))
    assert written() == plain


def test_gemma3_does_not_pan_and_scan_where_its_processor_would(tmp_path):
    # The prompt has the tokens of one picture, and a bundle sees one.
    folder = tiny_vlm.gemma3(tmp_path / "gemma3")
    plain = load(folder).answer(IMAGES, TEXTS)
    path = folder / "preprocessor_config.json"
    own = {"do_pan_and_scan": True, "pan_and_scan_min_crop_size": 8, "pan_and_scan_min_ratio_to_activate": 1.0}
    path.write_text(json.dumps(json.loads(path.read_text()) | own | {"pan_and_scan_max_num_crops": 4}))
    assert load(folder).answer(IMAGES, TEXTS) == plain


@pytest.mark.parametrize("family", ["gemma3", "qwen2_5_vl"])
def test_the_processors_own_template_goes_before_a_tokenizers_that_knows_no_image(tmp_path, family):
    folder = getattr(tiny_vlm, family)(tmp_path / family)
    expected = load(folder).tokens.encode("a red cat", 4)
    template = folder / "chat_template.jinja"
    whole = template.read_text()
    template.write_text("{% for message in messages %}{{ message['content'][1]['text'] }}{% endfor %}")
    with pytest.raises(InputError, match="passes an image over"):
        load(folder).answer(IMAGES[:1], TEXTS[:1])
    (folder / "chat_template.json").write_text(json.dumps({"chat_template": whole}))
    assert load(folder).tokens.encode("a red cat", 4) == expected
    for broken in ("[]", '{"chat_template": null}', '{"chat_template": [{"name": "default"}]}', "[" * 100_000):
        (folder / "chat_template.json").write_text(broken)
        with pytest.raises(InputError, match="cannot be read"):
            load(folder)


def test_of_a_tokenizers_several_templates_the_default_is_used(tmp_path):
    folder = tiny_vlm.qwen2_5_vl(tmp_path / "qwen")
    expected = load(folder).tokens.encode("a red cat", 4)
    (folder / "additional_chat_templates").mkdir()
    (folder / "additional_chat_templates" / "tool_use.jinja").write_text("{{ messages }}")
    assert load(folder).tokens.encode("a red cat", 4) == expected


@pytest.mark.parametrize("labels", [None, {"0": "LABEL_0", "1": "LABEL_1"}, {"0": "yes"}])
def test_an_lxmert_whose_answers_have_no_names_is_refused(tmp_path, labels):
    # As it is published: an answer would be a number, and the accuracy 0.
    folder = tiny_vlm.lxmert(tmp_path / "lxmert")
    path = folder / "config.json"
    config = json.loads(path.read_text())
    del config["id2label"], config["label2id"]
    path.write_text(json.dumps(config | ({"id2label": labels} if labels else {})))
    with pytest.raises(InputError, match="does not name its 4 answers"):
        load(folder, features=features_file(tmp_path / "features.npz", ["7"]))
