"""What cannot be exported: a clear error of the right class, and no bundle left behind that looks whole."""

import errno
import json
import shutil
import signal
import subprocess
import sys
from importlib.util import find_spec

import pytest

torch = pytest.importorskip("torch", reason="needs the export extra")
transformers = pytest.importorskip("transformers", minversion="5", reason="the families need transformers 5")

from safetensors.torch import load_file, save_file

from argus_edge.errors import HostError, InputError, MisfitError, MissingDependencyError, ParityError, UsageError
from argus_edge.exporters import optimum_route, parity
from argus_edge.exporters.export import ExportOptions, export_model
from argus_edge.exporters.onnx_format import OnnxFormat
from argus_edge.schema.bundle import ParityLimits


@pytest.fixture
def copy(tiny, tmp_path):
    """name -> a copy of a tiny model that the test may damage."""

    def make(name):
        return shutil.copytree(tiny(name), tmp_path / name)

    return make


@pytest.fixture
def refused(tmp_path):
    """Export and return the error; nothing may be left where the bundle would be, nor beside it."""

    def run(error, model, **options):
        target = tmp_path / "out" / "bundle"
        with pytest.raises(error) as caught:
            export_model(ExportOptions(model=str(model), out=target, opset=options.pop("opset", 15), **options))
        left = list(target.parent.iterdir()) if target.parent.exists() else []
        assert left == []
        return str(caught.value)

    return run


def edit(folder, **changes):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    for key, value in changes.items():
        section, _, name = key.rpartition("__")
        (config[section] if section else config)[name] = value
    path.write_text(json.dumps(config))


def test_an_unknown_architecture_lists_what_is_known(refused, tmp_path, monkeypatch):
    monkeypatch.setattr(optimum_route, "available", lambda: False)
    folder = tmp_path / "bert"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", "architectures": ["BertModel"]}))
    message = refused(InputError, folder)
    assert "BertModel" in message
    assert "clip" in message
    assert "qwen2_5_vl" in message
    assert "optimum" in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{not json", "Not a JSON file"),
        ("[1, 2]", "Not a JSON object"),
        ('{"model_type": "frobnicator", "architectures": ["Frob"]}', "frobnicator is not supported"),
    ],
    ids=["no JSON", "a list", "a type that transformers does not know"],
)
def test_a_configuration_that_is_none_of_this_world(refused, copy, text, words):
    folder = copy("clip")
    (folder / "config.json").write_text(text)
    assert words in refused(InputError, folder)


@pytest.mark.parametrize(
    "change",
    [
        {"text_config__num_attention_heads": 5},
        {"vision_config__hidden_size": "many"},
        {"vision_config__patch_size": 0},
    ],
    ids=["heads that do not divide", "a word for a number", "no patch"],
)
def test_values_that_cannot_be(refused, copy, change):
    folder = copy("clip")
    edit(folder, **change)
    message = refused(InputError, folder)
    assert "config.json" in message.split("next:")[-1]


def test_a_misspelt_name_is_answered_with_the_one_that_ships(refused):
    assert "did you mean clip-vit-b32?" in refused(InputError, "clip-vit-b33", random_weights=True)


def test_another_head_of_a_known_family(refused, copy):
    folder = copy("clip")
    edit(folder, architectures=["CLIPForImageClassification"])
    assert "CLIPForImageClassification is not supported for the family clip" in refused(InputError, folder)


def test_a_model_that_is_not_here_without_network(refused):
    message = refused(InputError, "someone/some-model")
    assert "hub cannot be reached" in message
    assert "--random-weights" in message


@pytest.mark.parametrize("path", ["./nothing/here", "/nothing/here", "a/b/c"])
def test_a_missing_folder(refused, path):
    assert "No such model folder" in refused(InputError, path)


def test_a_file_is_no_model(refused, tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"x")
    assert "argus-edge inspect" in refused(InputError, tmp_path / "m.onnx")


