"""Torch exported programs: saved, loaded again, compared at three shapes."""

import pytest

pytest.importorskip("torch", reason="needs the export extra")
pytest.importorskip("transformers", minversion="5", reason="the families need transformers 5")

from argus_edge.bundles import read_bundle
from argus_edge.errors import UsageError
from argus_edge.exporters.export import ExportOptions, export_model


@pytest.mark.slow
@pytest.mark.parametrize(("family", "precision"), [("clip", "fp32"), ("clip", "fp16"), ("gemma3", "fp32")])
def test_a_family_as_an_exported_program(exported, family, precision):
    folder, manifest = exported(family, precision=precision, format="torch")
    assert read_bundle(folder) == manifest
    assert manifest.parity_passed
    for component in manifest.components:
        assert component.file.path.endswith(".pt2")
        assert len(component.golden) == 3
        assert component.weight_bytes > 0
        assert component.ops


def test_a_precision_that_the_format_has_not(tiny, tmp_path):
    with pytest.raises(UsageError, match="not written in int4"):
        export_model(ExportOptions(model=str(tiny("clip")), out=tmp_path / "b", format="torch", precision="int4"))
