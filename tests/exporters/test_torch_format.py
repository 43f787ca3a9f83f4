"""Torch exported programs: saved, loaded again, compared at three shapes."""

import pytest

torch = pytest.importorskip("torch", reason="needs the export extra")
pytest.importorskip("transformers", minversion="5", reason="the families need transformers 5")

from argus_edge.bundles import read_bundle
from argus_edge.errors import UsageError
from argus_edge.exporters.export import ExportOptions, export_model, family_of
from argus_edge.exporters.format import example_inputs
from argus_edge.exporters.source import resolve
from argus_edge.exporters.torch_format import HalfPiece
from argus_edge.exporters.weights import load_model
from tests.exporters.test_families import FAMILIES


@pytest.mark.slow
@pytest.mark.timeout(900)  # torch takes up to a minute of the processor to trace a decoder
@pytest.mark.parametrize(
    ("family", "precision"),
    [(family, "fp32") for family in FAMILIES] + [(family, "fp16") for family in ("clip", "blip", "qwen2_5_vl")],
)
def test_a_family_as_an_exported_program(exported, family, precision):
    folder, manifest = exported(family, precision=precision, format="torch")
    assert read_bundle(folder) == manifest
    assert manifest.parity_passed
    for component in manifest.components:
        assert component.file.path.endswith(".pt2")
        assert len(component.golden) == 3
        # A vocabulary that is tied to the table of embeddings is counted once; Qwen's vision holds tables of positions.
        weights = component.params * (4 if precision == "fp32" else 2)
        assert weights <= component.weight_bytes < (1.01 if component.role == "decoder" else 1.5) * weights
        assert component.ops


@torch.no_grad()
@pytest.mark.parametrize("family", FAMILIES)
def test_arithmetic_in_fp16_is_of_one_type_throughout(tiny, family):
    """BLIP's masks were float32 once, and lifted the scores out of fp16: no product with the values was possible."""
    source = resolve(str(tiny(family)))
    split = family_of(source)
    model = load_model(source, split, torch.float32)
    for plan in split.components():
        outputs = HalfPiece(plan.build(model), plan)(*example_inputs(plan, plan.cases[-1]))
        for spec, tensor in zip(plan.outputs, outputs, strict=True):
            assert tensor.dtype == torch.float32, spec.name
            assert torch.isfinite(tensor).all(), spec.name


def test_a_precision_that_the_format_has_not(tiny, tmp_path):
    with pytest.raises(UsageError, match="not written in int4"):
        export_model(ExportOptions(model=str(tiny("clip")), out=tmp_path / "b", format="torch", precision="int4"))
