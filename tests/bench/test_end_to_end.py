"""A bundle is timed as a whole: what a unit of work is, what is measured within it, and what can be asked for."""

import itertools

import numpy as np
import pytest

from argus_edge.bench.drive import bench
from argus_edge.bench.end_to_end import END_TO_END
from argus_edge.bench.end_to_end import whole_of as whole_of_bundle
from argus_edge.bench.prepare import prepare
from argus_edge.bench.request import make_request
from argus_edge.bench.samples import decode
from argus_edge.errors import InputError, UsageError
from argus_edge.gate.figures import bench_figure
from argus_edge.gate.metrics import METRICS
from argus_edge.schema.bundle import BundleManifest
from argus_edge.score.efficiency import costs_of
from tests.support.reports import found_in
from tests.support.tiny_bundle import IMAGE_TOKEN, IMAGE_TOKENS, WIDTH, answering_bundle, retrieval_bundle


@pytest.fixture(scope="module")
def retrieval(tmp_path_factory):
    return str(retrieval_bundle(tmp_path_factory.mktemp("bundles") / "pairs"))


@pytest.fixture(scope="module")
def answering(tmp_path_factory):
    return str(answering_bundle(tmp_path_factory.mktemp("bundles") / "answers"))


def prepared(bundle, **how):
    return prepare(make_request(bundle, **{"duration": 0.3, "warmup": 2, **how}))


def whole_of(report):
    return next(each for each in report.measurements if each.component == END_TO_END)


def test_retrieval_is_one_image_plus_one_text(entry, store, retrieval):
    report = bench(prepared(retrieval, threads=1), entry, store).report
    assert [each.component for each in report.measurements] == ["image", "text", END_TO_END]
    assert report.headline == END_TO_END
    whole = whole_of(report)
    assert whole.unit_of_work == "one image plus one text embedded, batch 1"
    assert whole.state == "done"
    assert [step.name for step in whole.steps] == ["image", "text"]
    assert whole.generation is None
    latency = decode(whole.latency)
    image, text = (decode(step.samples) for step in whole.steps)
    assert len(image) == len(text) == len(latency)
    # Nothing is between the steps, and what comes after the last is the harness's own.
    assert np.all(image + text <= latency + 2e-9)
    assert report.summary["p50"].value == whole.figures.p50.value
    # Both models are in one process.
    assert whole.memory_headline.memory_kind == "peak-rss"
    assert report.model.macs == 192 * WIDTH


def test_preprocessing_is_timed_apart(entry, store, retrieval):
    whole = whole_of(bench(prepared(retrieval), entry, store).report)
    apart = whole.preprocessing
    assert apart.p50.value > 0
    assert apart.samples.count == 64
    assert "640 x 480" in apart.description
    assert "8 x 8" in apart.description
    assert "Pillow" in apart.description or "numpy" in apart.description


@pytest.mark.parametrize(
    ("scenario", "more"), [("offline", {"batch": 4}), ("paced", {"fps": 100.0}), ("server", {"qps": 50.0})]
)
def test_the_whole_runs_in_every_scenario(entry, store, retrieval, scenario, more):
    whole = whole_of(bench(prepared(retrieval, scenario=scenario, **more), entry, store).report)
    assert whole.state == "done"
    assert whole.unit_of_work.endswith(f"batch {more.get('batch', 1)}")
    assert whole.steps[0].samples.count == whole.figures.count


def test_a_query_of_several_samples_runs_the_whole_several_times(entry, store, retrieval):
    made = prepared(retrieval, scenario="multi-stream", streams=3, batch=2)
    whole = whole_of(bench(made, entry, store).report)
    assert whole.state == "done"
    assert whole.unit_of_work.startswith("one query of 3 samples, one after the other; each call: one image plus")
    # Two calls of two, and moments within a call are none of the query's.
    assert whole.batch == 4
    assert whole.steps == []
    once = whole_of(bench(prepared(retrieval, batch=2), entry, store).report)
    assert whole.roofline.macs == 2 * once.roofline.macs


