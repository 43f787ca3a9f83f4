"""A bundle writes what the original writes: prefill and decode through one decoder file, against transformers."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the export extra")
transformers = pytest.importorskip("transformers", minversion="5", reason="the families need transformers 5")

from argus_edge.bundles import bundle_path
from argus_edge.exporters.registry import FORMATS

NEW_TOKENS = 6


def runners(folder, manifest):
    """Return the bundle's files as functions, by component; each in its format's own runtime."""
    file_format = FORMATS[manifest.format]()
    return {part.name: file_format.runner(bundle_path(folder, part.file), part) for part in manifest.components}


def greedy(manifest, run, prompt, prefill, positions=None, every=None):
    """Generate greedily by the manifest alone: names, cache layout and dims all come from it."""
    generation = manifest.generation
    kv = generation.kv
    cache = {}
    for layer in range(kv.layers):
        for name in (kv.past_key, kv.past_value):
            cache[name.format(layer=layer)] = np.zeros((1, kv.kv_heads, 0, kv.head_dim), np.float32)
    ids, written, total = np.asarray(prompt)[None], [], 0
    for step in range(NEW_TOKENS):
        total += ids.shape[1]
        fed = {generation.input_ids: ids, generation.attention_mask: np.ones((1, total), np.int64), **cache}
        fed |= every or {}
        if generation.image_features:
            features = prefill if step == 0 else prefill[:0]
            fed[generation.image_features] = features
        if generation.position_ids:
            fed[generation.position_ids] = positions(step, ids.shape[1])
        outputs = run(fed)
        for layer in range(kv.layers):
            cache[kv.past_key.format(layer=layer)] = outputs[kv.present_key.format(layer=layer)]
            cache[kv.past_value.format(layer=layer)] = outputs[kv.present_value.format(layer=layer)]
        token = int(outputs[generation.logits][0, -1].argmax())
        written.append(token)
        ids = np.array([[token]])
    return written


def image(shape):
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def generated(model, **inputs):
    prompt = inputs["input_ids"].shape[1]
    tensors = {name: torch.from_numpy(np.asarray(array)) for name, array in inputs.items()}
    with torch.no_grad():
        found = model.generate(
            **tensors, max_new_tokens=NEW_TOKENS, min_new_tokens=NEW_TOKENS, do_sample=False, eos_token_id=None
        )
    return found[0, prompt:].tolist()


@pytest.mark.slow
def test_blip_captions_as_the_original(exported, tiny):
    folder, manifest = exported("blip", opset=15)
    model = transformers.BlipForConditionalGeneration.from_pretrained(tiny("blip")).eval()
    pixels = image((1, 3, 32, 32))
    run = runners(folder, manifest)
    cross = run["vision"]({"pixel_values": pixels})
    ours = greedy(manifest, run["decoder"], [97, 5, 6], None, every=cross)
    with torch.no_grad():
        embeds = model.vision_model(torch.from_numpy(pixels)).last_hidden_state
        found = model.text_decoder.generate(
            input_ids=torch.tensor([[97, 5, 6]]),
            encoder_hidden_states=embeds,
            max_new_tokens=NEW_TOKENS,
            min_new_tokens=NEW_TOKENS,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
        )
    assert ours == found[0, 3:].tolist()


@pytest.mark.slow
def test_gemma3_answers_as_the_original(exported, tiny):
    folder, manifest = exported("gemma3", opset=15)
    model = transformers.Gemma3ForConditionalGeneration.from_pretrained(tiny("gemma3")).eval()
    pixels = image((1, 3, 32, 32))
    # Longer than the sliding window of 6, with the image's four tokens in the middle.
    prompt = np.array([2, 9, 11, 130, 130, 130, 130, 17, 18, 19])
    run = runners(folder, manifest)
    features = run["vision"]({"pixel_values": pixels})["image_features"][0]
    ours = greedy(manifest, run["decoder"], prompt, features)
    theirs = generated(
        model,
        input_ids=prompt[None],
        pixel_values=pixels,
        token_type_ids=(prompt == 130).astype(np.int64)[None],
        attention_mask=np.ones((1, len(prompt)), np.int64),
    )
    assert ours == theirs


def test_qwen2_5_vl_answers_as_the_original(exported, tiny):
    folder, manifest = exported("qwen2_5_vl", precision="fp32", opset=15)
    model = transformers.Qwen2_5_VLForConditionalGeneration.from_pretrained(tiny("qwen2_5_vl")).eval()
    processor = transformers.models.qwen2_vl.image_processing_pil_qwen2_vl.Qwen2VLImageProcessorPil(
        patch_size=4, merge_size=2, temporal_patch_size=2, min_pixels=64 * 64, max_pixels=64 * 64
    )
    from PIL import Image

    picture = Image.fromarray(np.random.default_rng(3).integers(0, 256, (64, 64, 3), np.uint8))
    patches = processor(images=picture, return_tensors="np")
    grid = patches["image_grid_thw"]
    assert grid.tolist() == [[1, 16, 16]]
    spec = manifest.preprocess
    pixels = (np.asarray(picture, np.float32) * spec.rescale - spec.mean) / spec.std
    run = runners(folder, manifest)
    # The file takes the whole image and cuts the patches that the original's processor cuts.
    features = run["vision"]({"pixel_values": pixels.transpose(2, 0, 1)[None].astype(np.float32)})["image_features"]
    prompt = np.array([3, 4, 153, *[151] * 64, 154, 8, 9])
    types = (prompt == 151).astype(np.int64)[None]
    first, delta = model.model.get_rope_index(
        torch.from_numpy(prompt)[None], mm_token_type_ids=torch.from_numpy(types), image_grid_thw=torch.tensor(grid)
    )

    def positions(step, length):
        if step == 0:
            return first.numpy()
        return np.full((3, 1, length), len(prompt) + step - 1 + int(delta[0, 0]))

    ours = greedy(manifest, run["decoder"], prompt, features, positions=positions)
    theirs = generated(
        model,
        input_ids=prompt[None],
        pixel_values=patches["pixel_values"],
        image_grid_thw=grid,
        mm_token_type_ids=types,
        attention_mask=np.ones((1, len(prompt)), np.int64),
    )
    assert ours == theirs


@pytest.mark.parametrize("batch", [1, 3])
def test_clip_embeds_as_the_original(exported, tiny, batch):
    folder, manifest = exported("clip", precision="fp32", opset=15)
    model = transformers.CLIPModel.from_pretrained(tiny("clip")).eval()
    run = runners(folder, manifest)
    pixels = image((batch, 3, 32, 32))
    ids = np.array([[97, 5, 6, 98]] * batch)
    with torch.no_grad():
        found = model(
            input_ids=torch.from_numpy(ids),
            pixel_values=torch.from_numpy(pixels),
            attention_mask=torch.ones(batch, 4, dtype=torch.long),
        )
    ours = run["image"]({"pixel_values": pixels})["image_embeds"]
    texts = run["text"]({"input_ids": ids, "attention_mask": np.ones_like(ids)})["text_embeds"]
    np.testing.assert_allclose(ours, found.image_embeds.numpy(), atol=1e-5)
    np.testing.assert_allclose(texts, found.text_embeds.numpy(), atol=1e-5)
