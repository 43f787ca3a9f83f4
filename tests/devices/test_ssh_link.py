"""Opening a connection: trust, keys, jump hosts, and what is said when any of them fails."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import shlex
import shutil
import socket
import subprocess
import threading
import time

import pytest

from argus_edge.devices import known_hosts
from argus_edge.devices.deploy import deploy_files
from argus_edge.devices.ssh import SshTransport
from argus_edge.devices.trust import trust
from argus_edge.errors import DeviceUnreachableError, DeviceUntrustedError, RunFailedError, UsageError
from argus_edge.schema.device import DeviceEntry
from tests.support import sshd as support
from tests.support.sshd import KEYGEN, free_port, make_key, public_key, serve


def says_hello(config, address="board") -> bool:
    link = SshTransport(address, config=config)
    try:
        return link.run(["echo", "hello"], timeout=30).stdout == "hello\n"
    finally:
        link.close()


def fingerprint(key) -> str:
    return known_hosts.fingerprint(base64.b64decode(public_key(key).split()[1]))


@contextlib.contextmanager
def listener(behaviour):
    """A TCP server that treats each connection as it is told."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=behaviour, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """The key of a certificate authority."""
    return make_key(tmp_path_factory.mktemp("ca") / "ca")


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Two servers with one user's key: a jump host and a board."""
    if support.SSHD is None:
        pytest.skip("no sshd here")
    folder = tmp_path_factory.mktemp("pair")
    with serve(folder / "near") as near, serve(folder / "far", user_key=near.user_key) as far:
        yield near, far


class TestHostKeys:
    def test_an_unknown_key_is_refused_with_its_fingerprint_and_the_command_that_accepts_it(self, sshd):
        with pytest.raises(DeviceUntrustedError) as caught:
            says_hello(sshd.config(name="unknown", known_hosts=""))
        shown = fingerprint(sshd.host_key)
        assert shown in caught.value.what
        assert f"argus-edge device trust board {shown}" in caught.value.next_step

    def test_a_changed_key_is_refused_and_the_line_named(self, sshd, tmp_path):
        other = make_key(tmp_path / "other")
        line = f"[127.0.0.1]:{sshd.port} " + " ".join(public_key(other).split()[:2])
        with pytest.raises(DeviceUntrustedError, match="CHANGED") as caught:
            says_hello(sshd.config(name="changed", known_hosts=f"# first\n{line}\n"))
        assert "changed.known_hosts:2" in caught.value.where
        assert "--replace" in caught.value.next_step

    def test_a_revoked_key_is_refused(self, sshd):
        line = sshd.host_key_line
        with pytest.raises(DeviceUntrustedError, match="revoked"):
            says_hello(sshd.config(name="revoked", known_hosts=f"{line}\n@revoked * {line.split(' ', 1)[1]}\n"))

    def test_of_several_keys_the_listed_one_is_asked_for(self, tmp_path):
        rsa = make_key(tmp_path / "rsa", kind="rsa")
        with serve(tmp_path / "two", more_host_keys=(rsa,)) as server:
            line = f"[127.0.0.1]:{server.port} " + " ".join(public_key(rsa).split()[:2])
            assert says_hello(server.config(known_hosts=line + "\n"))

    @pytest.mark.skipif(KEYGEN is None, reason="no ssh-keygen")
    def test_names_hashed_by_ssh_keygen(self, sshd):
        config = sshd.config(name="hashed")
        file = sshd.folder / "hashed.known_hosts"
        subprocess.run([KEYGEN, "-q", "-H", "-f", str(file)], check=True, capture_output=True)
        assert "127.0.0.1" not in file.read_text()
        assert says_hello(config)

    def test_a_host_key_alias_stands_for_the_name(self, sshd):
        line = "my-board " + sshd.host_key_line.split(" ", 1)[1]
        assert says_hello(sshd.config(name="alias", known_hosts=line, extra="Host board\n HostKeyAlias my-board\n"))


