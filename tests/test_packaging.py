"""The wheel holds every package and data file of the checkout, under the one import name."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

MAPPED = {
    "agents": "argus_edge/agents",
    "exporters": "argus_edge/exporters",
    "profiles": "argus_edge/profiles",
    "docs": "argus_edge/docs",
}


@pytest.mark.slow
def test_the_wheel_holds_what_the_checkout_holds(repo_root: Path, tmp_path: Path) -> None:
    # A clone, so that the build writes nothing into the checkout.
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(repo_root), str(clone)], check=True)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(clone)], check=True
    )
    (wheel,) = tmp_path.glob("argus_edge-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert not any(name.split("/")[0] in (*MAPPED, "tests") for name in names)
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "argus_edge", *MAPPED], cwd=clone, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    expected = {MAPPED.get(top, top) + "/" + rest for top, _, rest in (name.partition("/") for name in tracked if name)}
    assert expected - names == set()
    # Without a checkout: what a message names is there.
    installed = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(installed)
    code = "from argus_edge.errors import located; print(located('docs/budgets.md profiles/budgets/'))"
    said = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    page, starters = (Path(word) for word in said.split()[-2:])
    assert page.is_file()
    assert (starters / "pi5.yaml").is_file()
    assert installed in page.parents
