"""TFLite files: converted at fixed shapes, run in LiteRT, compared, quantised; what does not hold is refused."""

import pytest

pytest.importorskip("torch", reason="needs the export extra")
pytest.importorskip("transformers", minversion="5", reason="the families need transformers 5")
pytest.importorskip("litert_torch", reason="needs the tflite extra, in an environment of its own")

from argus_edge.bundles import bundle_path, load_golden, read_bundle
from argus_edge.exporters.parity import LIMITS, cosine
from argus_edge.exporters.tflite_format import _interpreter

# litert-torch takes half a minute for each component.
pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("family", "precision"),
    [
        ("clip", "fp32"),
        ("clip", "fp16"),
        ("clip", "int8"),
        ("blip", "fp32"),
        ("lxmert", "fp32"),
        ("gemma3", "fp32"),
        ("qwen2_5_vl", "fp32"),
    ],
)
def test_a_family_as_tflite(exported, family, precision):
    folder, manifest = exported(family, precision=precision, format="tflite")
    assert read_bundle(folder) == manifest
    assert manifest.parity_passed
    for component in manifest.components:
        assert component.format == "tflite"
        assert component.dims == []
        assert all(isinstance(axis, int) for spec in component.inputs for axis in spec.shape)
        case = component.golden[0]
        inputs, outputs = load_golden(folder, case)
        run = _interpreter(bundle_path(folder, component.file)).get_signature_runner()
        found = run(**{name: array[0] for name, array in inputs.items()})
        for spec in component.outputs:
            assert cosine(found[spec.name], outputs[spec.name][0]) >= component.parity.limits.cosine


def test_static_quantisation_is_within_limits_or_marked(exported):
    # It can fail silently: the converter says nothing, the comparison does.
    folder, manifest = exported(
        "clip", precision="int8-static", format="tflite", random_weights=True, allow_parity_fail=True
    )
    assert read_bundle(folder) == manifest
    figures = [figure for component in manifest.components for figure in component.parity.figures]
    assert manifest.parity_passed == all(figure.cosine >= LIMITS["int8-static"].cosine for figure in figures)
    assert manifest.parity_passed or any("parity failed" in warning for warning in manifest.warnings)
