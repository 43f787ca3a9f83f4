"""The seam: this machine, OpenSSH and asyncssh must behave alike."""

from __future__ import annotations

import hashlib
import os
import sys

import pytest

from argus_edge.artifacts import sha256_file
from argus_edge.devices.local import LocalTransport
from argus_edge.devices.ssh import SshTransport
from argus_edge.errors import DeviceUnreachableError, InputError, MisfitError, RunFailedError

MIB = 1 << 20


@pytest.fixture(params=["local", "openssh", "asyncssh"])
def device(request, tmp_path, monkeypatch):
    """A transport, and the home folder that it sees."""
    if request.param == "local":
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        (tmp_path / "home").mkdir()
        yield LocalTransport(), tmp_path / "home"
        return
    server = request.getfixturevalue(request.param)
    link = SshTransport("board", config=server.config())
    yield link, server.home
    link.close()


@pytest.fixture
def payload(tmp_path):
    """A file of 5 MiB and some bytes, and its hash."""
    path = tmp_path / "payload"
    path.write_bytes(os.urandom(5 * MIB + 12345))
    return path, sha256_file(path)


class TestRun:
    def test_status_and_both_outputs(self, device):
        done = device[0].run(["sh", "-c", "echo out; echo err >&2; exit 3"], timeout=20)
        assert (done.status, done.stdout, done.stderr) == (3, "out\n", "err\n")

    def test_arguments_are_not_read_by_a_shell(self, device):
        done = device[0].run(["printf", "%s|", "a b", "$HOME", "it's", "*", "\\", "~"], timeout=20)
        assert done.stdout == "a b|$HOME|it's|*|\\|~|"

    def test_a_leading_tilde_is_the_user_s_home_there(self, device):
        transport, home = device
        assert transport.run(["printf", "%s", "~/x y"], timeout=20).stdout == f"{home}/x y"

    def test_stdin_arrives_and_ends(self, device):
        data = os.urandom(3 * MIB)
        done = device[0].run([sys.executable, "-c", HASH_STDIN], timeout=60, stdin=data)
        assert done.stdout.strip() == hashlib.sha256(data).hexdigest()

    def test_without_stdin_a_reader_sees_its_end_at_once(self, device):
        assert device[0].run(["cat"], timeout=20).status == 0

    def test_megabytes_on_both_outputs_do_not_block_each_other(self, device):
        script = "head -c 6000000 /dev/zero >&2; head -c 6000000 /dev/zero; echo end >&2"
        done = device[0].run(["sh", "-c", script], timeout=60, limit=1000)
        assert (done.status, len(done.stdout), len(done.stderr)) == (0, 1000, 1000)

    def test_a_program_that_does_not_exist_is_a_status_not_an_exception(self, device):
        done = device[0].run(["no-such-program-here"], timeout=20)
        assert done.status == 127
        assert "no-such-program-here" in done.stderr

    def test_a_command_that_does_not_end_is_given_up(self, device):
        with pytest.raises(DeviceUnreachableError, match="did not end"):
            device[0].run(["sleep", "60"], timeout=0.5)

    def test_a_child_left_in_the_background_does_not_hold_the_answer_back(self, device):
        done = device[0].run(["sh", "-c", "sleep 20 & echo answered"], timeout=15)
        assert (done.status, done.stdout) == (0, "answered\n")

    def test_bytes_that_are_no_text_are_replaced(self, device):
        assert device[0].run(["printf", "a\\377b"], timeout=20).stdout == "a\ufffdb"


class TestLines:
    def test_lines_come_while_the_command_runs(self, device):
        # The second line comes only once the first was read.
        transport, home = device
        flag = home / "flag"
        script = f"echo one; while [ ! -e '{flag}' ]; do sleep 0.05; done; echo two"
        with transport.lines(["sh", "-c", script], silence=30) as lines:
            assert next(lines) == "one"
            flag.touch()
            assert list(lines) == ["two"]
        flag.unlink()

    def test_silence_is_an_error(self, device):
        with (
            device[0].lines(["sh", "-c", "echo one; sleep 60"], silence=0.5) as lines,
            pytest.raises(DeviceUnreachableError, match="Nothing was heard"),
        ):
            list(lines)

    def test_a_program_may_take_longer_to_start_than_to_say_more(self, device):
        script = "sleep 1; echo one; sleep 60"
        with device[0].lines(["sh", "-c", script], silence=0.2, first=60) as lines:
            assert next(lines) == "one"
            with pytest.raises(DeviceUnreachableError, match=r"Nothing was heard for 0\.2 s"):
                next(lines)

    def test_bytes_without_a_line_s_end_are_silence(self, device):
        with (
            device[0].lines(["sh", "-c", "yes | tr -d '\\n'"], silence=1.0) as lines,
            pytest.raises(DeviceUnreachableError, match="Nothing was heard"),
        ):
            list(lines)

    def test_a_fault_of_whoever_reads_stays_what_it_is(self, device):
        with pytest.raises(FileNotFoundError), device[0].lines(["echo", "one"], silence=30) as lines:
            os.stat(next(lines) + "/nothing")

    def test_leaving_early_ends_the_command_s_channel(self, device):
        transport, _ = device
        with transport.lines(["yes"], silence=20) as lines:
            assert next(lines) == "y"
        assert transport.run(["echo", "still here"], timeout=20).stdout == "still here\n"

    def test_stderr_does_not_get_into_the_lines(self, device):
        with device[0].lines(["sh", "-c", "head -c 3000000 /dev/zero >&2; echo line"], silence=30) as lines:
            assert list(lines) == ["line"]

    def test_a_program_that_does_not_exist_gives_none(self, device):
        with device[0].lines(["no-such-program-here"], silence=20) as lines:
            assert list(lines) == []


