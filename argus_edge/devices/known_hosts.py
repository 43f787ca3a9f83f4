"""OpenSSH's known_hosts: which key a host may show, by name, hashed name or certificate authority; what is revoked."""

from __future__ import annotations

import base64
import binascii
import fnmatch
import hashlib
import hmac
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    SSHCertificate,
    SSHCertificateType,
    load_ssh_public_identity,
)
from paramiko import HostKeys

from argus_edge.artifacts import atomic_open, host_errors

CERTIFICATE_SUFFIX = "-cert-v01@openssh.com"
# Key type of a line -> host key algorithms that prove it, strongest first.
ALGORITHMS = {
    "ssh-ed25519": ("ssh-ed25519",),
    "ecdsa-sha2-nistp256": ("ecdsa-sha2-nistp256",),
    "ecdsa-sha2-nistp384": ("ecdsa-sha2-nistp384",),
    "ecdsa-sha2-nistp521": ("ecdsa-sha2-nistp521",),
    "ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256"),
}
PLAIN_ALGORITHMS = tuple(name for names in ALGORITHMS.values() for name in names)


@dataclass(frozen=True)
class Line:
    """One entry of a known_hosts file."""

    marker: Literal["", "@cert-authority", "@revoked"]
    hosts: str
    key_type: str
    key: bytes
    file: str = ""
    number: int = 0


@dataclass(frozen=True)
class Verdict:
    """Whether a host's key is trusted, and if not, why."""

    kind: Literal["trusted", "unknown", "changed", "revoked", "certificate"]
    reason: str = ""
    line: Line | None = None


def read(files: Iterable[Path]) -> list[Line]:
    """Return the entries of some known_hosts files; a missing file has none."""
    lines: list[Line] = []
    for file in files:
        try:
            text = file.read_text("utf-8", "replace")
        except OSError:
            continue
        lines += parse(text, str(file))
    return lines


def parse(text: str, file: str = "") -> list[Line]:
    """Return the entries of a known_hosts file's text; what cannot be read as one trusts nothing and is passed over."""
    lines = []
    for number, raw in enumerate(text.splitlines(), 1):
        fields = raw.split()
        marker = fields.pop(0) if fields and fields[0].startswith("@") else ""
        if len(fields) < 3 or fields[0].startswith("#") or marker not in ("", "@cert-authority", "@revoked"):
            continue
        try:
            key = base64.b64decode(fields[2], validate=True)
        except (binascii.Error, ValueError):
            continue
        lines.append(Line(marker, fields[0], fields[1], key, file, number))  # type: ignore[arg-type]
    return lines


def matches(hosts: str, name: str) -> bool:
    """Tell whether a line's host field covers a name (``host`` or ``[host]:port``): patterns, negations, hashes."""
    name = name.lower()
    found = False
    for pattern in hosts.split(","):
        if pattern.startswith("|1|"):
            found = found or _hash_matches(pattern, name)
        elif pattern.startswith("!"):
            if _glob(name, pattern[1:]):
                return False
        else:
            found = found or _glob(name, pattern)
    return found


def _glob(name: str, pattern: str) -> bool:
    # Only * and ? are wild in known_hosts; a bracket is part of "[host]:port".
    return fnmatch.fnmatchcase(name, pattern.lower().replace("[", "[[]"))


def _hash_matches(pattern: str, name: str) -> bool:
    try:
        _, _, salt, digest = pattern.split("|")
        expected = base64.b64decode(digest, validate=True)
        found = hmac.new(base64.b64decode(salt, validate=True), name.encode(), hashlib.sha1).digest()
    except (ValueError, binascii.Error):
        return False
    return hmac.compare_digest(found, expected)


def lines_for(lines: Sequence[Line], name: str) -> list[Line]:
    """Return the lines that speak of a host; as in ssh, those of the bare host where none names its port."""
    found = [line for line in lines if matches(line.hosts, name)]
    if not found and name.startswith("["):
        host = name[1:].rpartition("]:")[0]
        found = [line for line in lines if matches(line.hosts, host)]
    return found


def algorithms(lines: Sequence[Line]) -> tuple[str, ...]:
    """Return the host key algorithms to offer, best first, given the lines that speak of the host.

    Certificates are asked for only where an authority is listed; listed key types come before others, so that a host
    with several keys shows the one that can be checked.
    """
    certified = any(line.marker == "@cert-authority" for line in lines)
    certificates = [name + CERTIFICATE_SUFFIX for name in PLAIN_ALGORITHMS] if certified else []
    known = {line.key_type for line in lines if line.marker == ""}
    first = [name for kind, names in ALGORITHMS.items() if kind in known for name in names]
    return (*certificates, *first, *(name for name in PLAIN_ALGORITHMS if name not in first))


