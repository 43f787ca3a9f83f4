"""Device profiles: every built-in one is whole and sourced; matching, aliases, modes; the user's own files."""

from __future__ import annotations

import pytest
import yaml

from argus_edge.devices import profiles
from argus_edge.errors import InputError, UsageError
from argus_edge.schema.agent import DeviceFacts

BUILT_IN = [
    "a100",
    "a100-40gb",
    "cm5",
    "generic-linux",
    "jetson-nano",
    "jetson-orin-nano",
    "jetson-orin-nano-4gb",
    "jetson-orin-nano-4gb-jp5",
    "jetson-orin-nano-4gb-jp7",
    "jetson-orin-nano-jp5",
    "jetson-orin-nano-jp7",
    "pi5",
]
GIB = 1 << 30


@pytest.fixture(autouse=True)
def config(tmp_path, monkeypatch):
    """The user's config folder, empty."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "argus-edge" / "profiles"
    folder.mkdir(parents=True)
    return folder


def facts(**known):
    return DeviceFacts(wire=1, arch="aarch64", python="3.11.2", **known)


def test_built_in_names():
    assert profiles.names() == BUILT_IN


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_figure_has_its_source(name):
    profile = profiles.load(name)
    assert profile.name == name
    for sourced in [*profile.peaks, *profile.power_modes, *profile.runtimes]:
        assert len(sourced.source) > 10
    for figure in (profile.bandwidth_bytes_s, profile.throttle_temperature_c):
        assert figure is None or figure.source
    assert profile.sensors
    assert profile.throttle
    for runtime in profile.runtimes:
        assert runtime.install


@pytest.mark.parametrize("name", BUILT_IN)
def test_sensors_are_ones_that_the_agent_has(name):
    sensors = pytest.importorskip("argus_edge.agents.sensors")
    assert set(profiles.load(name).sensors) <= set(sensors.MODULES)


@pytest.mark.parametrize("name", BUILT_IN)
def test_peaks_of_a_mode_agree_with_its_clock(name):
    profile = profiles.load(name)
    for peak in profile.peaks:
        mode = profiles.power_mode(profile, peak.mode)
        assert (mode is None) == (peak.mode is None)
        if mode and mode.gpu_max_clock_khz:
            assert peak.max_clock_khz == mode.gpu_max_clock_khz


@pytest.mark.parametrize(
    ("name", "unit", "dtype", "gflops"),
    # Published figures: field notes for the small boards, NVIDIA's data sheets for the others.
    [
        ("pi5", "cpu", "fp32", 154),
        ("jetson-nano", "cpu", "fp32", 46),
        ("jetson-nano", "gpu", "fp32", 236),
        ("jetson-nano", "gpu", "fp16", 472),
        ("jetson-orin-nano", "gpu", "int8", 33_400),
        ("a100", "gpu", "fp32", 19_500),
        ("a100", "gpu", "fp16", 312_000),
        ("a100", "gpu", "int8", 624_000),
    ],
)
def test_peaks_are_half_of_the_published_flops(name, unit, dtype, gflops):
    peak = next(profiles.peaks(profiles.load(name), unit=unit, dtype=dtype))
    assert 2 * peak.gmacs == pytest.approx(gflops, rel=0.01)


def test_peaks_follow_the_mode_and_are_highest_first_where_it_is_unknown():
    orin = profiles.load("jetson-orin-nano")
    assert [p.mode for p in profiles.peaks(orin, unit="gpu", dtype="fp16", mode="NV Power Mode: 15W")] == ["15W"]
    assert [p.mode for p in profiles.peaks(orin, unit="gpu", dtype="fp16")] == ["MAXN_SUPER", "25W", "15W", "7W"]
    assert [p.mode for p in profiles.peaks(orin, unit="cpu", dtype="fp32", mode="25W")] == [None]


def test_bandwidth_follows_the_mode():
    orin = profiles.load("jetson-orin-nano")
    assert profiles.bandwidth_bytes_s(orin, "MODE_15W") == 68.3e9
    assert profiles.bandwidth_bytes_s(orin, None) == 102.4e9
    assert profiles.bandwidth_bytes_s(profiles.load("pi5"), "whatever") == 17.1e9
    assert profiles.bandwidth_bytes_s(profiles.load("generic-linux")) is None


@pytest.mark.parametrize(
    ("model", "firmware", "gigabytes", "name"),
    [
        ("Raspberry Pi 5 Model B Rev 1.0", None, 8.4, "pi5"),
        ("Raspberry Pi 500 Rev 1.0", None, 8.4, "pi5"),
        ("Raspberry Pi Compute Module 5 Rev 1.0", None, 4.1, "cm5"),
        ("NVIDIA Jetson Nano Developer Kit", "R32.7.1", 4.1, "jetson-nano"),
        ("NVIDIA Orin Nano Developer Kit", "R35.4.1", 7.8, "jetson-orin-nano-jp5"),
        ("NVIDIA Orin Nano Developer Kit", "R35.4.1", 3.9, "jetson-orin-nano-4gb-jp5"),
        ("NVIDIA Jetson Orin Nano Developer Kit", "R36.4.3", 7.9, "jetson-orin-nano"),
        ("NVIDIA Jetson Orin Nano Developer Kit", "R36.4.3", 3.9, "jetson-orin-nano-4gb"),
        ("NVIDIA Jetson Orin Nano Engineering Reference Developer Kit Super", "R39.2", 7.9, "jetson-orin-nano-jp7"),
        ("NVIDIA Jetson Orin Nano Developer Kit", "R39.2", 3.9, "jetson-orin-nano-4gb-jp7"),
        ("Standard PC (Q35 + ICH9, 2009)", None, 25.0, "generic-linux"),
        (None, None, None, "generic-linux"),
    ],
)
def test_match(model, firmware, gigabytes, name):
    memory = gigabytes and int(gigabytes * 1e9)
    assert profiles.match(facts(model=model, firmware=firmware, memory_total_bytes=memory)).name == name


@pytest.mark.parametrize(("gpu", "name"), [("NVIDIA A100-SXM4-40GB", "a100-40gb"), ("NVIDIA A100 80GB PCIe", "a100")])
def test_match_by_gpu(gpu, name):
    assert profiles.match(facts(model="PowerEdge", gpu=gpu, memory_total_bytes=512 * GIB)).name == name


def test_aliases():
    assert profiles.load("rpi5").name == "pi5"
    assert profiles.load("orin-nano-jp7").name == "jetson-orin-nano-jp7"


def test_no_alias_stands_for_two_profiles():
    every = [alias for profile in profiles.load_all().values() for alias in [profile.name, *profile.aliases]]
    assert len(every) == len(set(every))


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(UsageError, match="no device profile 'pi6'") as caught:
        profiles.load("pi6")
    assert "pi5" in caught.value.next_step


def test_user_profile_extends_a_built_in_one(config):
    text = "extends: pi5\nname: pi5-fast\ntitle: Ours\nmatch: [Raspberry Pi 5 Model B Rev 1.1]\n"
    (config / "pi5-fast.yaml").write_text(text)
    profile = profiles.load("pi5-fast")
    assert profile.title == "Ours"
    assert profile.peaks == profiles.load("pi5").peaks
    assert profile.aliases == []
    assert profiles.match(facts(model="Raspberry Pi 5 Model B Rev 1.1")).name == "pi5-fast"


def test_user_profile_may_stand_for_the_built_in_one_it_extends(config):
    (config / "pi5.yaml").write_text("extends: pi5\ntitle: The lab's Pi\n")
    assert profiles.load("pi5").title == "The lab's Pi"
    assert profiles.load("cm5").cores == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("extends: b\nname: a\n", "no such profile"),
        ("extends: a\nname: a\n", "extends itself"),
        ("name: other\ntitle: t\narch: any\n", "not the file's name"),
        ("name: a\ntitle: t\narch: any\ncoers: 4\n", "coers"),
        ("name: a\ntitle: t\narch: any\npeaks: [{unit: cpu, dtype: fp32, gmacs: -1, source: s}]\n", "gmacs"),
        ("name: [", "Not a YAML document"),
        ("- a\n", "mapping"),
        ("name: !!python/object/apply:os.system [true]\n", "Not a YAML document"),
    ],
)
def test_faulty_user_profile(config, text, message):
    (config / "a.yaml").write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        profiles.load("a")
    assert "a.yaml" in caught.value.where


def test_circle(config):
    (config / "a.yaml").write_text("extends: b\nname: a\n")
    (config / "b.yaml").write_text("extends: a\nname: b\n")
    with pytest.raises(InputError, match="extends itself"):
        profiles.load("a")


def test_a_faulty_file_does_not_hide_the_other_profiles(config):
    (config / "a.yaml").write_text("extends: pi5\nname: a\nnonsense: true\n")
    assert profiles.load("pi5").name == "pi5"
    with pytest.raises(InputError, match="nonsense"):
        profiles.load_all()


def test_the_config_folder_is_the_inventorys(config, tmp_path, monkeypatch):
    monkeypatch.setenv("ARGUS_EDGE_CONFIG", str(tmp_path / "lab"))
    (tmp_path / "lab/profiles").mkdir(parents=True)
    (tmp_path / "lab/profiles/mine.yaml").write_text("extends: pi5\nname: mine\n")
    assert profiles.load("mine").cores == 4


def test_file_outside_the_config_folder(tmp_path):
    path = tmp_path / "lab.yaml"
    path.write_text(yaml.safe_dump({"extends": "pi5", "name": "lab", "cores": 2}))
    assert profiles.load_file(path).cores == 2
