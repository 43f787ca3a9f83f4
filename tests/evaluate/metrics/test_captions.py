"""BLEU, ROUGE-L and CIDEr: pycocoevalcap's own answers (fixtures/captions.json, made by benchmarks/metrics)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_edge.errors import InputError
from argus_edge.evaluate.metrics import CaptionReferences, DocumentFrequencies, tokenize
from argus_edge.evaluate.metrics.bleu import bleu_from_sums
from argus_edge.evaluate.metrics.rouge import lcs_length


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    text = (Path(__file__).parent / "fixtures" / "captions.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


@pytest.fixture(scope="module")
def references(answers: dict[str, Any]) -> CaptionReferences:
    return CaptionReferences(answers["references"])


def test_the_corpus_figures_are_pycocoevalcaps(answers: dict[str, Any], references: CaptionReferences) -> None:
    found = references.score(answers["candidates"]).metrics()
    assert [found[f"bleu_{n}"] for n in (1, 2, 3, 4)] == pytest.approx(answers["bleu"], abs=1e-9)
    assert found["rouge_l"] == pytest.approx(answers["rouge_l"], abs=1e-9)
    assert found["cider"] == pytest.approx(answers["cider"], abs=1e-9)


def test_the_figures_of_each_image_are_pycocoevalcaps(answers: dict[str, Any], references: CaptionReferences) -> None:
    scores = references.score(answers["candidates"])
    np.testing.assert_allclose(scores.cider, answers["ciders"], atol=1e-9)
    np.testing.assert_allclose(scores.rouge, answers["rouges"], atol=1e-9)


def test_the_statistics_of_any_images_add_up_to_their_corpus_bleu(
    answers: dict[str, Any], references: CaptionReferences
) -> None:
    scores = references.score(answers["candidates"])
    some = np.arange(7, 31)
    part = CaptionReferences([answers["references"][i] for i in some], references.frequencies)
    alone = part.score([answers["candidates"][i] for i in some])
    np.testing.assert_array_equal(alone.statistics()["bleu"], scores.bleu[some])
    assert bleu_from_sums(scores.bleu[some].sum(axis=0))[3] == alone.metrics()["bleu_4"]
    np.testing.assert_allclose(alone.cider, scores.cider[some], atol=1e-12, err_msg="the frequencies are the split's")


def test_a_reference_repeated_is_a_perfect_caption(answers: dict[str, Any], references: CaptionReferences) -> None:
    found = references.score([texts[0] for texts in answers["references"]]).metrics()
    assert found["bleu_4"] == pytest.approx(1.0)
    assert found["rouge_l"] == pytest.approx(1.0)


def test_empty_captions_score_nothing_and_break_nothing(references: CaptionReferences) -> None:
    found = references.score(["", "...", " \n "] * 20)
    assert found.headline == pytest.approx(0, abs=1e-6)
    assert np.isfinite(found.cider).all()


def test_one_image_is_too_few_for_cider_and_a_file_is_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        CaptionReferences([["a dog runs", "the dog is running"]])
    assert "--idf" in str(caught.value)
    many = [[f"a {animal} runs in the park"] for animal in ("dog", "cat", "cow", "hen", "fox", "ape", "elk", "emu")] * 2
    DocumentFrequencies.from_references(many).save(tmp_path / "idf.json.gz")
    few = CaptionReferences([["a dog runs", "the dog is running"]], DocumentFrequencies.load(tmp_path / "idf.json.gz"))
    assert few.score(["a dog runs"]).metrics()["cider"] > 1


def test_an_image_without_a_caption_is_an_error() -> None:
    with pytest.raises(InputError, match="Image 1 of 2"):
        CaptionReferences([["a dog"], []])


def test_the_number_of_captions_must_be_that_of_the_images(references: CaptionReferences) -> None:
    with pytest.raises(InputError, match="1 captions for 60 images"):
        references.score(["a dog"])


def test_document_frequencies_come_back_from_their_file(references: CaptionReferences, tmp_path: Path) -> None:
    frequencies = references.frequencies
    for name in ("first", "second"):
        frequencies.save(tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    again = DocumentFrequencies.load(tmp_path / "first")
    assert again == frequencies
    assert again.sha256 == frequencies.sha256


@pytest.mark.parametrize("content", [b"", b"not gzip", b'{"kind": "argus-edge document frequencies"}'])
def test_other_files_are_not_taken_for_document_frequencies(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(InputError, match="Not a file of document frequencies"):
        DocumentFrequencies.load(tmp_path / "file")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("images", 3),
        ("images", "60"),
        ("ngrams", {"a": 61}),
        ("ngrams", {"a": 1.5}),
        ("tokenizer", "other"),
        ("kind", 1),
    ],
)
def test_figures_that_do_not_hold_together_are_refused(
    field: str, value: object, references: CaptionReferences, tmp_path: Path
) -> None:
    import gzip

    references.frequencies.save(tmp_path / "file")
    document = json.loads(gzip.decompress((tmp_path / "file").read_bytes()))
    (tmp_path / "file").write_bytes(gzip.compress(json.dumps(document | {field: value}).encode()))
    with pytest.raises(InputError):
        DocumentFrequencies.load(tmp_path / "file")


WORDS = st.lists(st.sampled_from("abcd"), max_size=12)


@given(first=WORDS, second=WORDS)
def test_the_bit_parallel_subsequence_is_the_textbooks(first: list[str], second: list[str]) -> None:
    table = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, one in enumerate(first):
        for j, other in enumerate(second):
            table[i + 1][j + 1] = table[i][j] + 1 if one == other else max(table[i][j + 1], table[i + 1][j])
    assert lcs_length(first, second) == table[-1][-1]


def test_the_order_of_images_does_not_matter(answers: dict[str, Any], references: CaptionReferences) -> None:
    order = np.random.default_rng(0).permutation(len(references))
    shuffled = CaptionReferences([answers["references"][i] for i in order])
    found = shuffled.score([answers["candidates"][i] for i in order])
    np.testing.assert_allclose(found.cider, references.score(answers["candidates"]).cider[order], atol=1e-12)
    assert shuffled.frequencies.sha256 == references.frequencies.sha256


def test_fractions_are_one_token_for_rouge_and_two_words_for_bleu() -> None:
    assert tokenize("1 1/2 pizzas") == ["1\u00a01/2", "pizzas"]
    references = CaptionReferences([["1 1/2 pizzas on a plate"]] * 10)
    assert references.score(["1 1/2 pizzas"] * 10).bleu[0, 8] == 3
