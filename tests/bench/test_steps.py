"""Figures of what happens within a call, by hand; and times from a board that cannot be."""

import numpy as np
import pytest

from argus_edge.bench.samples import Samples, decode
from argus_edge.bench.steps import preprocessing, served_generation, step_figures, token_figures, tokens_per_s
from argus_edge.errors import RunFailedError
from argus_edge.schema.bundle import ImagePreprocess
from argus_edge.schema.pipeline import Preparation


def samples(marks, start=100.0, step=10.0):
    """Calls that begin every ``step`` seconds; marks are seconds after each one's start, 0 where there is none."""
    marks = np.array(marks, dtype=np.float64)
    begin = start + step * np.arange(len(marks))
    moments = np.where(marks > 0, begin[:, None] + marks, 0.0)
    return Samples(start=begin, end=begin + 9.0, latency=np.full(len(marks), 9.0), marks=moments)


def test_steps_add_up():
    # Vision until 1 s, first token at 3 s, then one a second.
    found = step_figures(samples([[1, 3, 4, 5]] * 11), ["vision"], 3, 110.0)
    assert [step.name for step in found] == ["vision", "prefill", "decode"]
    assert [step.p50.value for step in found] == pytest.approx([1.0, 2.0, 2.0])
    assert all(step.samples.count == 11 for step in found)


def test_one_token_has_no_decoding():
    assert [step.name for step in step_figures(samples([[1, 3]] * 11), ["vision"], 1, 110.0)] == ["vision", "prefill"]


def test_a_rate_is_tokens_over_their_time():
    gaps = np.array([0.1, 0.3, 0.1, 0.3])
    assert tokens_per_s(gaps).value == pytest.approx(5.0)


def test_one_token_has_nothing_between_tokens():
    found = token_figures(np.ones(11), np.empty(0), window_s=11.0, prompt_tokens=4, output_tokens=1)
    assert found.inter_token.value is None
    assert "one token" in found.inter_token.reason
    assert found.ttft.value == 1.0


def test_prefill_is_told_as_a_rate():
    found = token_figures(
        np.full(11, 2.0), np.full(22, 0.1), window_s=33.0, prompt_tokens=50, output_tokens=3, prefill=np.full(11, 0.5)
    )
    assert found.prefill_tokens_per_s.value == pytest.approx(100.0)


def served(marks, counts, asked):
    rows = samples([[*row, 0] for row in marks])
    rows.marks[:, -1] = counts
    return served_generation(rows, asked=asked, window_s=110.0, prompt_tokens=10, image=False)


def test_pieces_that_are_tokens():
    found = served([[2, 3, 5]] * 11, 3, asked=3)
    assert found.ttft.value == pytest.approx(2.0)
    assert decode(found.inter_token_samples).tolist() == pytest.approx([1.0, 2.0] * 11)
    assert found.output_tokens == 3
    assert found.notes == []


def test_pieces_of_several_tokens():
    # Two pieces, six tokens: three seconds for the five after the first.
    found = served([[2, 5, 0, 0, 0, 0]] * 11, 6, asked=6)
    assert decode(found.inter_token_samples).tolist() == pytest.approx([0.6] * 11)
    assert found.tokens_per_s.value == pytest.approx(5 / 3)
    assert any("not its tokens" in note for note in found.notes)


def test_answers_that_end_early():
    found = served([[2, 3, 0, 0]] * 11, 2, asked=4)
    assert found.output_tokens == 2
    assert any("ended after 2" in note for note in found.notes)


@pytest.mark.parametrize(
    ("marks", "count"), [([[-1, 3]], 2), ([[2, 1]], 2), ([[2, 30]], 2), ([[2, 3]], 1e300), ([[0, 0]], 2)]
)
def test_tokens_that_cannot_be(marks, count):
    rows = samples([[*row, 0] for row in marks * 11])
    if marks[0][0] < 0:
        rows.marks[:, 0] = rows.start - 1
    rows.marks[:, -1] = count
    with pytest.raises(RunFailedError):
        served_generation(rows, asked=2, window_s=110.0, prompt_tokens=None, image=False)


@pytest.mark.parametrize("marks", [[[3, 1]], [[1, 30]], [[1, 2, 3]]])
def test_steps_that_cannot_be(marks):
    with pytest.raises(RunFailedError):
        step_figures(samples(marks * 11), ["image", "text"], 0, 110.0)


def test_a_picture_that_took_less_than_no_time():
    how = ImagePreprocess(
        height=8, width=8, resize="stretch", resample="bilinear", rescale=1, mean=[0], std=[1], layout="NCHW"
    )
    prepared = Preparation(**how.model_dump(), picture=(480, 640))
    assert preprocessing([], prepared, None) is None
    assert preprocessing([0.5] * 11, prepared, "numpy 2").p50.value == 0.5
    with pytest.raises(RunFailedError):
        preprocessing([0.5, -1.0], prepared, "numpy 2")