@pytest.mark.skipif(KEYGEN is None, reason="no ssh-keygen")
class TestHostCertificates:
    @pytest.fixture(params=["ed25519", "rsa", "ecdsa"])
    def serve_certified(self, request, authority, tmp_path):
        """A server with a certificate that ssh-keygen signed, and what trusts its authority."""

        @contextlib.contextmanager
        def run(*options):
            key = make_key(tmp_path / "host_key", kind=request.param)
            subprocess.run([KEYGEN, "-q", "-s", str(authority), "-I", "b", "-h", *options, f"{key}.pub"], check=True)
            with serve(tmp_path / "server", host_key=key, host_certificate=tmp_path / "host_key-cert.pub") as server:
                known = "@cert-authority * " + " ".join(public_key(authority).split()[:2]) + "\n"
                yield server.config(known_hosts=known)

        return run

    def test_one_of_a_trusted_authority_lets_us_in(self, serve_certified):
        with serve_certified("-n", "127.0.0.1", "-V", "-1h:+1h") as config:
            assert says_hello(config)

    def test_one_for_another_host_does_not(self, serve_certified):
        refused = pytest.raises(DeviceUntrustedError, match="not made out to this host")
        with serve_certified("-n", "other-board", "-V", "-1h:+1h") as config, refused:
            says_hello(config)

    def test_an_expired_one_does_not(self, serve_certified):
        refused = pytest.raises(DeviceUntrustedError, match="expired")
        with serve_certified("-n", "127.0.0.1", "-V", "-2h:-1h") as config, refused:
            says_hello(config)


class TestTrust:
    def test_the_command_of_the_error_accepts_the_key(self, sshd):
        config = sshd.config(name="accept", known_hosts="")
        with pytest.raises(DeviceUntrustedError) as caught:
            says_hello(config)
        _, _, command = caught.value.next_step.partition("argus-edge device trust ")
        address, shown = shlex.split(command)
        path, _ = trust(address, fingerprint=shown, replace=False, confirm=lambda _: False, config=config)
        assert path == sshd.folder / "accept.known_hosts"
        assert says_hello(config)
        assert trust("board", fingerprint=shown, replace=False, confirm=lambda _: False, config=config)[0] is None

    def test_another_fingerprint_accepts_nothing(self, sshd):
        config = sshd.config(name="wrong", known_hosts="")
        with pytest.raises(DeviceUntrustedError, match="shows another key"):
            trust("board", fingerprint="SHA256:something", replace=False, confirm=lambda _: True, config=config)
        assert (sshd.folder / "wrong.known_hosts").read_text() == ""

    def test_without_a_fingerprint_the_user_decides(self, sshd):
        config = sshd.config(name="ask", known_hosts="")
        asked = []
        with pytest.raises(UsageError, match="not accepted"):
            trust("board", fingerprint=None, replace=False, confirm=lambda key: bool(asked.append(key)), config=config)
        assert asked == [fingerprint(sshd.host_key)]
        trust("board", fingerprint=None, replace=False, confirm=lambda _: True, config=config)
        assert says_hello(config)

    def test_a_changed_key_needs_replace(self, sshd, tmp_path):
        other = make_key(tmp_path / "other")
        old = f"[127.0.0.1]:{sshd.port} " + " ".join(public_key(other).split()[:2])
        config = sshd.config(name="replace", known_hosts=old)
        with pytest.raises(DeviceUntrustedError, match="CHANGED"):
            trust("board", fingerprint=None, replace=False, confirm=lambda _: True, config=config)
        trust("board", fingerprint=fingerprint(sshd.host_key), replace=True, confirm=lambda _: False, config=config)
        assert says_hello(config)


