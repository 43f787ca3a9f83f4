"""What all tests share: where the shared data is, and folders of the user's that no test may touch."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# Machines differ in speed: no test fails for being slow. In CI the examples are the same every time.
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

# A job in the background of a shell ignores Ctrl-C, and so would all that it starts; the tests of Ctrl-C press it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def repo_root() -> Path:
    """The checkout; tests of packaging and import rules read it."""
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Data too large for the repository: ``ARGUS_EDGE_SHARED``, or a folder ``shared`` beside the checkout."""
    folder = Path(os.environ.get("ARGUS_EDGE_SHARED", ROOT.parent / "shared")) / "data"
    if not folder.is_dir():
        pytest.skip(f"no shared data: {folder} is missing (set ARGUS_EDGE_SHARED)")
    return folder


@pytest.fixture(autouse=True)
def own_user_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test has its own configuration, data and cache folders, and never the network's hub."""
    home = tmp_path_factory.mktemp("user")
    for name in ("CONFIG", "DATA", "CACHE", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / name.lower()))
    for name in ("CONFIG", "DATA", "STORE"):
        monkeypatch.delenv(f"ARGUS_EDGE_{name}", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
