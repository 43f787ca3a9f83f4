"""Architectures that are no family, through Optimum's exporter; needs an environment of its own."""

import pytest

torch = pytest.importorskip("torch", reason="needs the optimum extra")
pytest.importorskip("optimum.exporters.onnx", reason="needs the optimum extra, in an environment of its own")
transformers = pytest.importorskip("transformers")

from argus_edge.bundles import read_bundle
from argus_edge.errors import InputError, UsageError
from argus_edge.exporters.export import ExportOptions, export_model

SIZE = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2}


@pytest.fixture
def bert(tmp_path):
    torch.manual_seed(0)
    model = transformers.BertModel(transformers.BertConfig(vocab_size=99, max_position_embeddings=64, **SIZE))
    model.save_pretrained(tmp_path / "bert")
    return tmp_path / "bert"


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_text_encoder(bert, tmp_path, precision):
    out = tmp_path / "bundle"
    manifest = export_model(ExportOptions(model=str(bert), out=out, precision=precision, opset=15))
    assert read_bundle(out) == manifest
    assert manifest.family == "optimum"
    assert manifest.parity_passed
    model = manifest.component("model")
    assert {spec.name for spec in model.inputs} >= {"input_ids", "attention_mask"}
    assert {dim.name for dim in model.dims} == {"batch", "sequence"}
    assert len(model.golden) == 3


def test_an_image_classifier(tmp_path):
    torch.manual_seed(0)
    config = transformers.ViTConfig(image_size=32, patch_size=8, **SIZE)
    transformers.ViTForImageClassification(config).save_pretrained(tmp_path / "vit")
    out = tmp_path / "bundle"
    manifest = export_model(ExportOptions(model=str(tmp_path / "vit"), out=out, opset=15))
    assert manifest.parity_passed
    assert manifest.component("model").outputs[0].name == "logits"


def test_what_that_route_does_not_write(bert, tmp_path):
    with pytest.raises(UsageError, match="int4"):
        export_model(ExportOptions(model=str(bert), out=tmp_path / "b", precision="int4"))
    with pytest.raises(UsageError, match="tflite"):
        export_model(ExportOptions(model=str(bert), out=tmp_path / "b", format="tflite"))


def test_a_model_that_writes_text_is_named_as_such(tmp_path):
    config = transformers.T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=64, num_layers=1, num_heads=4)
    transformers.T5ForConditionalGeneration(config).save_pretrained(tmp_path / "t5")
    with pytest.raises(InputError):
        export_model(ExportOptions(model=str(tmp_path / "t5"), out=tmp_path / "b"))
    assert not (tmp_path / "b").exists()