def fingerprint(key: bytes) -> str:
    """Return a key's fingerprint as ssh shows it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")


def judge(
    lines: Sequence[Line], host: str, key: bytes, certificate: bytes | None, *, now: float | None = None
) -> Verdict:
    """Say whether a host may show this key.

    Parameters
    ----------
    lines
        The lines that speak of the host (:func:`lines_for`).
    host
        The host's name without its port, or its HostKeyAlias: what a certificate must be made out to.
    key
        The plain public key, as a blob.
    certificate
        The certificate's blob where the host showed one.
    now
        Seconds since the epoch, for the certificate's validity.
    """
    revoked = [line for line in lines if line.marker == "@revoked"]
    for line in revoked:
        if line.key == key:
            return Verdict("revoked", "its key is marked @revoked", line)
    reason = ""
    if certificate is not None:
        authorities = [line for line in lines if line.marker == "@cert-authority"]
        reason = check_certificate(certificate, host, authorities, revoked, now=time.time() if now is None else now)
        if not reason:
            return Verdict("trusted")
    plain = [line for line in lines if line.marker == ""]
    for line in plain:
        if line.key == key:
            return Verdict("trusted", line=line)
    if reason:
        return Verdict("certificate", reason)
    same_type = [line for line in plain if line.key_type == _key_type(key)]
    if same_type:
        return Verdict("changed", "known_hosts lists another key", same_type[0])
    return Verdict("unknown", "known_hosts lists no such key", plain[0] if plain else None)


def _key_type(key: bytes) -> str:
    length = int.from_bytes(key[:4], "big")
    return key[4 : 4 + length].decode("ascii", "replace")


def check_certificate(
    certificate: bytes, host: str, authorities: Sequence[Line], revoked: Sequence[Line], *, now: float
) -> str:
    """Return why a host certificate does not hold, or an empty string where it does.

    It must be a host certificate, signed by a listed authority that is not revoked, made out to this host by name,
    valid now, without critical options (none are defined for hosts), and its signature must be right (OpenSSH's
    PROTOCOL.certkeys).
    """
    kind = _key_type(certificate)
    try:
        parsed = load_ssh_public_identity(kind.encode() + b" " + base64.b64encode(certificate))
        if not isinstance(parsed, SSHCertificate):
            return "it is not a certificate"
        authority = base64.b64decode(
            parsed.signature_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).split()[1]
        )
        if parsed.type is not SSHCertificateType.HOST:
            return "it is a user's certificate, not a host's"
        if any(line.key == authority for line in revoked):
            return "its authority is marked @revoked"
        if not any(line.key == authority for line in authorities):
            return f"its authority {fingerprint(authority)} is not listed for this host"
        if host.lower() not in [name.decode("utf-8", "replace").lower() for name in parsed.valid_principals]:
            return "it is not made out to this host"
        if now < parsed.valid_after:
            return "it is not valid yet"
        if now >= parsed.valid_before:
            return "it has expired"
        if parsed.critical_options:
            return "it has critical options that are not understood"
        parsed.verify_cert_signature()
    except InvalidSignature:
        return "its signature is wrong"
    except (ValueError, UnsupportedAlgorithm) as error:
        return f"it cannot be read ({error})"
    return ""


def accept(file: Path, name: str, key: bytes, *, replace: bool, hashed: bool = False) -> None:
    """Add a host's key to a known_hosts file; with ``replace`` drop the plain lines for that name (copy: ``FILE.old``).

    Raises
    ------
    HostError
        The file cannot be written.
    """
    target = file.resolve()
    with host_errors(target):
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        old = target.read_bytes() if target.exists() else b""
    kept = old.splitlines()
    if replace:
        _write(target.with_name(target.name + ".old"), old)
        kept = [
            raw
            for raw in kept
            if not any(line.marker == "" and matches(line.hosts, name) for line in parse(_text(raw)))
        ]
    listed = HostKeys.hash_host(name) if hashed else name
    kept.append(f"{listed} {_key_type(key)} {base64.b64encode(key).decode()}".encode())
    _write(target, b"\n".join(kept) + b"\n")


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _write(path: Path, data: bytes) -> None:
    with atomic_open(path, private=True) as file:
        file.write(data)
