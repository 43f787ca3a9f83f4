"""The unit of work as the board runs it writes what the bundle's files write when they are called one by one."""

from array import array

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the export extra")
pytest.importorskip("transformers", minversion="5", reason="the families need transformers 5")

from argus_edge.agents import runtimes
from argus_edge.bench.prepare import prepare
from argus_edge.bench.request import make_request
from argus_edge.bundles import bundle_path, multimodal_positions
from tests.exporters.test_generation import NEW_TOKENS, greedy, runners

RUNTIMES = {"onnx": "onnxruntime", "tflite": "litert", "torch": "torch"}


def pipeline(folder, **how):
    """Prepare a bundle and load its unit of work as the agent does, in this process; return (prepared, runtime)."""
    made = prepare(make_request(str(folder), **how))
    components = {part.name: part for part in made.model.components}
    paths = {part.name: str(bundle_path(folder, part.bundled.file)) for part in made.model.components}
    plan = made.whole.pipeline(components, paths)
    part = {
        "runtime": RUNTIMES[made.model.manifest.format],
        "format": made.model.format,
        "threads": 1,
        "pipeline": plan.model_dump(),
    }
    loaded = runtimes.load(part, "/tmp")
    loaded.check()
    loaded.import_library()
    loaded.load()
    return made, loaded


def call(made, loaded, times=2):
    """Run the unit of work; return the marks of the recorded calls."""
    bound = loaded.bind(made.whole.inputs)
    bound()
    loaded.after_first()
    columns = [array("d", [0.0] * times) for _ in range(loaded.marks)]
    loaded.record(columns)
    for _ in range(times):
        bound()
    return np.array(columns).T


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"opset": 15}, {"format": "torch", "precision": "fp32"}], ids=["onnx", "torch"])
@pytest.mark.parametrize("family", ["blip", "gemma3", "qwen2_5_vl"])
def test_it_writes_what_the_files_write(exported, family, options):
    folder, manifest = exported(family, **options)
    made, loaded = pipeline(folder, output_tokens=NEW_TOKENS)
    marks = call(made, loaded)
    assert np.all(np.diff(marks.ravel()) > 0)
    how, inputs = manifest.generation, made.whole.inputs
    run = runners(folder, manifest)
    prompt = inputs[f"decoder/{how.input_ids}"][0]
    seen = run["vision"]({"pixel_values": inputs["vision/pixel_values"]})
    features = seen.get("image_features")
    positions = multimodal_positions(prompt == how.image_token_id)

    def places(step, length):
        return positions[:, None] if step == 0 else np.full((3, 1, length), positions.max() + step)

    reference = greedy(
        manifest,
        run["decoder"],
        prompt,
        None if features is None else features.reshape(-1, features.shape[-1]),
        positions=places,
        every=seen if features is None else None,
    )
    assert loaded.tokens() == reference
    total = len(prompt) + NEW_TOKENS - 1
    assert loaded.figures["kv_cache_bytes"] == total * how.kv.bytes_per_token


@pytest.mark.slow
def test_a_decoder_of_one_fixed_shape_writes_the_same(exported):
    pytest.importorskip("litert_torch", reason="needs the tflite extra")
    written = []
    for options in ({"opset": 15}, {"format": "tflite", "precision": "fp32"}):
        folder, _ = exported("blip", **options)
        made, loaded = pipeline(folder, output_tokens=NEW_TOKENS)
        # Their inputs are made up differently: the same picture and prompt for both.
        pixels = np.random.default_rng(5).standard_normal((1, 3, 32, 32)).astype(np.float32)
        for name, array_ in made.whole.inputs.items():
            fixed = pixels if name.endswith("pixel_values") else np.full_like(array_, 9)
            made.whole.inputs[name] = fixed if "mask" not in name else array_
        call(made, loaded)
        written.append(loaded.tokens())
    assert written[0] == written[1]


@pytest.mark.slow
def test_torch_programs_work_together(exported):
    folder, _ = exported("clip", format="torch", precision="fp32")
    made, loaded = pipeline(folder)
    assert call(made, loaded, 3).shape == (3, 2)
    assert loaded.figures["providers_used"] == ["cpu"]


def test_two_towers_are_called_one_after_the_other(exported):
    folder, _ = exported("clip", precision="fp32", opset=15)
    made, loaded = pipeline(folder)
    marks = call(made, loaded, 3)
    assert marks.shape == (3, 2)
    assert np.all(np.diff(marks.ravel()) > 0)
