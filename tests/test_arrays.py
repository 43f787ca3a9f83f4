"""Reading .npz files of strangers: plain arrays, or a refusal by name."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest

from argus_edge import bundles
from argus_edge.bundles import load_arrays
from argus_edge.errors import InputError


def test_plain_arrays(tmp_path):
    np.savez(tmp_path / "x.npz", ids=np.arange(3))
    assert load_arrays(tmp_path / "x.npz")["ids"].tolist() == [0, 1, 2]


def test_objects_are_not_unpickled(tmp_path):
    np.savez(tmp_path / "x.npz", x=np.array([{}], dtype=object))
    with pytest.raises(InputError, match="plain arrays"):
        load_arrays(tmp_path / "x.npz")


def test_a_small_file_that_unpacks_to_very_much_is_refused_unread(tmp_path, monkeypatch):
    monkeypatch.setattr(bundles, "UNPACKED_BYTES", 1 << 16)
    np.savez_compressed(tmp_path / "x.npz", x=np.zeros(1 << 20))
    with pytest.raises(InputError, match="unpacks to 8"):
        load_arrays(tmp_path / "x.npz")


@pytest.mark.parametrize(
    "header", [b"{'descr': (", b"{", b"\xff\xfe", b"{'descr': '<f4', 'fortran_order': 0, 'shape': (9e9,)}"]
)
def test_a_header_that_is_none(tmp_path, header):
    member = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", member)
    with pytest.raises(InputError, match="plain arrays"):
        load_arrays(tmp_path / "x.npz")
