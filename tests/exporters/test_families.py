"""Every family at tiny size, in every precision that a board's runtime takes: exported, run, compared, counted."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the export extra")
pytest.importorskip("transformers", minversion="5", reason="the families need transformers 5")

from argus_edge.bundles import load_golden, read_bundle
from argus_edge.errors import InputError
from argus_edge.exporters import onnx_precision
from argus_edge.exporters.export import ExportOptions, export_model
from argus_edge.exporters.golden import QUANTISED_SAMPLES
from argus_edge.exporters.parity import LIMITS

FAMILIES = ("clip", "blip", "blip-itm", "lxmert", "gemma3", "qwen2_5_vl")
# onnxruntime 1.10 on the Jetson Nano: opset 15, no 4-bit kernels.
OLD = [(family, precision, 15) for family in FAMILIES for precision in ("fp32", "fp16", "int8", "int8-static")]
# Newer runtimes: the other exporter, and 4-bit weights.
NEW = [(family, precision, 18) for family in FAMILIES for precision in ("fp32", "int4")]
QUICK = {("clip", "int8", 15), ("qwen2_5_vl", "fp32", 15)}


@pytest.mark.timeout(900)  # seconds on a machine of its own; on a busy one a decoder takes minutes to be traced
@pytest.mark.parametrize(
    ("family", "precision", "opset"),
    [
        pytest.param(
            *case,
            id="-".join(map(str, case)),
            marks=[] if case in QUICK else [pytest.mark.slow],
        )
        for case in OLD + NEW
    ],
)
def test_a_family_in_a_precision(exported, pictures, family, precision, opset):
    options = {}
    if precision == "int8-static":
        # LXMERT has no image input, and the tiny models have no tokenizer: it is calibrated on made-up inputs.
        options = {"random_weights": True} if family == "lxmert" else {"calibration": pictures}
    folder, manifest = exported(family, precision=precision, opset=opset, **options)
    assert read_bundle(folder) == manifest
    assert manifest.parity_passed
    for component in manifest.components:
        assert component.precision == precision
        assert component.opset == opset
        assert component.ir_version <= (8 if opset == 15 else 10)
        assert len(component.golden) == 3
        assert component.parity.passed
        assert component.parity.limits == LIMITS[precision]
        for count in component.macs:
            assert count.macs > 0
            if family != "lxmert":  # answers need no vision output: its last layers are dead code, and not exported
                assert count.by_counter["onnx_graph"] == pytest.approx(count.macs, rel=0.05)
            assert count.disagreement <= 0.02 or count.explanation


def test_quantised_bundles_carry_enough_samples_for_a_board_to_judge(exported):
    folder, manifest = exported("clip", precision="int8", opset=15)
    case = manifest.component("image").golden[0]
    inputs, outputs = load_golden(folder, case)
    assert case.samples == QUANTISED_SAMPLES == inputs["pixel_values"].shape[0]
    assert outputs["image_embeds"].shape == (QUANTISED_SAMPLES, 1, 16)
    assert np.linalg.norm(outputs["image_embeds"], axis=-1) == pytest.approx(1.0, abs=1e-5)


def test_int8_is_smaller_and_the_manifest_says_by_how_much(exported):
    sizes = {}
    for precision in ("fp32", "int8"):
        _, manifest = exported("clip", precision=precision, opset=15)
        sizes[precision] = sum(component.weight_bytes for component in manifest.components)
    assert sizes["int8"] < 0.5 * sizes["fp32"]  # tiny: norms, positions and biases weigh more than in a real model


def test_what_the_manifest_says_of_a_generative_bundle(exported):
    _, manifest = exported("qwen2_5_vl", precision="fp32", opset=15)
    generation = manifest.generation
    assert [step.phase for step in manifest.unit_of_work.steps] == ["encode", "prefill", "decode"]
    assert [component.name for component in manifest.components] == ["vision", "decoder"]
    assert (generation.kv.layers, generation.kv.kv_heads, generation.kv.head_dim) == (2, 2, 16)
    assert generation.kv.bytes_per_token == 2 * 2 * 2 * 16 * 4
    assert generation.position_axes == 3
    assert generation.eos_token_ids == [156]
    assert generation.image_tokens == 64
    names = {spec.name for spec in manifest.component("decoder").inputs}
    assert {generation.kv.past_key.format(layer=layer) for layer in range(2)} <= names
    ids = next(spec for spec in manifest.component("decoder").inputs if spec.name == "input_ids")
    assert ids.values.maximum < generation.image_token_id


@pytest.mark.slow
@pytest.mark.parametrize(("precision", "opset"), [("fp32", 18), ("fp16", 15), ("int8", 18), ("int8-static", 15)])
def test_weights_beyond_the_limit_lie_beside_the_file(tiny, pictures, tmp_path, monkeypatch, precision, opset):
    monkeypatch.setattr(onnx_precision, "EXTERNAL_DATA_ABOVE", 10_000)
    out = tmp_path / "bundle"
    options = ExportOptions(model=str(tiny("clip")), out=out, precision=precision, opset=opset, calibration=pictures)
    manifest = export_model(options)
    assert manifest.parity_passed
    for component in manifest.components:
        assert [file.path for file in component.external_data] == [f"{component.file.path}.data"]
    assert {path.name for path in (out / "image").iterdir()} == {"image.onnx", "image.onnx.data"}
    assert read_bundle(out) == manifest
    (out / "image" / "image.onnx.data").unlink()
    with pytest.raises(InputError, match="lacks its file"):
        read_bundle(out)
