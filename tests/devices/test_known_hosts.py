"""known_hosts: the reference is ssh-keygen, which hashes names, finds lines and signs host certificates."""

from __future__ import annotations

import base64
import subprocess
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_edge.devices import known_hosts as kh
from tests.support.sshd import KEYGEN, make_key, public_key

needs_keygen = pytest.mark.skipif(KEYGEN is None, reason="no ssh-keygen")


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    return {
        name: make_key(folder / name, kind=kind)
        for name, kind in [
            ("host", "ed25519"),
            ("other", "ed25519"),
            ("rsa", "rsa"),
            ("ca", "ed25519"),
            ("ca-rsa", "rsa"),
        ]
    }


def blob(path) -> bytes:
    return base64.b64decode(public_key(path).split()[1])


def text(path) -> str:
    return " ".join(public_key(path).split()[:2])


def verdict(known: str, name: str, host: str, key, certificate=None, **options):
    lines = kh.lines_for(kh.parse(known), name)
    return kh.judge(lines, host, blob(key), certificate, **options)


def sign(keys, tmp_path, *options, ca="ca", key="host"):
    copy = tmp_path / "signed"
    copy.with_name("signed.pub").write_text(public_key(keys[key]) + "\n")
    subprocess.run([KEYGEN, "-q", "-s", str(keys[ca]), "-I", "board", *options, str(copy) + ".pub"], check=True)
    return base64.b64decode(copy.with_name("signed-cert.pub").read_text().split()[1])


def test_a_listed_key_is_trusted_and_another_one_of_its_type_has_changed(keys):
    known = f"# comment\n\nboard,10.0.0.7 {text(keys['host'])} a comment\n"
    assert verdict(known, "board", "board", keys["host"]).kind == "trusted"
    assert verdict(known, "10.0.0.7", "10.0.0.7", keys["host"]).kind == "trusted"
    changed = verdict(known, "board", "board", keys["other"])
    assert (changed.kind, changed.line.number) == ("changed", 3)
    assert verdict(known, "elsewhere", "elsewhere", keys["host"]).kind == "unknown"


def test_a_key_of_a_type_that_is_not_listed_is_unknown_not_changed(keys):
    assert verdict(f"board {text(keys['host'])}", "board", "board", keys["rsa"]).kind == "unknown"


def test_a_port_has_lines_of_its_own_and_the_bare_host_s_hold_where_it_has_none(keys):
    assert verdict(f"[board]:2222 {text(keys['host'])}", "[board]:2222", "board", keys["host"]).kind == "trusted"
    assert verdict(f"[board]:2222 {text(keys['host'])}", "[board]:22", "board", keys["host"]).kind == "unknown"
    assert verdict(f"board {text(keys['host'])}", "[board]:2222", "board", keys["host"]).kind == "trusted"
    both = f"board {text(keys['host'])}\n[board]:2222 {text(keys['other'])}"
    assert verdict(both, "[board]:2222", "board", keys["host"]).kind == "changed"


def test_patterns_and_negations():
    assert kh.matches("*.lab,!secret.lab", "pi.lab")
    assert not kh.matches("*.lab,!secret.lab", "secret.lab")
    assert kh.matches("pi?", "PI5")
    assert kh.matches("[10.0.0.*]:2222", "[10.0.0.7]:2222")
    assert not kh.matches("[ab]", "a")


@needs_keygen
@pytest.mark.parametrize("name", ["board.lab", "[10.0.0.7]:2222"])
def test_names_hashed_by_ssh_keygen_are_found(keys, tmp_path, name):
    file = tmp_path / "known_hosts"
    file.write_text(f"{name} {text(keys['host'])}\n")
    subprocess.run([KEYGEN, "-q", "-H", "-f", str(file)], check=True, capture_output=True)
    hashed = file.read_text()
    assert name not in hashed
    assert "|1|" in hashed
    host = name.strip("[]").split("]")[0]
    assert verdict(hashed, name, host, keys["host"]).kind == "trusted"
    assert verdict(hashed, name, host, keys["other"]).kind == "changed"
    assert kh.lines_for(kh.parse(hashed), "elsewhere") == []


def test_a_revoked_key_is_refused_though_it_is_listed(keys):
    known = f"board {text(keys['host'])}\n@revoked * {text(keys['host'])}"
    assert verdict(known, "board", "board", keys["host"]).kind == "revoked"


@needs_keygen
def test_fingerprints_are_those_of_ssh_keygen(keys):
    for key in keys.values():
        shown = subprocess.run([KEYGEN, "-lf", f"{key}.pub"], capture_output=True, text=True, check=True).stdout
        assert kh.fingerprint(blob(key)) == shown.split()[1]


