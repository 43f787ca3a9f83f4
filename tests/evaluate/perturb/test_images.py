"""Image perturbations: the same bytes in any order, stronger with severity, and bearing any image."""

from __future__ import annotations

import subprocess
import sys
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from argus_edge.errors import InputError, UsageError
from argus_edge.evaluate.perturb import IMAGE_PERTURBATIONS, SEVERITIES, perturb_image
from argus_edge.evaluate.perturb.apply import generator
from argus_edge.evaluate.perturb.blur import _scatter
from argus_edge.evaluate.perturb.plasma import plasma

RANDOM = ("gaussian_noise", "motion_blur", "glass_blur", "snow", "frost", "fog", "elastic_transform", "spatter")


def psnr(image: np.ndarray, changed: np.ndarray) -> float:
    return float(10 * np.log10(255**2 / np.mean((image.astype(np.float64) - changed) ** 2)))


@pytest.mark.parametrize("name", IMAGE_PERTURBATIONS)
def test_the_shape_and_the_input_are_kept(name: str, picture: np.ndarray) -> None:
    before = picture.copy()
    for severity in SEVERITIES:
        changed = perturb_image(picture, name, severity, "one")
        assert changed.shape == picture.shape
        assert changed.dtype == np.uint8
        assert not np.array_equal(changed, picture)
    np.testing.assert_array_equal(picture, before)


@pytest.mark.parametrize("name", IMAGE_PERTURBATIONS)
def test_the_item_alone_decides(name: str, picture: np.ndarray) -> None:
    first = perturb_image(picture, name, 3, "one", seed=7)
    for other in IMAGE_PERTURBATIONS:
        perturb_image(picture[:20, :20], other, 2, "two", seed=7)
    np.testing.assert_array_equal(perturb_image(picture, name, 3, "one", seed=7), first)


@pytest.mark.parametrize("name", RANDOM)
def test_items_and_seeds_differ(name: str, picture: np.ndarray) -> None:
    results = [perturb_image(picture, name, 3, item, seed) for item, seed in (("one", 0), ("two", 0), ("one", 1))]
    assert not np.array_equal(results[0], results[1])
    assert not np.array_equal(results[0], results[2])


def test_another_process_gives_the_same_bytes(picture: np.ndarray) -> None:
    code = (
        "import sys, zlib, numpy as np\nfrom argus_edge.evaluate.perturb import IMAGE_PERTURBATIONS, perturb_image\n"
        "image = np.frombuffer(sys.stdin.buffer.read(), np.uint8).reshape(120, 160, 3)\n"
        "print([zlib.crc32(perturb_image(image, name, 4, 'x', 3).tobytes()) for name in reversed(IMAGE_PERTURBATIONS)])"
    )
    code = code.replace("reversed(IMAGE_PERTURBATIONS)", "reversed(list(IMAGE_PERTURBATIONS))")
    run = subprocess.run([sys.executable, "-c", code], input=picture.tobytes(), capture_output=True, check=True)
    here = [zlib.crc32(perturb_image(picture, name, 4, "x", 3).tobytes()) for name in list(IMAGE_PERTURBATIONS)[::-1]]
    assert run.stdout.decode().strip() == str(here)


@pytest.mark.parametrize(
    "name", [name for name in IMAGE_PERTURBATIONS if name not in ("saturate", "glass_blur", "frost")]
)
def test_a_higher_severity_is_further_from_the_image(name: str, picture: np.ndarray) -> None:
    figures = [
        np.mean([psnr(picture, perturb_image(picture, name, severity, str(item))) for item in range(4)])
        for severity in SEVERITIES
    ]
    assert figures[0] > figures[2] > figures[4] - 0.5, figures


@pytest.mark.parametrize("name", IMAGE_PERTURBATIONS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (2, 3), (17, 5), (33, 200)])
def test_small_and_thin_images_are_borne(name: str, shape: tuple[int, int]) -> None:
    image = np.random.default_rng(0).integers(0, 256, (*shape, 3), np.uint8)
    for severity in SEVERITIES:
        assert perturb_image(image, name, severity, "small").shape == image.shape


@pytest.mark.parametrize("name", IMAGE_PERTURBATIONS)
@pytest.mark.parametrize("level", [0, 128, 255])
def test_flat_images_are_borne(name: str, level: int) -> None:
    image = np.full((40, 50, 3), level, np.uint8)
    for severity in SEVERITIES:
        perturb_image(image, name, severity, "flat")


@settings(max_examples=30)
@given(
    image=arrays(np.uint8, st.tuples(st.integers(1, 30), st.integers(1, 30), st.just(3))), severity=st.integers(1, 5)
)
def test_any_image_is_borne(image: np.ndarray, severity: int) -> None:
    for name in IMAGE_PERTURBATIONS:
        assert perturb_image(image, name, severity, "any").shape == image.shape