class TestKeys:
    def test_a_refused_key_names_ssh_copy_id(self, sshd, tmp_path):
        stranger = make_key(tmp_path / "stranger")
        config = sshd.config(name="refused", extra=f"IdentityFile {stranger}\n")
        config.write_text(config.read_text().replace(f"IdentityFile {sshd.user_key}", ""))
        with pytest.raises(DeviceUntrustedError, match="refused our key") as caught:
            says_hello(config)
        assert caught.value.next_step == f"ssh-copy-id -p {sshd.port} {sshd.user}@127.0.0.1"

    @pytest.mark.parametrize("kind", ["rsa", "ecdsa"])
    def test_other_kinds_of_key(self, tmp_path, kind):
        with serve(tmp_path / "s", user_key=make_key(tmp_path / "key", kind=kind)) as server:
            assert says_hello(server.config())

    def test_a_key_with_a_passphrase_names_ssh_add(self, tmp_path):
        key = make_key(tmp_path / "key", passphrase="secret")
        refused = pytest.raises(DeviceUntrustedError, match=f"passphrase: ssh-add {key}")
        with serve(tmp_path / "s", user_key=key) as server, refused:
            says_hello(server.config())

    def test_no_key_at_all(self, sshd, tmp_path):
        config = sshd.config(name="none")
        config.write_text(config.read_text().replace(str(sshd.user_key), str(tmp_path / "missing")))
        with pytest.raises(DeviceUntrustedError, match=r"no key to show.*missing does not exist"):
            says_hello(config)

    @pytest.fixture
    def agent(self, tmp_path, monkeypatch):
        """A real ssh-agent; what it holds is added with ssh-add."""
        if not shutil.which("ssh-agent") or not shutil.which("ssh-add"):
            pytest.skip("no ssh-agent")
        path = tmp_path / "agent.sock"
        process = subprocess.Popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
        for _ in range(500):
            if path.exists():
                break
            threading.Event().wait(0.01)
        yield lambda key: subprocess.run(["ssh-add", "-q", str(key)], check=True)
        process.terminate()
        process.wait(10)

    def test_a_key_of_the_agent_lets_us_in(self, sshd, agent):
        agent(sshd.user_key)
        config = sshd.config(name="agent")
        text = config.read_text().replace("IdentityAgent none", "").replace("IdentitiesOnly yes", "")
        config.write_text(text.replace(f"IdentityFile {sshd.user_key}", "IdentityFile none"))
        assert says_hello(config)

    @pytest.mark.skipif(support.SSHD is None, reason="asyncssh lets a client try one key, as paramiko asks")
    def test_too_many_keys(self, sshd, agent, tmp_path):
        for number in range(7):
            agent(make_key(tmp_path / f"stranger{number}"))
        config = sshd.config(name="many")
        text = config.read_text().replace("IdentityAgent none", "").replace("IdentitiesOnly yes", "")
        config.write_text(text.replace(f"IdentityFile {sshd.user_key}", ""))
        with pytest.raises(DeviceUntrustedError, match="too many keys"):
            says_hello(config)

    def test_the_agent_that_the_config_names(self, sshd, agent, monkeypatch):
        agent(sshd.user_key)
        path = os.environ["SSH_AUTH_SOCK"]
        monkeypatch.setenv("SSH_AUTH_SOCK", "/nowhere")
        config = sshd.config(name="named-agent")
        text = (
            config.read_text().replace("IdentityAgent none", f"IdentityAgent {path}").replace("IdentitiesOnly yes", "")
        )
        config.write_text(text.replace(f"IdentityFile {sshd.user_key}", "IdentityFile none"))
        assert says_hello(config)

    def test_an_agent_that_never_answers_is_passed_over(self, sshd, tmp_path, monkeypatch):
        monkeypatch.setattr("argus_edge.devices.ssh_link.AUTH_S", 1.0)
        with socket.socket(socket.AF_UNIX) as mute:
            mute.bind(str(tmp_path / "mute.sock"))
            mute.listen()
            monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "mute.sock"))
            config = sshd.config(name="mute-agent")
            config.write_text(config.read_text().replace("IdentityAgent none", ""))
            assert says_hello(config)

    def test_identities_only_keeps_the_agent_s_other_keys_back(self, sshd, agent, tmp_path):
        agent(sshd.user_key)
        stranger = make_key(tmp_path / "stranger")
        config = sshd.config(name="only")
        config.write_text(
            config.read_text().replace("IdentityAgent none", "").replace(str(sshd.user_key), str(stranger))
        )
        with pytest.raises(DeviceUntrustedError, match="refused our key"):
            says_hello(config)

    @pytest.mark.skipif(KEYGEN is None, reason="no ssh-keygen")
    def test_the_agent_signs_for_a_key_file_that_has_a_passphrase(self, tmp_path, agent, monkeypatch):
        key = make_key(tmp_path / "key")
        agent(key)
        # As it was added, then locked away.
        subprocess.run([KEYGEN, "-q", "-p", "-P", "", "-N", "secret", "-f", str(key)], check=True, capture_output=True)
        with serve(tmp_path / "s", user_key=key) as server:
            config = server.config()
            config.write_text(config.read_text().replace("IdentityAgent none", ""))
            assert says_hello(config)

    def test_a_dead_agent_is_passed_over(self, sshd, tmp_path, monkeypatch):
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "nobody.sock"))
        config = sshd.config(name="dead-agent")
        config.write_text(config.read_text().replace("IdentityAgent none", "").replace("IdentitiesOnly yes", ""))
        assert says_hello(config)


