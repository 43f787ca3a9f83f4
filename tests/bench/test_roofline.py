"""The roofline: the floor of known boards, scaled to what ran, and what is said where there is none."""

import pytest

from argus_edge.bench.roofline import roofline
from argus_edge.devices.profiles import load

CLIP_MACS = 4.4e9
RESNET_MACS = 4.09e9


def on(profile, **changes):
    values = {
        "macs": CLIP_MACS,
        "traffic_bytes": 350e6,
        "precision": "fp32",
        "provider": "cpu",
        "threads": None,
        "clock_khz": None,
        "mode": None,
        "p50_s": 0.1,
    }
    return roofline(profile=load(profile), **{**values, **changes})


def test_clips_image_tower_on_a_pi5():
    # 4.4 GMAC at 76.8 GMAC/s: 57 ms, the field's published floor.
    found = on("pi5")
    assert found.floor_s == pytest.approx(0.0573, rel=0.01)
    assert found.bound == "compute"
    assert found.share == pytest.approx(0.573, rel=0.01)
    assert found.memory_s == pytest.approx(350e6 / 17.1e9)
    assert "76.8 GMAC/s fp32" in found.peak
    assert found.warning is None


def test_threads_and_clock_scale_the_peak():
    assert on("pi5", threads=2).floor_s == pytest.approx(2 * 0.0573, rel=0.01)
    assert on("pi5", clock_khz=1_200_000).floor_s == pytest.approx(2 * 0.0573, rel=0.01)
    assert on("pi5", threads=64).floor_s == pytest.approx(0.0573, rel=0.01)


def test_a_figure_below_the_floor_is_explained():
    # ncnn's published ResNet-50 on a Pi 5 beats the naive floor by Winograd and fp16.
    found = on("pi5", macs=RESNET_MACS, p50_s=0.0462)
    assert found.share > 1
    assert "Winograd" in found.warning


def test_a_memory_bound_model():
    found = on("pi5", macs=1e9, traffic_bytes=1.7e9, p50_s=0.01)
    assert found.bound == "memory"
    assert "cache" in found.warning


def test_no_known_peak_no_roofline():
    found = on("generic-linux")
    assert found.floor_s is None
    assert "no known fp32 peak" in found.reason
    assert on("pi5", macs=None).reason == "the MACs of this model are not known"


def test_a_gpu_has_its_own_peak():
    assert on("jetson-nano", provider="cuda").floor_s < on("jetson-nano").floor_s
