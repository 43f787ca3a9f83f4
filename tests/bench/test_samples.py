"""Samples: the agent's file and the report's packed arrays."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from argus_edge.agents import wire
from argus_edge.bench.samples import decode, encode, read_samples
from argus_edge.errors import RunFailedError


def samples_file(path, *columns, capacity=None, count=None):
    rows = capacity or len(columns[0])
    header = struct.pack(wire.SAMPLE_HEADER, count or len(columns[0]), rows, len(columns), 1, 0)
    body = b"".join(np.pad(np.array(c, "<f8"), (0, rows - len(c))).tobytes() for c in columns)
    path.write_bytes(header.ljust(wire.SAMPLE_HEADER_BYTES, b"\0") + body)
    return path


@given(arrays(np.float64, st.integers(0, 50), elements=st.floats(0, 4.0)))
def test_latencies_survive_to_the_nanosecond(values):
    packed = encode(values, "ns")
    assert packed.dtype == "<u4"
    assert np.abs(decode(packed) - values).max(initial=0) <= 0.51e-9


def test_long_times_take_64_bits():
    packed = encode(np.array([1.0, 5000.0]), "us")
    assert packed.dtype == "<u8"
    assert decode(packed).tolist() == [1.0, 5000.0]


def test_a_million_samples_are_compact():
    assert len(encode(np.full(1_000_000, 0.012345), "ns").data) < 5.4e6


def test_calls_that_were_not_done_are_left_out(tmp_path):
    found = read_samples(samples_file(tmp_path / "s", [1.0, 2.0, 3.0], [1.5, 2.25, 0.0], capacity=8))
    assert found.latency.tolist() == [0.5, 0.25]
    assert found.start.tolist() == [1.0, 2.0]


def test_latency_counts_from_the_schedule(tmp_path):
    found = read_samples(samples_file(tmp_path / "s", [1.0, 2.0], [1.5, 2.5], [0.5, 2.0]))
    assert found.latency.tolist() == [1.0, 0.5]


def test_calls_after_the_window_are_left_out(tmp_path):
    assert len(read_samples(samples_file(tmp_path / "s", [1.0, 2.0], [1.5, 2.5]), count=1)) == 1


def test_broken_files_are_refused(tmp_path):
    good = samples_file(tmp_path / "s", [1.0, 2.0], [1.5, 2.5]).read_bytes()
    cases = {
        "empty": b"",
        "header": good[:64].replace(struct.pack("<d", 2.0), struct.pack("<d", 1e300)),
        "short": good[:-1],
        "backwards": samples_file(tmp_path / "b", [5.0], [1.0]).read_bytes(),
        "nan": samples_file(tmp_path / "n", [float("nan")], [1.0]).read_bytes(),
    }
    for name, raw in cases.items():
        path = tmp_path / name
        path.write_bytes(raw)
        with pytest.raises(RunFailedError):
            read_samples(path)