@needs_keygen
class TestCertificates:
    """Really signed by ssh-keygen."""

    @pytest.mark.parametrize("ca", ["ca", "ca-rsa"])
    def test_one_of_a_listed_authority_is_trusted(self, keys, tmp_path, ca):
        certificate = sign(keys, tmp_path, "-h", "-n", "board,10.0.0.7", "-V", "-1h:+1h", ca=ca)
        known = f"@cert-authority *.lab,board {text(keys[ca])}"
        assert verdict(known, "board", "board", keys["host"], certificate).kind == "trusted"

    @pytest.mark.parametrize(
        ("options", "now", "reason"),
        [
            (["-h", "-n", "elsewhere"], 0, "not made out to this host"),
            (["-h"], 0, "not made out to this host"),
            (["-h", "-n", "board", "-V", "-2h:-1h"], 0, "expired"),
            (["-h", "-n", "board", "-V", "+1h:+2h"], 0, "not valid yet"),
            (["-h", "-n", "board", "-V", "-1h:+1h"], 7200, "expired"),
            (["-n", "board"], 0, "user's certificate"),
        ],
    )
    def test_one_that_does_not_hold_is_refused_with_the_reason(self, keys, tmp_path, options, now, reason):
        certificate = sign(keys, tmp_path, *options)
        known = f"@cert-authority * {text(keys['ca'])}"
        found = verdict(known, "board", "board", keys["host"], certificate, now=time.time() + now)
        assert found.kind == "certificate"
        assert reason in found.reason

    def test_one_of_another_authority_is_refused(self, keys, tmp_path):
        certificate = sign(keys, tmp_path, "-h", "-n", "board", ca="other")
        found = verdict(f"@cert-authority * {text(keys['ca'])}", "board", "board", keys["host"], certificate)
        assert "not listed" in found.reason

    def test_an_authority_for_other_hosts_does_not_count(self, keys, tmp_path):
        certificate = sign(keys, tmp_path, "-h", "-n", "board")
        assert (
            verdict(f"@cert-authority *.lab {text(keys['ca'])}", "board", "board", keys["host"], certificate).kind
            != "trusted"
        )

    def test_a_revoked_authority_or_key_is_refused(self, keys, tmp_path):
        certificate = sign(keys, tmp_path, "-h", "-n", "board")
        authority = f"@cert-authority * {text(keys['ca'])}\n"
        assert (
            verdict(authority + f"@revoked * {text(keys['ca'])}", "board", "board", keys["host"], certificate).kind
            == "certificate"
        )
        assert (
            verdict(authority + f"@revoked * {text(keys['host'])}", "board", "board", keys["host"], certificate).kind
            == "revoked"
        )

    def test_a_changed_byte_breaks_it(self, keys, tmp_path):
        certificate = sign(keys, tmp_path, "-h", "-n", "board", "-V", "-1h:+1h")
        authorities = kh.parse(f"@cert-authority * {text(keys['ca'])}")
        now = time.time()
        assert kh.check_certificate(certificate, "board", authorities, [], now=now) == ""
        for at in range(len(certificate)):
            broken = certificate[:at] + bytes([certificate[at] ^ 1]) + certificate[at + 1 :]
            assert kh.check_certificate(broken, "board", authorities, [], now=now) != "", at

    def test_a_plain_line_still_counts_where_the_certificate_does_not(self, keys, tmp_path):
        certificate = sign(keys, tmp_path, "-h", "-n", "elsewhere")
        known = f"@cert-authority * {text(keys['ca'])}\nboard {text(keys['host'])}"
        assert verdict(known, "board", "board", keys["host"], certificate).kind == "trusted"


def test_known_key_types_are_asked_for_first_and_certificates_only_where_an_authority_is_listed(keys):
    lines = kh.parse(f"board {text(keys['rsa'])}")
    assert kh.algorithms(lines)[:2] == ("rsa-sha2-512", "rsa-sha2-256")
    assert set(kh.algorithms([])) == set(kh.algorithms(lines)) == set(kh.PLAIN_ALGORITHMS)
    certified = kh.algorithms(kh.parse(f"@cert-authority * {text(keys['ca'])}"))
    assert certified[0] == "ssh-ed25519-cert-v01@openssh.com"
    assert not any("cert" in name for name in kh.algorithms(lines))


@given(st.text(max_size=300))
def test_no_text_breaks_the_parser(raw):
    for line in kh.parse(raw):
        kh.matches(line.hosts, "board")


@given(st.binary(max_size=200))
def test_no_bytes_break_the_certificate_check(raw):
    assert kh.check_certificate(raw, "board", [], [], now=0.0) != ""


class TestAccept:
    def test_a_key_is_added_and_the_rest_stays_byte_for_byte(self, keys, tmp_path):
        file = tmp_path / "ssh" / "known_hosts"
        file.parent.mkdir()
        file.write_bytes(b"# caf\xe9\nother " + text(keys["other"]).encode())
        kh.accept(file, "board", blob(keys["host"]), replace=False)
        assert file.read_bytes().startswith(b"# caf\xe9\nother ")
        assert verdict(file.read_text("latin-1"), "board", "board", keys["host"]).kind == "trusted"
        assert file.stat().st_mode & 0o777 == 0o600

    def test_replacing_drops_only_that_host_s_lines_and_keeps_a_copy(self, keys, tmp_path):
        file = tmp_path / "known_hosts"
        old = f"board {text(keys['other'])}\nelse {text(keys['other'])}\n@revoked * {text(keys['rsa'])}\n"
        file.write_text(old)
        kh.accept(file, "board", blob(keys["host"]), replace=True)
        assert verdict(file.read_text(), "board", "board", keys["host"]).kind == "trusted"
        assert verdict(file.read_text(), "board", "board", keys["other"]).kind == "changed"
        assert verdict(file.read_text(), "else", "else", keys["other"]).kind == "trusted"
        assert "@revoked" in file.read_text()
        assert (tmp_path / "known_hosts.old").read_text() == old

    def test_a_name_is_hashed_where_the_config_says_so(self, keys, tmp_path):
        file = tmp_path / "known_hosts"
        kh.accept(file, "[board]:2222", blob(keys["host"]), replace=False, hashed=True)
        assert "board" not in file.read_text()
        assert verdict(file.read_text(), "[board]:2222", "board", keys["host"]).kind == "trusted"

    def test_a_linked_file_stays_a_link(self, keys, tmp_path):
        real = tmp_path / "real"
        link = tmp_path / "known_hosts"
        link.symlink_to(real)
        kh.accept(link, "board", blob(keys["host"]), replace=False)
        assert link.is_symlink()
        assert real.exists()
