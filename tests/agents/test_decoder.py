"""Writing text: the prompt once, then a token a call, with keys and values of all before; against recursion."""

from __future__ import annotations

from array import array

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argus_edge.agents.runtimes.decoder import Decoder

VOCABULARY = 17
IMAGE = 5
LAYERS, HEADS, WIDTH = 2, 1, 1


class Toy:
    """A decoder whose next token depends on everything it has seen: ids, their positions, image features.

    Its keys hold the token's value times its position plus one, so that a wrong order, mask or position shows.
    """

    def __init__(self, past: int | None) -> None:
        self.past, self.calls = past, []

    def array(self, value):
        return value

    def function(self):
        return self.call

    def call(self, inputs):
        self.calls.append({name: value.copy() for name, value in inputs.items()})
        ids, mask, positions = inputs["ids"], inputs["mask"], inputs["places"]
        features, rows = inputs["features"], iter(inputs["features"])
        values = np.array([float(next(rows)[0]) if token == IMAGE and len(features) else token for token in ids[0]])
        new = (values * (positions[0, 0] + 1)).reshape(1, 1, -1, 1).astype("float32")
        outputs = {}
        for layer in range(LAYERS):
            for kind in ("key", "value"):
                outputs[f"present.{layer}.{kind}"] = np.concatenate([inputs[f"past.{layer}.{kind}"], new], axis=2)
        seen = outputs["present.1.value"][0, 0, :, 0]
        assert mask.shape == (1, len(seen))
        logits = np.full((1, 1, VOCABULARY), -1.0, "float32")
        best = int((seen * mask[0]).sum()) % VOCABULARY
        logits[0, 0, best], logits[0, 0, (best + 1) % VOCABULARY] = 2.0, 1.0
        outputs["logits"] = logits
        return outputs


def how(past=None, output_tokens=4):
    kv = {
        "layers": LAYERS,
        "kv_heads": HEADS,
        "head_dim": WIDTH,
        "layout": ["batch", "kv_heads", "past", "head_dim"],
        "dtype": "float32",
        "past_key": "past.{layer}.key",
        "past_value": "past.{layer}.value",
        "present_key": "present.{layer}.key",
        "present_value": "present.{layer}.value",
    }
    return {
        "input_ids": "ids",
        "attention_mask": "mask",
        "position_ids": "places",
        "image_features": "features",
        "image_token_id": IMAGE,
        "logits": "logits",
        "kv": kv,
        "past": past,
        "output_tokens": output_tokens,
    }


def prompt_of(ids):
    places = np.arange(len(ids)).reshape(1, 1, -1).repeat(3, axis=0)
    return {"ids": np.array([ids]), "mask": np.ones((1, len(ids)), "int64"), "places": places}


def write(toy, ids, features, output_tokens=4):
    feeds = {"prefill": {"features": "vision.features"}, "decode": {}}
    decoder = Decoder(toy, how(toy.past, output_tokens), prompt_of(ids), feeds)
    row = array("d", [0.0] * (output_tokens + 1))
    decoder.write({"vision": {"features": np.array(features, "float32").reshape(1, -1, 1)}}, row, 1)
    return decoder, row


def expected(ids, features, count):
    """The same recursion without any cache."""
    rows = iter(features)
    total = sum((next(rows) if token == IMAGE else token) * (place + 1) for place, token in enumerate(ids))
    written = []
    for _ in range(count):
        token = int(total) % VOCABULARY
        if token == IMAGE:  # a placeholder is never written: the next best is
            token = (token + 1) % VOCABULARY
        written.append(token)
        total += token * (len(ids) + len(written))
    return written


plain = st.integers(0, VOCABULARY - 1).filter(lambda token: token != IMAGE)
prompts = st.tuples(
    st.lists(plain, min_size=1, max_size=5),
    st.lists(st.integers(1, 9), max_size=3),
    st.lists(plain, max_size=3),
)


@settings(deadline=None)
@given(prompt=prompts, past=st.sampled_from([None, 16, 20]), count=st.integers(1, 6))
def test_it_writes_what_the_recursion_without_a_cache_writes(prompt, past, count) -> None:
    before, features, after = prompt
    ids = [*before, *[IMAGE] * len(features), *after]
    decoder, row = write(Toy(past), ids, features, count)
    assert decoder.written == expected(ids, features, count)
    moments = list(row)[1:]
    assert moments == sorted(moments)
    assert moments[0] > 0
    assert row[0] == 0.0  # the vision's moment is not the decoder's


def test_the_prompt_is_one_call_and_then_every_token_one() -> None:
    toy = Toy(None)
    decoder, _ = write(toy, [1, IMAGE, IMAGE, 2], [3, 4])
    assert [call["ids"].shape[1] for call in toy.calls] == [4, 1, 1, 1]
    assert [len(call["features"]) for call in toy.calls] == [2, 0, 0, 0]
    assert [call["mask"].shape[1] for call in toy.calls] == [4, 5, 6, 7]
    assert [call["past.0.key"].shape[2] for call in toy.calls] == [0, 4, 5, 6]
    # After four tokens read and three fed again: two layers of keys and values, a float each.
    assert decoder.cache_bytes() == 7 * 2 * LAYERS * 4


def test_positions_go_on_after_the_largest_of_the_prompt() -> None:
    toy = Toy(None)
    prompt = prompt_of([1, 2, 3])
    prompt["places"][1, 0] = [0, 7, 1]
    feeds = {"prefill": {"features": "vision.features"}, "decode": {}}
    decoder = Decoder(toy, how(), prompt, feeds)
    decoder.write({"vision": {"features": np.zeros((0, 1), "float32")}}, array("d", [0.0] * 5), 1)
    assert [call["places"].tolist() for call in toy.calls[1:]] == [[[[n]]] * 3 for n in (8, 9, 10)]


def test_a_fixed_past_reads_the_prompt_token_by_token_behind_a_mask() -> None:
    toy = Toy(6)
    decoder, _ = write(toy, [1, IMAGE, 2], [3], output_tokens=3)
    assert len(toy.calls) == 5
    assert [call["mask"].sum() for call in toy.calls] == [1, 2, 3, 4, 5]
    assert all(call["past.0.key"].shape[2] == 6 for call in toy.calls)
    assert all(call["mask"][0, -1] == 1 for call in toy.calls)
    assert decoder.cache_bytes() == 7 * 2 * LAYERS * 4


@pytest.mark.parametrize("past", [None, 20])
def test_a_second_call_begins_anew(past) -> None:
    decoder, row = write(Toy(past), [1, 2, 3], [])
    first = list(decoder.written)
    decoder.write({"vision": {"features": np.zeros((0, 1), "float32")}}, row, 1)
    assert decoder.written == first
