"""Boards for the tests: built once, started once a session; skipped with the reason where they cannot run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.board import stand_in

RUNTIMES = ("numpy", "onnxruntime", "ai-edge-litert")


@pytest.fixture(scope="session")
def boards() -> None:
    """Skip where this machine cannot run stand-ins."""
    reason = stand_in.why_not()
    if reason:
        pytest.skip(reason)


def _board(name: str) -> Iterator[stand_in.Board]:
    stand_in.wheels(name, RUNTIMES)
    with stand_in.running(name) as board:
        yield board


@pytest.fixture(scope="session")
def pi5(boards: None) -> Iterator[stand_in.Board]:
    """A Raspberry Pi 5 on bookworm (Python 3.11)."""
    yield from _board("pi5")


@pytest.fixture(scope="session")
def pi5_trixie(boards: None) -> Iterator[stand_in.Board]:
    """A Raspberry Pi 5 on trixie (Python 3.13)."""
    yield from _board("pi5-trixie")


@pytest.fixture(scope="session")
def jetson_nano(boards: None) -> Iterator[stand_in.Board]:
    """A Jetson Nano's /sys and tools; its Python is Debian's."""
    yield from _board("jetson-nano")
