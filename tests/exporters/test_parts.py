"""The parts of exporting that are pure: cosine, limits, 4-bit blocks, masks, sample counts, calibration images."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

torch = pytest.importorskip("torch", reason="needs the export extra")
transformers = pytest.importorskip("transformers", minversion="5", reason="the families need transformers 5")

from argus_edge.exporters.calibration import load_calibration, prepare_image
from argus_edge.exporters.decoder import additive_mask, image_blocks, positions, put_images
from argus_edge.exporters.golden import samples_per_case
from argus_edge.exporters.int4 import BLOCK, quantise_blockwise
from argus_edge.exporters.parity import compare_output, cosine
from argus_edge.exporters.source import resolve, shipped_models
from argus_edge.schema.bundle import ImagePreprocess, ParityLimits

FLOATS = arrays.arrays(np.float32, st.integers(1, 20), elements=st.floats(-1e3, 1e3, width=32))


@given(FLOATS, st.floats(0.001, 1000))
def test_cosine_ignores_scale_and_sees_sign(x, factor):
    expected = 1.0 if np.any(x) else cosine(x, x)
    assert cosine(x, x * factor) == pytest.approx(expected, abs=1e-6)
    if np.any(x):
        assert cosine(x, -x) == pytest.approx(-1.0, abs=1e-6)


def test_cosine_of_zeros_and_of_what_is_not_a_number():
    zero, one = np.zeros(3), np.ones(3)
    assert cosine(zero, zero) == 1.0
    assert cosine(zero, one) == 0.0
    assert np.isnan(cosine(one, np.array([1, np.nan, 1])))
    assert cosine(np.full(3, 1e300), np.full(3, 1e300)) == pytest.approx(1.0)


def test_an_output_that_is_not_a_number_or_of_another_shape_fails():
    limits = ParityLimits(cosine=0.5)
    reference = np.ones((2, 3), np.float32)
    assert compare_output("y", 0, reference, reference, limits).passed
    broken = reference.copy()
    broken[1, 1] = np.nan
    assert not compare_output("y", 0, reference, broken, limits).passed
    assert not compare_output("y", 0, reference, reference[:, :2], limits).passed


def test_the_worst_sample_decides():
    reference = np.array([[1.0, 0.0], [1.0, 0.0]])
    actual = np.array([[1.0, 0.0], [0.0, 1.0]])
    figure = compare_output("y", 0, reference, actual, ParityLimits(cosine=0.9))
    assert figure.cosine == 0.0
    assert figure.mean_cosine == 0.5
    assert not figure.passed


def dequantise(values, scales, zeros, columns):
    rows, blocks, _ = values.shape
    q = torch.stack([values & 15, values >> 4], dim=-1).reshape(rows, blocks, -1).float()
    z = torch.stack([zeros & 15, zeros >> 4], dim=-1).reshape(rows, -1)[:, :blocks].float()
    return ((q - z[..., None]) * scales[..., None]).reshape(rows, -1)[:, :columns]


@settings(max_examples=50)
@given(st.integers(1, 5), st.integers(1, 100), st.integers(0, 2**31), st.floats(1e-3, 1e3))
def test_4_bit_blocks_are_within_half_a_step_of_the_weights(rows, columns, seed, scale):
    weight = torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed)) * scale
    values, scales, zeros = quantise_blockwise(weight)
    assert values.shape == (rows, -(-columns // BLOCK), BLOCK // 2)
    error = (dequantise(values, scales, zeros, columns) - weight).abs()
    # Half a step for the value, half a step for the zero point.
    steps = scales.repeat_interleave(BLOCK, dim=1)[:, :columns]
    assert (error <= steps * 1.0001).all()


def test_4_bit_blocks_of_zeros_stay_zeros():
    values, scales, zeros = quantise_blockwise(torch.zeros(2, 40))
    assert not dequantise(values, scales, zeros, 40).any()


def test_a_causal_mask_with_past_padding_window_and_image():
    attention = torch.tensor([[0, 1, 1, 1, 1]])
    seen = additive_mask(attention, 3)[0, 0] == 0
    assert seen.tolist() == [[False, True, True, False, False], [False, True, True, True, False], [False] + [True] * 4]
    near = additive_mask(attention, 3, window=2)[0, 0] == 0
    assert near[2].tolist() == [False, False, False, True, True]
    image = additive_mask(attention, 3, blocks=torch.tensor([[0, 0, -1]]))[0, 0] == 0
    assert image[0].tolist() == [False, True, True, True, False]


def test_positions_leave_padding_out():
    assert positions(torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]]), 2).tolist() == [[0, 1], [2, 3]]


def test_images_are_told_apart_and_put_in_their_places():
    ids = torch.tensor([[7, 9, 9, 7, 9]])
    assert image_blocks(ids == 9).tolist() == [[-1, 0, 0, -1, 1]]
    embeds, features = torch.zeros(1, 5, 2), torch.arange(1, 7).reshape(3, 2).float()
    assert put_images(embeds, ids == 9, features)[0, :, 0].tolist() == [0, 1, 3, 0, 5]
    assert not put_images(embeds, ids == 99, features[:0]).any()


def test_large_components_get_fewer_samples_and_always_one():
    assert samples_per_case("int8", [10, 10, 10], 1) == [32, 1, 1]
    assert samples_per_case("fp32", [10, 10, 10], 1) == [4, 1, 1]
    assert samples_per_case("int8", [10**11, 10**11, 10**11], 0) == [8, 1, 1]
    assert samples_per_case("int8", [10, 10, 10], 10**9) == [17, 1, 1]
    assert samples_per_case("int8", [10**13, 10**13, 1], 1) == [1, 0, 0]


@pytest.mark.parametrize("name", shipped_models())
def test_shipped_configurations_need_no_hub(name):
    source = resolve(name, random_weights=True)
    assert source.location is None
    by_hub_id = resolve(shipped_models()[name]["hub_id"], random_weights=True)
    assert by_hub_id.architecture == source.architecture


@pytest.mark.parametrize(
    ("name", "millions"),
    # As published, with their sources: docs/profiles.md. BLIP's 247.4 M count its tied vocabulary (23.4 M) twice.
    [
        ("clip-vit-b32", 151.3),
        ("blip-captioning-base", 247.4 - 23.4),
        ("lxmert-vqa", 213.9),
        ("gemma-3-4b", 4300.1),
        ("qwen2.5-vl-3b", 3754.6),
    ],
)
def test_shipped_configurations_have_the_published_size(name, millions):
    from argus_edge.exporters.capacity import parameter_count
    from argus_edge.exporters.export import family_of

    source = resolve(name, random_weights=True)
    assert parameter_count(source, family_of(source)) / 1e6 == pytest.approx(millions, abs=0.1)


@pytest.mark.parametrize("size", [(50, 70), (300, 600), (31, 33)])
def test_calibration_images_are_prepared_as_the_processor_does(tmp_path, size):
    from PIL import Image
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8))
    picture.save(tmp_path / "a.png")
    spec = ImagePreprocess(
        height=32,
        width=32,
        resize="shortest-edge-then-centre-crop",
        resample="bicubic",
        rescale=1 / 255,
        mean=[0.48145466, 0.4578275, 0.40821073],
        std=[0.26862954, 0.26130258, 0.27577711],
        layout="NCHW",
    )
    processor = CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    theirs = processor(images=picture, return_tensors="np")["pixel_values"][0]
    np.testing.assert_allclose(prepare_image(tmp_path / "a.png", spec), theirs, atol=1e-5)
    found = load_calibration(tmp_path, spec, tmp_path)
    assert len(found.images) == 1
    assert found