class TestJumps:
    """Really through two servers: the far one is reached on an address that only the near one is told."""

    def config(self, pair, jump, extra=""):
        near, far = pair
        path = near.folder / "jump.config"
        known = near.folder / "jump.known_hosts"
        known.write_text(near.host_key_line + "\n" + far.host_key_line + "\n")
        path.write_text(
            f"{extra}Host far\n HostName 127.0.0.1\n Port {far.port}\n ProxyJump {jump}\n"
            f"Host near\n HostName 127.0.0.1\n Port {near.port}\n"
            f"Host again\n HostName 127.0.0.1\n Port {near.port}\n"
            f"Host *\n User {near.user}\n IdentityFile {near.user_key}\n IdentityAgent none\n"
            f" UserKnownHostsFile {known}\n GlobalKnownHostsFile none\n"
        )
        return path

    @pytest.mark.parametrize("jump", ["near", "near,again", "none"])
    def test_a_chain(self, pair, jump):
        link = SshTransport("far", config=self.config(pair, jump))
        done = link.run(["sh", "-c", "echo $SSH_CONNECTION $HOME"], timeout=30)
        link.close()
        assert done.stdout.split()[3:] == [str(pair[1].port), str(pair[1].home)]
        hops = 0 if jump == "none" else len(jump.split(","))
        beneath = link_depth(SshTransport("far", config=self.config(pair, jump)))
        assert beneath == hops

    def test_the_jump_host_s_own_jump_is_followed(self, pair):
        config = self.config(pair, "near", extra="Host near\n ProxyJump again\n")
        assert link_depth(SshTransport("far", config=config)) == 2

    def test_a_circle_is_found(self, pair):
        with pytest.raises(UsageError, match="circle"):
            says_hello(self.config(pair, "near", extra="Host near\n ProxyJump far\n"), "far")

    def test_a_far_host_that_is_off_names_the_jump_host(self, pair):
        config = self.config(pair, "near")
        config.write_text(config.read_text().replace(f"Port {pair[1].port}", f"Port {free_port()}"))
        with pytest.raises(DeviceUnreachableError, match="jump host") as caught:
            says_hello(config, "far")
        assert str(pair[0].port) in caught.value.what

    def test_an_untrusted_jump_host_is_refused(self, pair):
        config = self.config(pair, "near")
        (pair[0].folder / "jump.known_hosts").write_text(pair[1].host_key_line + "\n")
        with pytest.raises(DeviceUntrustedError) as caught:
            says_hello(config, "far")
        assert "device trust near" in caught.value.next_step


def link_depth(transport: SshTransport) -> int:
    link = transport.connect()
    depth = 0
    while link._beneath:
        link, depth = link._beneath, depth + 1
    transport.close()
    return depth


class TestNobodyThere:
    def test_a_port_where_nothing_listens(self, sshd):
        with pytest.raises(DeviceUnreachableError, match="refused the connection") as caught:
            says_hello(sshd.config(name="off", port=free_port()))
        assert "sshd" in caught.value.next_step

    def test_a_name_that_does_not_exist(self, sshd):
        with pytest.raises(DeviceUnreachableError, match="cannot be resolved"):
            says_hello(sshd.config(name="name"), "pi@no-such-host.invalid")

    def test_something_that_is_not_ssh(self, sshd):
        def web(connection):
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n" * 200)
            connection.close()

        with listener(web) as port, pytest.raises(DeviceUnreachableError, match="no SSH we can use"):
            says_hello(sshd.config(name="web", port=port))

    def test_something_that_never_says_a_word(self, sshd, monkeypatch):
        monkeypatch.setattr("argus_edge.devices.ssh_link.CONNECT_S", 0.5)
        with listener(lambda connection: threading.Event().wait(60)) as port, pytest.raises(DeviceUnreachableError):
            says_hello(sshd.config(name="mute", port=port))

    def test_something_that_talks_without_end(self, sshd, monkeypatch):
        monkeypatch.setattr("argus_edge.devices.ssh_link.CONNECT_S", 1.0)

        def babble(connection):
            with contextlib.suppress(OSError):
                while True:
                    connection.sendall(b"\x1b[2J" * 1000)

        with listener(babble) as port, pytest.raises(DeviceUnreachableError) as caught:
            says_hello(sshd.config(name="babble", port=port))
        assert "\x1b" not in str(caught.value)


