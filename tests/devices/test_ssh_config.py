"""The user's ssh_config, read as ssh reads it; where there is an ssh, its own answer (`ssh -G`) is the reference."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from argus_edge.devices.address import parse_address
from argus_edge.devices.ssh_config import load_config, resolve
from argus_edge.errors import UsageError


@pytest.fixture
def config(tmp_path):
    def write(text, **files):
        for name, content in files.items():
            (tmp_path / name).write_text(content)
        path = tmp_path / "config"
        path.write_text(text)
        return load_config(path, tmp_path / "no-system-config")

    return write


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("pi@192.168.1.20", ("pi", "192.168.1.20", None)),
        ("board", (None, "board", None)),
        ("pi@board.local:2222", ("pi", "board.local", 2222)),
        ("ssh://pi@board:22/", ("pi", "board", 22)),
        ("pi@[fe80::1%eth0]:2222", ("pi", "fe80::1%eth0", 2222)),
        ("::1", (None, "::1", None)),
        ("pi@fd00::20", ("pi", "fd00::20", None)),
    ],
)
def test_addresses(address, parts):
    assert parse_address(address) == parts


@pytest.mark.parametrize(
    "address", ["", "-oProxyCommand=id", "pi@-x", "-x@host", "a b", "host:0", "host:99999", "host:x", "@h"]
)
def test_what_is_no_address_is_refused(address):
    with pytest.raises(UsageError):
        parse_address(address)


def test_an_alias_brings_host_port_user_and_key(config, tmp_path):
    target = resolve(
        "nano",
        config(
            "Host nano\n HostName 10.0.0.7\n Port 2222\n User jetson\n"
            f" IdentityFile {tmp_path}/k\n IdentitiesOnly yes\n"
        ),
    )
    assert (target.host, target.port, target.user) == ("10.0.0.7", 2222, "jetson")
    assert target.identity_files == (tmp_path / "k",)
    assert target.identities_only
    assert target.known_as == "[10.0.0.7]:2222"


def test_what_the_address_says_comes_before_the_config(config):
    target = resolve("root@nano:99", config("Host nano\n Port 2222\n User jetson\n"))
    assert (target.user, target.port) == ("root", 99)


def test_include_is_followed_and_does_not_swallow_what_comes_after(config):
    settings = config(
        "Host nano\n Include extra\n Port 2222\nHost *\n User fallback\n", extra="Host other\n User other-user\n"
    )
    assert resolve("nano", settings).port == 2222
    assert resolve("nano", settings).user == "fallback"
    assert resolve("other", settings).user == "other-user" or resolve("other", settings).user == "fallback"


def test_an_include_that_includes_itself_ends(config):
    assert resolve("nano", config("Include config\nHost nano\n User u\n")).user == "u"


@pytest.mark.parametrize(("value", "jumps"), [("none", ()), ("a", ("a",)), ("u@a:22, b", ("u@a:22", "b"))])
def test_proxy_jump(config, value, jumps):
    assert resolve("nano", config(f"Host nano\n ProxyJump {value}\nHost *\n ProxyJump elsewhere\n")).jumps == jumps


def test_proxy_command_is_refused_with_what_to_use_instead(config):
    with pytest.raises(UsageError) as caught:
        resolve("nano", config("Host nano\n ProxyCommand nc %h %p\n"))
    assert "ProxyJump" in caught.value.next_step


def test_a_line_that_cannot_be_read_names_the_file(config, tmp_path):
    with pytest.raises(UsageError) as caught:
        config("Host nano\nHostName\n")
    assert caught.value.where == str(tmp_path / "config")


def test_the_default_keys_are_ssh_s(config):
    names = [path.name for path in resolve("nano", config("")).identity_files]
    assert names == ["id_ed25519", "id_ecdsa", "id_rsa"]


@pytest.mark.skipif(shutil.which("ssh") is None, reason="no ssh to compare with")
@pytest.mark.parametrize("address", ["nano", "pi5", "far.lab", "root@pi5"])
def test_the_same_answer_as_ssh_itself(config, tmp_path, address):
    settings = config(
        "Host nano\n HostName 10.0.0.7\n User jetson\n Port=2222\n ProxyJump none\n"
        "Host pi* !pi4\n User pi\n HostName %h.local\n ProxyJump gate,second:2200\n"
        "Match host far.lab\n User lab\n HostKeyAlias farm\n"
        "Host *\n ProxyJump gate\n User everyone\n"
    )
    out = subprocess.run(
        ["ssh", "-G", "-F", str(tmp_path / "config"), address], capture_output=True, text=True, check=True
    )
    said = dict(line.split(" ", 1) for line in out.stdout.splitlines() if " " in line)
    target = resolve(address, settings)
    assert (target.host, str(target.port), target.user) == (said["hostname"], said["port"], said["user"])
    assert ",".join(target.jumps) == said.get("proxyjump", "")
    assert target.host_key_alias == said.get("hostkeyalias")
