"""A real PostgreSQL server of the tests' own, on a socket in a temporary folder."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


def _programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    program = shutil.which("initdb")
    return Path(program).parent if program else None


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """Return the URL of an empty database; skipped where PostgreSQL or its driver is not installed."""
    pytest.importorskip("psycopg", reason="no PostgreSQL driver (psycopg)")
    programs = _programs()
    if programs is None:
        pytest.skip("no PostgreSQL server (Debian's package postgresql)")
    user: list[str] = []
    folder = Path(tempfile.mkdtemp(prefix="argus-pg-"))
    if os.geteuid() == 0:
        # The server refuses to run as root; Debian's package brings a user for it.
        try:
            owner = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("root without a user postgres to run the server as")
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        user = ["runuser", "-u", "postgres", "--"]
    data = folder / "data"
    run = {"check": True, "cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([*user, str(programs / "initdb"), "-D", str(data), "-U", "argus", "-A", "trust", "-N"], **run)
    options = f"-k {folder} -c listen_addresses='' -c fsync=off"
    start = [*user, str(programs / "pg_ctl"), "-D", str(data), "-w", "-l", str(folder / "log"), "-o", options, "start"]
    subprocess.run(start, **run)
    try:
        yield f"postgresql+psycopg://argus@/postgres?host={folder}"
    finally:
        subprocess.run([*user, str(programs / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop"], **run)
        shutil.rmtree(folder, ignore_errors=True)
