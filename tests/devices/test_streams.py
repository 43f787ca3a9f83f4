"""Output is held up to a limit and cut into lines that cannot grow without end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from argus_edge.devices.streams import Capture, LineSplitter


@given(st.lists(st.binary(max_size=30)), st.integers(0, 50))
def test_a_capture_keeps_the_first_bytes_and_counts_all(chunks, limit):
    capture = Capture(limit)
    for chunk in chunks:
        capture.add(chunk)
    whole = b"".join(chunks)
    assert capture.total == len(whole)
    assert capture.text() == whole[:limit].decode("utf-8", "replace")


@given(st.text(alphabet="ab\nü ", max_size=80), st.integers(1, 7))
def test_lines_do_not_depend_on_how_the_chunks_fall(text, size):
    data = text.encode()
    splitter = LineSplitter()
    lines = []
    for at in range(0, len(data), size):
        lines += splitter.feed(data[at : at + size])
    lines += splitter.end()
    expected = text.split("\n")
    assert lines == (expected[:-1] if expected[-1] == "" else expected)


def test_a_line_without_an_end_takes_no_more_than_its_limit():
    splitter = LineSplitter(limit=100)
    for _ in range(1000):
        assert list(splitter.feed(b"x" * 65536)) == []
    assert list(splitter.feed(b"\nnext\n")) == ["x" * 100, "next"]