def test_an_opset_that_nobody_writes(refused, tiny):
    assert "No exporter writes opset 99" in refused(UsageError, tiny("clip"), opset=99)


def test_what_a_converter_raises_is_said_and_what_does_not_run_is_no_bundle(refused, tiny, monkeypatch):
    def raises(self, *args):
        raise KeyError("something inside")

    with monkeypatch.context() as patch:
        patch.setattr(OnnxFormat, "convert", raises)
        assert "image cannot be converted to onnx" in refused(InputError, tiny("clip"))
    monkeypatch.setattr(OnnxFormat, "runner", raises)
    assert "does not run in onnxruntime" in refused(ParityError, tiny("clip"))


def test_a_folder_that_is_no_model(refused, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "no config.json" in refused(InputError, tmp_path / "empty")


@pytest.mark.parametrize(
    ("name", "words"), [("GatedRepoError", "gated"), ("RepositoryNotFoundError", "No such model on the hub")]
)
def test_a_gated_and_an_unknown_model(refused, monkeypatch, name, words):
    import huggingface_hub.errors

    kind = getattr(huggingface_hub.errors, name)

    def answer(*args, **kwargs):
        # As transformers does: an OSError that comes from the hub's own error.
        raise OSError("cannot access") from kind.__new__(kind, "no")

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", answer)
    assert words in refused(InputError, "someone/some-model")


def test_remote_code_is_not_run_unless_asked_for(refused, copy):
    folder = copy("clip")
    edit(folder, model_type="mine", auto_map={"AutoConfig": "mine.Config"})
    (folder / "mine.py").write_text("raise SystemExit('ran')")
    message = refused(InputError, folder)
    assert "own Python code" in message
    assert "--trust-remote-code" in message


def test_a_pickle_is_not_opened_unless_asked_for(refused, copy, tmp_path):
    folder = copy("clip")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    message = refused(InputError, folder)
    assert "pickle" in message
    assert "--allow-pickle" in message
    manifest = export_model(ExportOptions(model=str(folder), out=tmp_path / "b", opset=15, allow_pickle=True))
    assert manifest.parity_passed


def test_a_pickle_that_runs_code_is_not_opened_even_if_asked_for(refused, copy, tmp_path):
    class Evil:
        def __reduce__(self):
            return open, (str(tmp_path / "ran"), "w")

    folder = copy("clip")
    torch.save({"x": Evil()}, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert "would run code" in refused(InputError, folder, allow_pickle=True)
    assert not (tmp_path / "ran").exists()


def test_a_shape_that_disagrees_is_named_with_both_shapes(refused, copy):
    folder = copy("clip")
    edit(folder, projection_dim=24)
    assert "visual_projection.weight ([16, 32] stored, [24, 32] configured)" in refused(InputError, folder)


def test_weights_that_are_not_finite(refused, copy):
    folder = copy("clip")
    weights = load_file(folder / "model.safetensors")
    weights["visual_projection.weight"][0, 0] = float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    assert "not finite" in refused(InputError, folder)


@pytest.mark.parametrize(
    "change",
    [
        {"vision_config__num_hidden_layers": 1},
        {"vision_config__num_hidden_layers": 3},
        {"projection_dim": 24},
        {"text_config__vocab_size": 64},
    ],
    ids=["fewer layers", "more layers", "other width", "smaller vocabulary"],
)
def test_a_configuration_that_disagrees_with_the_weights(refused, copy, change):
    folder = copy("clip")
    edit(folder, **change)
    assert "disagrees with the weights" in refused(InputError, folder)


def test_weights_that_are_cut_short(refused, copy):
    folder = copy("clip")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    assert "damaged" in refused(InputError, folder)


def test_a_model_without_weights(refused, copy):
    folder = copy("clip")
    (folder / "model.safetensors").unlink()
    assert "--random-weights" in refused(InputError, folder)


def test_an_opset_that_an_operation_does_not_have(refused, tiny):
    assert "opset 9" in refused(MisfitError, tiny("clip"), opset=9)


def test_a_device_that_lacks_the_precision_is_refused_before_anything_is_read(refused):
    message = refused(MisfitError, "./not/even/there", precision="int4", device="jetson-nano", opset=None)
    assert "no kernels for int4" in message


def test_a_device_that_lacks_the_opset_or_the_runtime(refused, tiny):
    assert "up to 15" in refused(MisfitError, tiny("clip"), device="jetson-nano", opset=18)
    assert "no litert" in refused(MisfitError, tiny("clip"), device="jetson-nano", format="tflite", opset=None)


def test_a_format_whose_packages_are_missing_is_refused_before_anything_is_read(refused):
    if find_spec("litert_torch"):
        pytest.skip("litert-torch is installed here")
    assert "argus-edge[tflite]" in refused(MissingDependencyError, "./not/even/there", format="tflite", opset=None)


def test_4_bit_weights_in_an_old_opset(refused, tiny):
    assert "opset 15" in refused(UsageError, tiny("clip"), precision="int4")


def test_an_unknown_device(refused, tiny):
    assert "pi5" in refused(UsageError, tiny("clip"), device="toaster")


def test_static_quantisation_without_samples(refused, tiny):
    assert "--calibration" in refused(UsageError, tiny("clip"), precision="int8-static")


@pytest.mark.slow
def test_a_file_that_computes_something_else_is_not_written(refused, tiny, tmp_path, monkeypatch):
    monkeypatch.setitem(parity.LIMITS, "int8", ParityLimits(cosine=1.0))
    assert "do not compute" in refused(ParityError, tiny("clip"), precision="int8")
    allowed = ExportOptions(
        model=str(tiny("clip")), out=tmp_path / "marked", precision="int8", opset=15, allow_parity_fail=True
    )
    manifest = export_model(allowed)
    assert not manifest.parity_passed
    assert any("parity failed" in warning for warning in manifest.warnings)


def test_a_disk_that_fills_up(refused, tiny, monkeypatch):
    def full(self, piece, plan, request, folder):
        (folder / "half.onnx").write_bytes(b"half")
        raise RuntimeError("writing failed") from OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(OnnxFormat, "convert", full)
    assert "disk is full" in refused(HostError, tiny("clip"))


def test_a_real_full_disk(tiny, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    mount = shutil.which("mount")
    done = mount and subprocess.run([mount, "-t", "tmpfs", "-o", "size=100k", "tmpfs", str(small)], check=False)
    if not done or done.returncode:
        pytest.skip("no right to mount a small file system")
    try:
        with pytest.raises(HostError, match="disk is full"):
            export_model(ExportOptions(model=str(tiny("clip")), out=small / "bundle", opset=15))
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", str(small)], check=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "told to end"])
@pytest.mark.slow
def test_a_command_that_is_interrupted_takes_what_it_made_with_it(tiny, tmp_path, number):
    target = tmp_path / "out" / "bundle"
    command = [sys.executable, "-m", "argus_edge", "export", str(tiny("clip")), "--opset", "15", "--out", str(target)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        for line in process.stderr:
            if "original run" in line:
                break
        assert list(target.parent.iterdir()) != []
        process.send_signal(number)
        process.communicate()
    assert process.returncode == 128 + number
    assert list(target.parent.iterdir()) == []


def test_a_place_that_is_taken(tiny, exported, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="no bundle"):
        export_model(ExportOptions(model=str(tiny("clip")), out=tmp_path, force=True))
    folder, _ = exported("clip", precision="fp32", opset=15)
    with pytest.raises(UsageError, match="bundle already"):
        export_model(ExportOptions(model=str(tiny("clip")), out=folder))
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_too_little_memory_is_said_before_the_work(refused, monkeypatch):
    import psutil

    class Little:
        available = 2_000_000_000

    monkeypatch.setattr(psutil, "virtual_memory", lambda: Little)
    message = refused(HostError, "gemma-3-4b", random_weights=True, precision="int4", opset=18)
    assert "GB of memory" in message
