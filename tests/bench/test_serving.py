"""A served model is benched from the board: figures, memory, and the errors of servers that do wrong."""

import pytest

from argus_edge.bench.drive import bench
from argus_edge.bench.prepare import prepare
from argus_edge.bench.request import make_request
from argus_edge.bench.samples import decode
from argus_edge.bench.serving import made_up, pictures
from argus_edge.errors import InputError, RunFailedError, UsageError
from tests.support.chat_server import FIRST_S, TOKEN_S, served_elsewhere, serving
from tests.support.llama import serving_smollm2


def prepared(url, model=None, **how):
    options = {"runtime": "server", "url": url, "duration": 0.3, "warmup": 2, "output_tokens": 8, **how}
    return prepare(make_request(model, **options))


def test_a_served_model(entry, store):
    ballast = 80 << 20
    with served_elsewhere(ballast) as (url, _):
        outcome = bench(prepared(url, images=["32x32"], prompt_tokens=40), entry, store)
    report = outcome.report
    assert outcome.error is None
    (measurement,) = report.measurements
    written = measurement.generation
    assert report.model.name == "tiny-vlm"
    assert (written.prompt_tokens, written.output_tokens) == (40, 8)
    assert measurement.unit_of_work == (
        "one request answered: a prompt of about 40 tokens and one image read, 8 tokens written"
    )
    calls = measurement.figures.count
    assert calls >= 11
    assert decode(written.ttft_samples).min() >= FIRST_S
    assert written.inter_token_samples.count == 7 * calls
    # A client that is woken late sees tokens closer together, never the whole answer sooner.
    spans = decode(written.ttft_samples) + decode(written.inter_token_samples).reshape(calls, 7).sum(axis=1)
    assert spans.min() >= FIRST_S + 7 * TOKEN_S
    assert measurement.memory_headline.memory_kind == "server-tree"
    assert measurement.memory_headline.bytes > ballast
    assert report.headline == "server"
    assert report.summary["tokens_per_s"].value == written.tokens_per_s.value


@pytest.mark.slow
def test_llama_cpps_own_server(entry, store):
    with serving_smollm2() as (url, _):
        report = bench(prepared(url, prompt_tokens=48, warmup=1), entry, store).report
    (measurement,) = report.measurements
    written = measurement.generation
    assert measurement.state == "done"
    assert "smollm2" in report.model.name.lower()
    assert written.output_tokens == 8
    # Words of this vocabulary are a token each, or nearly.
    assert abs(written.prompt_tokens - 48) <= 8
    assert written.inter_token.value < written.ttft.value
    # The weights (98 MB) are mapped and resident.
    assert measurement.memory_headline.bytes > 98e6
    assert measurement.memory_headline.memory_kind == "server-tree"


def test_a_server_that_writes_less_than_asked(entry, store):
    with serving("half") as (url, _):
        report = bench(prepared(url), entry, store).report
    written = report.measurements[0].generation
    assert report.model.name == "tiny.gguf"  # the server says its file's path
    assert written.output_tokens == 4
    assert any("8 tokens were asked for, the server ended after 4" in note for note in written.notes)


def test_a_server_that_sends_several_tokens_at_a_time(entry, store):
    with serving("pairs") as (url, _):
        report = bench(prepared(url), entry, store).report
    written = report.measurements[0].generation
    assert written.output_tokens == 8
    assert written.inter_token_samples.count == report.measurements[0].figures.count
    assert any("not its tokens" in note for note in written.notes)
    # Four pieces for eight tokens: three gaps stand for seven.
    mean = decode(written.inter_token_samples).mean()
    assert written.tokens_per_s.value == pytest.approx(1 / mean, rel=1e-6)


def test_a_server_that_does_not_count(entry, store):
    with serving("no-usage") as (url, _):
        report = bench(prepared(url), entry, store).report
    written = report.measurements[0].generation
    assert (written.prompt_tokens, written.output_tokens) == (None, 8)
    assert any("does not count" in note for note in [*written.notes, *report.notes])


@pytest.mark.parametrize(
    ("fault", "message"), [("error", "the model fell over"), ("two-models", "name one as MODEL"), ("dies", "broke off")]
)
def test_a_server_that_fails_is_told(entry, store, fault, message):
    with serving(fault) as (url, _):
        outcome = bench(prepared(url), entry, store)
    assert isinstance(outcome.error, RunFailedError)
    assert outcome.error.exit_code == 5
    assert message in outcome.error.what
    assert outcome.report.validity.valid is False


def test_a_server_that_is_off(entry, store):
    outcome = bench(prepared("http://127.0.0.1:9/v1"), entry, store)
    assert "start the server first" in outcome.error.what


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"url": None}, "Where is the server"),
        ({"url": "localhost:8080"}, "Cannot read --url"),
        ({"url": "http://user:secret@127.0.0.1/v1"}, "Cannot read --url"),
        ({"threads": 4}, "--threads is the server's own"),
        ({"provider": "cuda"}, "--provider is the server's own"),
        ({"batch": 2}, "--batch is the server's own"),
        ({"shapes": ["x=1x2"]}, "a server has none"),
        ({"images": ["0x9"]}, "sides are 1 to"),
    ],
)
def test_options_that_do_not_go_together(how, message):
    with pytest.raises(UsageError, match=message):
        prepared(**{"url": "http://127.0.0.1:9/v1", **how})


def test_pictures(tmp_path):
    found = pictures("40x24")
    assert len(set(found)) == len(found) == 8
    path = tmp_path / "cat.png"
    path.write_bytes(found[0])
    assert pictures(str(path)) == [found[0]]
    with pytest.raises(InputError, match="No such picture"):
        pictures(str(tmp_path / "dog.png"))
    path.write_bytes(b"hello")
    with pytest.raises(InputError, match="Not a PNG"):
        pictures(str(path))


def test_made_up_pictures_are_pictures():
    image = pytest.importorskip("PIL.Image", reason="Pillow reads them")
    import io

    for width, height in ((1, 1), (40, 24), (17, 33)):
        opened = image.open(io.BytesIO(made_up(width, height, 0)))
        opened.load()
        assert opened.size == (width, height)
        assert opened.mode == "RGB"
    assert made_up(8, 8, 3) == made_up(8, 8, 3)