class TestFiles:
    def test_a_file_arrives_whole_and_private_and_is_not_sent_again(self, device, payload):
        transport, home = device
        path, digest = payload
        seen = []
        name = f"~/put/{digest}/a file's name.bin"
        assert transport.put(path, name, sha256=digest, progress=lambda *step: seen.append(step)) == path.stat().st_size
        arrived = home / "put" / digest / "a file's name.bin"
        assert sha256_file(arrived) == digest
        assert arrived.stat().st_mode & 0o077 == 0
        assert [item.name for item in arrived.parent.iterdir()] == [arrived.name]
        assert seen[-1] == (path.stat().st_size, path.stat().st_size)
        assert transport.put(path, name, sha256=digest) == 0

    def test_a_file_there_with_other_bytes_is_replaced(self, device, payload):
        transport, home = device
        path, digest = payload
        (home / "x").mkdir(exist_ok=True)
        (home / "x" / "model").write_bytes(b"corrupt")
        transport.put(path, "~/x/model", sha256=digest)
        assert sha256_file(home / "x" / "model") == digest

    def test_a_wrong_hash_leaves_nothing(self, device, payload):
        transport, home = device
        with pytest.raises(RunFailedError, match="wrong hash"):
            transport.put(payload[0], "~/w/model", sha256="0" * 64)
        assert list((home / "w").iterdir()) == []

    def test_an_empty_file(self, device, tmp_path):
        transport, home = device
        empty = tmp_path / "empty"
        empty.touch()
        transport.put(empty, "~/e/empty", sha256=hashlib.sha256().hexdigest())
        assert (home / "e" / "empty").read_bytes() == b""
        transport.get("~/e/empty", tmp_path / "back", limit=10)
        assert (tmp_path / "back").read_bytes() == b""

    def test_fetching_gives_the_same_bytes(self, device, payload, tmp_path):
        transport, home = device
        (home / "out.bin").write_bytes(payload[0].read_bytes())
        transport.get("~/out.bin", tmp_path / "back", limit=10 * MIB)
        assert sha256_file(tmp_path / "back") == payload[1]

    def test_a_file_that_is_too_large_or_missing_is_not_fetched(self, device, tmp_path):
        transport, home = device
        (home / "large").write_bytes(b"x" * 1000)
        with pytest.raises(RunFailedError, match="1000 bytes"):
            transport.get("~/large", tmp_path / "back", limit=999)
        with pytest.raises(RunFailedError):
            transport.get("~/missing", tmp_path / "back", limit=999)
        assert not (tmp_path / "back").exists()

    def test_a_local_file_that_cannot_be_read_is_named(self, device, tmp_path):
        with pytest.raises(InputError) as caught:
            device[0].put(tmp_path / "nothing", "~/n/x", sha256="0" * 64)
        assert str(tmp_path / "nothing") in caught.value.where


class TestUpload:
    """What only a link has: parts that grow, and a board that runs out of room."""

    def test_an_upload_goes_on_where_it_was_cut(self, transport, server, payload):
        path, digest = payload
        part = server.home / "r" / f".model.{digest[:16]}.part"
        part.parent.mkdir(exist_ok=True)
        part.write_bytes(path.read_bytes()[: 3 * MIB + 77])
        assert transport.put(path, "~/r/model", sha256=digest) == path.stat().st_size - 3 * MIB
        assert sha256_file(server.home / "r" / "model") == digest
        assert not part.exists()

    def test_a_rotten_part_is_sent_anew(self, transport, server, payload):
        path, digest = payload
        part = server.home / "rot" / f".model.{digest[:16]}.part"
        part.parent.mkdir(exist_ok=True)
        part.write_bytes(b"\0" * (2 * MIB))
        sent = transport.put(path, "~/rot/model", sha256=digest)
        assert sent == 2 * path.stat().st_size - 2 * MIB
        assert sha256_file(server.home / "rot" / "model") == digest

    def test_a_part_longer_than_the_file_is_sent_anew(self, transport, server, payload):
        path, digest = payload
        part = server.home / "long" / f".model.{digest[:16]}.part"
        part.parent.mkdir(exist_ok=True)
        part.write_bytes(path.read_bytes() + b"more")
        transport.put(path, "~/long/model", sha256=digest)
        assert sha256_file(server.home / "long" / "model") == digest

    def test_a_full_disk_is_said_and_leaves_no_part(self, transport, server, payload, small_disk):
        with pytest.raises(MisfitError, match="no room left"):
            transport.put(payload[0], f"{small_disk}/m/model", sha256=payload[1])
        assert list((small_disk / "m").iterdir()) == []

    def test_a_folder_that_cannot_be_made_is_said(self, transport, payload):
        with pytest.raises((MisfitError, RunFailedError)):
            transport.put(payload[0], "/proc/nothing/model", sha256=payload[1])


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MiB."""
    import subprocess

    folder = tmp_path / "small"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)], capture_output=True, text=True
    )
    if made.returncode:
        pytest.skip(f"a small file system cannot be mounted: {made.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


HASH_STDIN = "import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())"
