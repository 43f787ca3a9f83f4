"""Tiny models and their bundles, made once a session; what they need is imported when a test asks for it."""

import os

import pytest

# What a test does must not depend on what a hub answers today; read when huggingface_hub is imported.
os.environ.setdefault("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """name -> folder of a saved tiny model; made when first asked for."""
    root = tmp_path_factory.mktemp("tiny")

    def make(name):
        folder = root / name
        if not folder.exists():
            from tests.exporters.tiny_models import save

            save(name, folder)
        return folder

    return make


@pytest.fixture(scope="session")
def exported(tiny, tmp_path_factory):
    """(name, options…) -> (folder, manifest) of an exported tiny model; each made once."""
    from argus_edge.exporters.export import ExportOptions, export_model

    made = {}

    def make(name, **options):
        key = (name, tuple(sorted(options.items())))
        if key not in made:
            out = tmp_path_factory.mktemp("bundle") / name
            made[key] = out, export_model(ExportOptions(model=str(tiny(name)), out=out, **options))
        return made[key]

    return make


@pytest.fixture(scope="session")
def pictures(tmp_path_factory):
    """A folder of small pictures to calibrate on."""
    import numpy as np
    from PIL import Image

    folder = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    for index in range(8):
        Image.fromarray(rng.integers(0, 256, (40, 50, 3), np.uint8)).save(folder / f"{index}.png")
    return folder
