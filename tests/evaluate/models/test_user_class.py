"""A user's own class: found in the working folder, asked for what it can do, its mistakes shown."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from argus_edge.errors import InputError
from argus_edge.evaluate.models import capabilities_of, load_model
from argus_edge.evaluate.models.resolve import resolve_model

GOOD = """
import numpy as np

class Tiny:
    precision = "int8"

    def __init__(self, compute="cpu"):
        self.compute = compute

    def embed_images(self, images):
        return np.ones((len(images), 2))

    def embed_texts(self, texts):
        return np.ones((len(texts), 2))

class Nothing:
    pass

class Broken:
    def __init__(self):
        raise RuntimeError("no weights here")

class Leaves:
    def __init__(self):
        raise SystemExit(3)

class Forgetful(Tiny):
    @classmethod
    def fingerprint(cls):
        raise OSError("no file")

from math import sqrt
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_models.py").write_text(GOOD)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("my_models", None)


def test_a_class_is_found_in_the_working_folder(module):
    found = resolve_model("my_models:Tiny", threads=1)
    assert (found.spec.kind, found.precision) == ("class", "int8")
    model = load_model(found.spec)
    assert capabilities_of(model) == ("embed",)
    assert model.compute == "cpu"
    assert np.asarray(model.embed_texts(["a"])).shape == (1, 2)


def test_its_hash_follows_its_source(module):
    before = resolve_model("my_models:Tiny", threads=1).sha256
    sys.modules.pop("my_models")
    (module / "my_models.py").write_text(GOOD + "\nVERSION = 2\n")
    assert resolve_model("my_models:Tiny", threads=1).sha256 != before


def test_a_module_that_leaves_the_process_is_an_error(module):
    (module / "leaving.py").write_text("import sys\nsys.exit(7)\n")
    with pytest.raises(InputError, match="SystemExit: 7"):
        resolve_model("leaving:Tiny", threads=1)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("no_such_module:Tiny", "No module"),
        ("my_models:Missing", "no class"),
        ("my_models:Nothing", "none of"),
        ("my_models:Broken", "no weights here"),
        ("my_models:Leaves", "SystemExit: 3"),
        ("my_models:Forgetful", r"fingerprint\(\) fails: OSError: no file"),
        ("my_models:sqrt", "not a class of yours"),
    ],
)
def test_mistakes_are_named(module, reference, message):
    with pytest.raises(InputError, match=message):
        load_model(resolve_model(reference, threads=1).spec)
