"""The misbehaving proxy does what it says."""

from __future__ import annotations

import contextlib
import socket
import threading

import pytest

from tests.support.chaos import Chaos


@pytest.fixture
def echo():
    """The port of a server that sends back what it gets."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(end):
        with end, contextlib.suppress(ConnectionError):
            while data := end.recv(65536):
                end.sendall(data)

    def accept():
        while True:
            try:
                end, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(end,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


@pytest.fixture
def link(echo):
    with Chaos(echo) as proxy:
        yield proxy


def connect(link):
    return socket.create_connection(("127.0.0.1", link.port), timeout=5)


def roundtrip(end, data=b"hello"):
    end.sendall(data)
    received = b""
    while len(received) < len(data):
        chunk = end.recv(65536)
        if not chunk:
            break
        received += chunk
    return received


def test_a_good_link(link):
    with connect(link) as end:
        assert roundtrip(end, b"x" * 100_000) == b"x" * 100_000
        end.shutdown(socket.SHUT_WR)
        assert end.recv(1) == b""
    assert link.passed == 200_000
    assert link.connections == 1


def test_black_hole_keeps_the_connection_open(link):
    with connect(link) as end:
        assert roundtrip(end) == b"hello"
        link.black_hole()
        end.sendall(b"lost?")
        end.settimeout(0.3)
        with pytest.raises(TimeoutError):
            end.recv(1)
        link.restore()
        end.settimeout(5)
        assert end.recv(5) == b"lost?"


def test_reset(link):
    with connect(link) as end:
        assert roundtrip(end) == b"hello"
        link.reset()
        with pytest.raises(ConnectionResetError):
            roundtrip(end)


def test_hanging_up_is_orderly(link):
    with connect(link) as end:
        assert roundtrip(end) == b"hello"
        link.hang_up()
        assert end.recv(1) == b""


def test_cut_after_so_many_bytes_then_good_again(link):
    with connect(link) as end:
        link.cut_after(50_000)
        with pytest.raises(ConnectionError):
            roundtrip(end, b"x" * 1_000_000)
    with connect(link) as end:
        assert roundtrip(end) == b"hello"


def test_refuse(link):
    link.refuse()
    with pytest.raises(ConnectionError), connect(link) as end:
        roundtrip(end)
    link.restore()
    with connect(link) as end:
        assert roundtrip(end) == b"hello"
