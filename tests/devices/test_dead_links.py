"""A link that is cut, reset or swallows everything: noticed within 10 s in all we do, and uploads go on after it."""

from __future__ import annotations

import os
import threading
import time

import pytest

from argus_edge.artifacts import sha256_file
from argus_edge.devices import ssh_link
from argus_edge.devices.deploy import deploy_files
from argus_edge.devices.ssh import SshTransport
from argus_edge.errors import DeviceUnreachableError
from argus_edge.schema.device import DeviceEntry
from tests.support.chaos import Chaos

NOTICED_S = 10.0
MIB = 1 << 20


@pytest.fixture
def link(sshd):
    """A transport to the server through the proxy, and the proxy."""
    with Chaos(sshd.port) as proxy:
        transport = SshTransport("board", config=sshd.config(name="chaos", port=proxy.port))
        assert transport.home() == str(sshd.home)
        yield transport, proxy
        proxy.restore()
        transport.close()


def noticed(action, proxy=None) -> float:
    """How long until an action fails with a lost link, from when the proxy swallows bytes, or from the start."""
    cuts = [time.monotonic()]
    if proxy:
        swallow = proxy.black_hole
        proxy.black_hole = lambda: (cuts.append(time.monotonic()), swallow())
    with pytest.raises(DeviceUnreachableError):
        action()
    return time.monotonic() - cuts[min(len(cuts), 2) - 1]


@pytest.fixture
def large(tmp_path):
    """A file of 12 MiB."""
    path = tmp_path / "large"
    path.write_bytes(os.urandom(12 * MIB))
    return path, sha256_file(path)


@pytest.fixture(params=["hurried", pytest.param("as-shipped", marks=pytest.mark.slow)])
def patience(request, monkeypatch):
    """How long it may take to notice: with the figures that users get, or with hurried ones that try the same logic."""
    if request.param == "hurried":
        monkeypatch.setattr(ssh_link, "PROBE_AFTER_S", 0.5)
        monkeypatch.setattr(ssh_link, "DEAD_AFTER_S", 3.0)
    return NOTICED_S


class TestBlackHole:
    """Nothing is closed and the kernel of the next hop answers: only asking the far end tells."""

    def test_a_running_command(self, patience, link):
        transport, proxy = link
        threading.Timer(0.2, proxy.black_hole).start()
        assert noticed(lambda: transport.run(["sleep", "60"], timeout=60)) <= patience + 0.2

    def test_a_new_command(self, patience, link):
        transport, proxy = link
        proxy.black_hole()
        assert noticed(lambda: transport.run(["true"], timeout=60)) <= patience

    def test_following(self, patience, link):
        transport, proxy = link

        def follow():
            with transport.lines(["sh", "-c", "while :; do echo beat; sleep 0.5; done"], silence=60) as lines:
                assert next(lines) == "beat"
                proxy.black_hole()
                list(lines)

        assert noticed(follow, proxy) <= patience

    def test_an_upload(self, patience, link, large):
        transport, proxy = link
        progress = []

        def step(done, _):
            progress.append(done)
            if done > 4 * MIB:
                proxy.black_hole()

        assert noticed(lambda: transport.put(large[0], "~/b/x", sha256=large[1], progress=step), proxy) <= patience

    def test_a_fetch(self, patience, link, large, sshd, tmp_path):
        transport, proxy = link
        (sshd.home / "fetch").write_bytes(large[0].read_bytes())

        def step(done, _):
            if done > 4 * MIB:
                proxy.black_hole()

        assert (
            noticed(lambda: transport.get("~/fetch", tmp_path / "x", limit=1 << 30, progress=step), proxy) <= patience
        )
        assert not (tmp_path / "x").exists()
        assert not list(tmp_path.glob(".x*"))

    def test_when_the_link_is_back_the_next_command_works(self, patience, link):
        transport, proxy = link
        proxy.black_hole()
        noticed(lambda: transport.run(["true"], timeout=60))
        proxy.restore()
        assert transport.run(["echo", "back"], timeout=30).stdout == "back\n"

    def test_a_live_link_that_is_merely_silent_is_kept(self, patience, link):
        transport, _ = link
        first = transport.connect()
        assert transport.run(["sleep", str(ssh_link.DEAD_AFTER_S + 1)], timeout=60).status == 0
        assert transport.connect() is first


class TestReset:
    def test_a_running_command(self, link):
        transport, proxy = link
        threading.Timer(0.2, proxy.reset).start()
        assert noticed(lambda: transport.run(["sleep", "60"], timeout=60)) <= 2

    def test_following(self, link):
        transport, proxy = link

        def follow():
            with transport.lines(["sh", "-c", "echo one; sleep 60"], silence=60) as lines:
                next(lines)
                proxy.reset()
                list(lines)

        assert noticed(follow) <= 2

    def test_an_upload_cut_at_60_percent_goes_on_from_there(self, link, large, sshd):
        transport, proxy = link
        path, digest = large
        proxy.cut_after(int(0.6 * path.stat().st_size))
        with pytest.raises(DeviceUnreachableError):
            transport.put(path, "~/cut/x", sha256=digest)
        assert not (sshd.home / "cut" / "x").exists()
        again = transport.put(path, "~/cut/x", sha256=digest)
        assert sha256_file(sshd.home / "cut" / "x") == digest
        # What was on its way when the link was cut is sent twice: at most a window and a block.
        assert again <= 0.4 * path.stat().st_size + 4 * MIB

    def test_deployment_takes_a_cut_upload_up_by_itself(self, link, large, sshd):
        transport, proxy = link
        proxy.cut_after(5 * MIB)
        deployed = deploy_files(transport, DeviceEntry(name="b", host="board"), {"model.onnx": large[0]})
        assert sha256_file(sshd.home / deployed.path("model.onnx").removeprefix("~/")) == large[1]
        assert proxy.connections >= 2


@pytest.mark.parametrize("cut", [Chaos.black_hole, Chaos.reset])
def test_a_link_that_is_lost_in_the_login_is_no_refusal(sshd, monkeypatch, cut):
    with Chaos(sshd.port) as proxy:
        check = ssh_link._check_host_key

        def check_and_cut(*arguments):
            check(*arguments)
            cut(proxy)

        monkeypatch.setattr(ssh_link, "_check_host_key", check_and_cut)
        monkeypatch.setattr(ssh_link, "AUTH_S", 1.0)
        with pytest.raises(DeviceUnreachableError, match="lost in the login"):
            SshTransport("board", config=sshd.config(name="login", port=proxy.port)).home()


@pytest.mark.slow
def test_a_link_that_is_slow_but_alive_is_not_given_up(link, large):
    transport, proxy = link
    proxy.rate = 1.0 * MIB
    assert transport.put(large[0], "~/slow/x", sha256=large[1]) == 12 * MIB
