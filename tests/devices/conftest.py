"""Servers that the tests of a module share."""

from __future__ import annotations

import pytest

from argus_edge.devices.ssh import SshTransport
from tests.support import sshd as support


@pytest.fixture(scope="module")
def openssh(tmp_path_factory):
    """OpenSSH's server."""
    if support.SSHD is None:
        pytest.skip("no sshd here")
    with support.serve(tmp_path_factory.mktemp("openssh")) as running:
        yield running


@pytest.fixture(scope="module")
def asyncssh(tmp_path_factory):
    """The in-process server that stands in where there is no sshd."""
    with support.serve(tmp_path_factory.mktemp("asyncssh"), in_process=True) as running:
        yield running


@pytest.fixture(params=["openssh", "asyncssh"])
def server(request):
    """Either server."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def sshd(tmp_path_factory):
    """One SSH server, whichever there is."""
    with support.serve(tmp_path_factory.mktemp("sshd")) as running:
        yield running


@pytest.fixture
def transport(server):
    """A transport to the server."""
    link = SshTransport("board", config=server.config())
    yield link
    link.close()