def test_a_view_that_is_not_contiguous_is_borne(picture: np.ndarray) -> None:
    turned = picture[::-1, ::2]
    np.testing.assert_array_equal(
        perturb_image(turned, "pixelate", 2, "x"), perturb_image(turned.copy(), "pixelate", 2, "x")
    )


def test_contrast_at_known_values() -> None:
    image = np.zeros((1, 2, 3), np.uint8)
    image[0, 1] = 200
    np.testing.assert_array_equal(perturb_image(image, "contrast", 1, "x")[0, :, 0], [60, 140])


def test_brightness_keeps_hue_and_saturation() -> None:
    image = np.array([[[100, 50, 0], [0, 0, 0]]], np.uint8)
    np.testing.assert_array_equal(perturb_image(image, "brightness", 3, "x"), [[[176, 88, 0], [76, 76, 76]]])


def test_saturate_turns_to_grey_and_to_full_colour() -> None:
    image = np.array([[[200, 100, 100], [90, 90, 90]]], np.uint8)
    np.testing.assert_array_equal(perturb_image(image, "saturate", 2, "x")[0], [[200, 190, 190], [90, 90, 90]])
    np.testing.assert_array_equal(perturb_image(image, "saturate", 5, "x")[0], [[200, 0, 0], [90, 72, 72]])


def test_noise_has_the_strength_it_says() -> None:
    grey = np.full((400, 400, 3), 128, np.uint8)
    assert perturb_image(grey, "gaussian_noise", 1, "x").std() == pytest.approx(0.08 * 255, rel=0.01)
    assert perturb_image(grey, "speckle_noise", 1, "x").std() == pytest.approx(0.15 * 128, rel=0.01)
    assert perturb_image(grey, "shot_noise", 1, "x").std() == pytest.approx((128 / 255 / 60) ** 0.5 * 255, rel=0.02)
    changed = perturb_image(grey, "impulse_noise", 5, "x")
    assert np.mean(changed == 255) == pytest.approx(0.135, rel=0.03)
    assert np.mean(changed == 0) == pytest.approx(0.135, rel=0.03)


def test_the_noise_of_a_higher_severity_is_the_same_noise_stronger() -> None:
    grey = np.full((50, 50, 3), 128, np.uint8)
    weak, strong = (perturb_image(grey, "gaussian_noise", severity, "x").astype(int) - 128 for severity in (1, 3))
    assert np.corrcoef(weak.ravel(), strong.ravel())[0, 1] > 0.99


def test_glass_goes_through_the_pixels_one_by_one() -> None:
    """All chains at once give what the loop over the pixels gives, from the last to the first."""
    for height, width, reach in ((12, 17, 1), (30, 25, 3), (9, 9, 4), (3, 40, 1)):
        found = _scatter(height, width, reach, generator("glass_blur", "x", 0))
        rows, columns = range(height - reach, reach, -1), range(width - reach, reach, -1)
        steps = generator("glass_blur", "x", 0).integers(-reach, reach, size=(2, len(rows) * len(columns)))
        # The loop draws in its own order; the steps lie in the order of the pixels.
        places = [(row, column) for row in reversed(rows) for column in reversed(columns)]
        step_of = {place: (steps[0, k], steps[1, k]) for k, place in enumerate(places)}
        pixels = np.arange(height * width).reshape(height, width)
        for row in rows:
            for column in columns:
                dy, dx = step_of[row, column]
                pixels[row, column] = pixels[row + dy, column + dx]
        np.testing.assert_array_equal(found.reshape(height, width), pixels)


def test_plasma_is_a_map_from_0_to_1_rougher_with_less_decay() -> None:
    maps = {decay: plasma(128, decay, generator("fog", "x", 0)) for decay in (1.4, 2.0)}
    roughness = {decay: np.abs(np.diff(field, axis=0)).mean() for decay, field in maps.items()}
    for field in maps.values():
        assert (field.min(), field.max()) == (0, 1)
    assert roughness[1.4] > 2 * roughness[2.0]


@pytest.mark.parametrize("severity", [0, 6, -1])
def test_a_severity_outside_1_to_5_is_an_error(severity: int, picture: np.ndarray) -> None:
    with pytest.raises(UsageError, match="severity"):
        perturb_image(picture, "fog", severity, "x")


def test_an_unknown_name_is_an_error_that_lists_the_known(picture: np.ndarray) -> None:
    with pytest.raises(UsageError) as caught:
        perturb_image(picture, "fogg", 1, "x")
    assert "fog" in (caught.value.next_step or "")


@pytest.mark.parametrize(
    "image", [np.zeros((4, 4)), np.zeros((4, 4, 3)), np.zeros((4, 4, 4), np.uint8), np.zeros((0, 4, 3), np.uint8)]
)
def test_other_arrays_are_an_error(image: np.ndarray) -> None:
    with pytest.raises(InputError):
        perturb_image(image, "fog", 1, "x")
