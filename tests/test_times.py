"""Times as people write them, on the command line and in a plan."""

from __future__ import annotations

import pytest

from argus_edge.times import parse_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("50ms", 0.05), ("800us", 0.0008), ("10 min", 600.0), ("0.2s", 0.2), ("3", 3.0), (".5h", 1800.0)],
)
def test_a_time_is_read_in_its_unit(text, seconds):
    assert parse_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "0", "0ms", "-1s", "nan", "inf", "5 parsecs", "1s2", "9" * 400])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(ValueError, match="is not a time"):
        parse_seconds(text)