class TestLogins:
    """What a board's login does before our command runs."""

    def test_a_login_that_talks_on_stdout(self, tmp_path):
        noisy = 'echo "Welcome to \\033[1mUbuntu\\033[0m"; echo "ARGUS-EDGE"; exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"'
        with serve(tmp_path / "noisy", force_command=noisy) as server:
            link = SshTransport("board", config=server.config())
            assert link.home() == str(server.home)
            data = tmp_path / "data"
            data.write_bytes(os.urandom(100_000))
            digest = hashlib.sha256(data.read_bytes()).hexdigest()
            assert link.put(data, "~/d/data", sha256=digest) == 100_000
            assert link.put(data, "~/d/data", sha256=digest) == 0
            link.get("~/d/data", tmp_path / "back", limit=1 << 20)
            link.close()
            assert (tmp_path / "back").read_bytes() == data.read_bytes()

    @pytest.mark.parametrize("shell", ["fish", "tcsh", "zsh", "bash"])
    def test_a_login_shell_that_is_not_posix(self, tmp_path, shell):
        path = shutil.which(shell)
        if path is None:
            pytest.skip(f"no {shell} here")
        with serve(tmp_path / "s", force_command=f'exec {path} -c "$SSH_ORIGINAL_COMMAND"') as server:
            link = SshTransport("board", config=server.config())
            assert (
                link.run(["printf", "%s|", "it's", "a\\b", "$HOME", "x!y"], timeout=30).stdout == "it's|a\\b|$HOME|x!y|"
            )
            data = tmp_path / "data"
            data.write_bytes(b"x" * 100_000)
            digest = hashlib.sha256(data.read_bytes()).hexdigest()
            assert link.put(data, "~/it's here/data", sha256=digest) == 100_000
            link.close()
            assert (server.home / "it's here" / "data").exists()

    def test_a_login_that_may_run_nothing(self, tmp_path):
        with serve(tmp_path / "s", force_command="echo 'This account is currently not available.'; exit 1") as server:
            with pytest.raises(Exception, match="does not run commands as expected") as caught:
                SshTransport("board", config=server.config()).home()
            assert "not available" in caught.value.what


def test_a_lost_connection_is_opened_anew_by_the_next_command(sshd):
    link = SshTransport("board", config=sshd.config(name="again"))
    assert link.run(["echo", "1"], timeout=30).status == 0
    link.connect().transport.sock.close()
    deadline = time.monotonic() + 30
    while link.connect().transport.is_active() and time.monotonic() < deadline:
        try:
            assert link.run(["echo", "2"], timeout=30).stdout == "2\n"
            break
        except DeviceUnreachableError:
            continue
    assert link.run(["echo", "3"], timeout=30).stdout == "3\n"
    link.close()


def test_a_board_with_busybox_for_all_its_programs(tmp_path):
    busybox = shutil.which("busybox")
    if busybox is None:
        pytest.skip("no busybox here")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "cat", "dd", "wc", "df", "tail", "mv", "rm", "mkdir", "sha256sum", "date"):
        (programs / name).symlink_to(busybox)
    shell = f'export PATH={programs}; exec {busybox} sh -c "$SSH_ORIGINAL_COMMAND"'
    data = tmp_path / "data"
    data.write_bytes(os.urandom(3 << 20))
    digest = hashlib.sha256(data.read_bytes()).hexdigest()
    with serve(tmp_path / "s", force_command=shell) as server:
        link = SshTransport("board", config=server.config())
        entry = DeviceEntry(name="b", host="board")
        folder = deploy_files(link, entry, {"model.onnx": data}).folder
        assert deploy_files(link, entry, {"model.onnx": data}).sent_bytes == 0
        link.get(f"{folder}/model.onnx", tmp_path / "back", limit=1 << 30)
        link.close()
    assert hashlib.sha256((tmp_path / "back").read_bytes()).hexdigest() == digest


def test_a_command_that_writes_without_end_is_given_up(sshd):
    link = SshTransport("board", config=sshd.config(name="flood"))
    with pytest.raises(RunFailedError, match="without end"):
        link.run(["yes"], timeout=120, limit=1000)
    assert link.run(["echo", "next"], timeout=30).stdout == "next\n"
    link.close()
