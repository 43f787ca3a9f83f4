"""The samples file: what the worker wrote is what is read, however far it came."""

from __future__ import annotations

import errno
import os
import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from argus_edge.agents import samples, wire


@pytest.fixture
def folder(tmp_path):
    yield tmp_path
    samples.discard(tmp_path, 0)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(capacity=st.integers(1, 300), done=st.integers(0, 300), columns=st.sampled_from([2, 3]))
def test_the_calls_that_are_done_are_found_while_the_file_grows(tmp_path_factory, capacity, done, columns) -> None:
    folder, done = tmp_path_factory.mktemp("run"), min(done, capacity)
    writer = samples.SampleWriter(folder, 0, capacity, columns, 4)
    for index in range(done):
        for column in writer.columns:
            column[index] = 1.0 + index
    if done < capacity:
        writer.starts[done] = 1.0 + done  # a call that had begun
    reader = samples.SampleReader.find(folder, 0)
    assert (reader.count(), reader.batch, reader.capacity) == (done, 4, capacity)
    reader.close()

    assert samples.keep(folder, 0) == done
    assert not any(os.path.exists(path) for path in samples.candidates(folder, 0))
    data = (folder / (wire.SAMPLES_FILE % 0)).read_bytes()
    assert struct.unpack_from(wire.SAMPLE_HEADER, data) == (done, done, columns, 4, 0)
    values = struct.unpack_from(f"<{done * columns}d", data, wire.SAMPLE_HEADER_BYTES)
    assert list(values) == [1.0 + index for index in range(done)] * columns
    assert samples.keep(folder, 0) == done  # once more changes nothing


def test_without_shared_memory_the_runs_folder_serves(folder, monkeypatch) -> None:
    monkeypatch.setattr(samples, "SHARED_MEMORY", str(folder / "not there"))
    writer = samples.SampleWriter(folder, 0, 10, 2, 1)
    assert writer.path == str(folder / ".samples-0")
    writer.starts[0], writer.ends[0] = 1.0, 2.0
    assert samples.keep(folder, 0) == 1


def test_no_room_is_an_error_and_not_a_bus_error(folder, monkeypatch) -> None:
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space left"):
        samples.SampleWriter(folder, 0, 10, 2, 1)
    assert list(folder.iterdir()) == []


def test_another_users_file_in_shared_memory_is_not_trusted(folder, monkeypatch) -> None:
    samples.SampleWriter(folder, 0, 10, 2, 1)
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert samples.SampleReader.find(folder, 0) is None


def test_a_link_in_shared_memory_is_not_followed(folder, tmp_path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    path = samples.candidates(folder, 0)[0]
    os.symlink(victim, path)
    writer = samples.SampleWriter(folder, 0, 10, 2, 1)
    assert victim.read_bytes() == b"precious"
    assert not os.path.islink(writer.path)


@pytest.mark.parametrize(
    "content", [b"", b"x" * 63, b"x" * 64, b"\0" * 64, struct.pack("<dddd", 0, 1e9, 2, 1).ljust(64)]
)
def test_what_is_no_samples_file_is_passed_over(folder, content) -> None:
    (folder / (wire.SAMPLES_FILE % 0)).write_bytes(content)
    assert samples.SampleReader.find(folder, 0) is None


def test_the_largest_file_fits_what_the_host_fetches() -> None:
    for columns in (2, 3):
        assert wire.SAMPLE_HEADER_BYTES + 8 * columns * samples.max_capacity(columns) <= wire.MAX_RESULT_BYTES


def test_what_was_open_is_kept_though_its_name_is_gone(folder) -> None:
    writer = samples.SampleWriter(folder, 0, 10, 2, 1)
    writer.starts[0], writer.ends[0] = 1.0, 2.0
    reader = samples.SampleReader.find(folder, 0)
    samples.discard(folder, 0)  # as logind does at logout
    writer.starts[1], writer.ends[1] = 3.0, 4.0
    assert samples.keep(folder, 0, reader) == 2
    assert samples.keep(folder, 0) == 2