def test_text_is_written(entry, store, answering):
    report = bench(prepared(answering, output_tokens=5, runs=2), entry, store).report
    first, second = (each for each in report.measurements if each.component == END_TO_END)
    written = first.generation
    assert (written.prompt_tokens, written.image_tokens, written.output_tokens) == (12, IMAGE_TOKENS, 5)
    assert first.unit_of_work.startswith("one image seen, its own prompt read, 5 tokens written")
    calls = first.figures.count
    assert calls >= 11
    assert written.ttft_samples.count == calls
    assert written.inter_token_samples.count == 4 * calls
    assert [step.name for step in first.steps] == ["vision", "prefill", "decode"]
    vision, prefill, decoding = (decode(step.samples) for step in first.steps)
    assert decode(written.ttft_samples) == pytest.approx(vision + prefill, abs=3e-9)
    gaps = decode(written.inter_token_samples).reshape(calls, 4)
    assert gaps.sum(axis=1) == pytest.approx(decoding, abs=1e-8)
    assert written.tokens_per_s.value == pytest.approx(gaps.size / gaps.sum(), rel=1e-6)
    # After 12 read and 4 fed again: keys and values of one layer.
    assert written.kv_cache_bytes == 16 * 2 * WIDTH * 4
    # Preprocessing is the same in every repeat, and timed once.
    assert first.preprocessing is not None
    assert second.preprocessing is None
    # Over repeats a gate reads the figure between runs, as for latency.
    assert report.summary["ttft"].n == 2
    found = bench_figure(found_in("a.json", report), METRICS["ttft"], None)
    assert found.value == report.summary["ttft"].value


def test_what_a_gate_and_the_score_read_is_the_whole(entry, store, answering):
    report = bench(prepared(answering, output_tokens=3), entry, store).report
    found, whole = found_in("a.json", report), whole_of(report)
    for name in ("ttft", "inter_token", "tokens_per_s"):
        assert bench_figure(found, METRICS[name], None).value == getattr(whole.generation, name).value
    assert bench_figure(found, METRICS["latency_p50"], None).value == whole.figures.p50.value
    assert bench_figure(found, METRICS["latency_p50"], "vision").value == report.measurements[0].figures.p50.value

    class Benched:
        latency, offline = found, None

    costs = costs_of(Benched())
    assert costs.latency_s[0] == whole.figures.p50.value
    assert costs.unit_of_work == whole.unit_of_work
    assert costs.memory_bytes == whole.memory_headline.bytes


def test_lengths_are_the_users(answering):
    whole = prepared(answering, prompt_tokens=20, output_tokens=7).whole
    assert (whole.prompt_tokens, whole.generation.output_tokens) == (20, 7)
    assert "a prompt of 20 tokens read, 7 tokens written" in whole.unit
    ids = whole.inputs["decoder/input_ids"]
    assert ids.shape == (1, 20)
    assert (ids == IMAGE_TOKEN).sum() == IMAGE_TOKENS
    assert set(np.flatnonzero(ids[0] == IMAGE_TOKEN)) == set(range(1, 1 + IMAGE_TOKENS))
    # What the vision feeds, and the cache, are not sent.
    assert set(whole.inputs) == {"vision/pixel_values", "decoder/input_ids", "decoder/attention_mask"}


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"prompt_tokens": 3}, "image alone takes 4 tokens"),
        ({"prompt_tokens": 127, "output_tokens": 3}, "the decoder holds 128"),
        ({"runtime": "server"}, "Where is the server"),
        ({"url": "http://127.0.0.1:1/v1"}, "--url belongs to --runtime server"),
    ],
)
def test_what_cannot_be_written(answering, how, message):
    with pytest.raises(UsageError, match=message):
        prepared(answering, **how)


def test_text_is_written_for_one_at_a_time(answering):
    made = prepared(answering)
    with pytest.raises(UsageError, match="timed at batch 1"):
        whole_of_bundle(made.model, made.inputs, batch=2)


def test_the_longest_prompt_fits(answering):
    assert prepared(answering, prompt_tokens=126, output_tokens=3).whole.prompt_tokens == 126


def test_queries_of_several_samples_are_not_for_text(entry, store, answering):
    with pytest.raises(UsageError, match="multi-stream does not apply"):
        bench(prepared(answering, scenario="multi-stream"), entry, store)


def test_lengths_belong_to_what_writes(retrieval, squeezenet):
    for model, how in itertools.product((retrieval, squeezenet), ({"prompt_tokens": 4}, {"output_tokens": 4})):
        with pytest.raises(UsageError, match="belong to a model that writes text"):
            prepared(model, **how)


def test_macs_are_the_whole_works(answering):
    made = prepared(answering, prompt_tokens=10, output_tokens=3)
    macs = {name: known.cost.macs for name, known in made.components.items()}
    # Prefill and two tokens after it each multiply one row by the output matrix.
    assert macs[END_TO_END] == macs["vision"] + 3 * macs["decoder"]


def test_a_manifest_whose_decoder_lacks_an_input_is_refused(answering, tmp_path):
    import json
    import shutil

    folder = tmp_path / "odd"
    shutil.copytree(answering, folder)
    document = json.loads((folder / "manifest.json").read_text())
    document["generation"]["attention_mask"] = None
    BundleManifest.model_validate(document)
    (folder / "manifest.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="nobody feeds attention_mask"):
        prepared(str(folder))
