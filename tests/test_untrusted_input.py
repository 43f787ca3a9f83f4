"""Rules that hold in every source file: what a board, a model file or a stranger wrote is never run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("argus_edge", "agents", "exporters", "examples", "benchmarks")
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))

pytestmark = pytest.mark.skipif(not (ROOT / "agents").is_dir(), reason="not a checkout")

# Modules that run what they read.
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve"}
FORBIDDEN_CALLS = {
    *("os.system", "os.popen", "eval", "exec", "subprocess.getoutput", "subprocess.getstatusoutput"),
    *("yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.full_load", "pandas.read_pickle", "pd.read_pickle"),
    *("joblib.load", "joblib.dump"),
    *("tarfile.extractall", "archive.extractall", "shutil.unpack_archive"),
}
# Where a shell is given a text that is not written out on the spot, and why that is in order.
SHELLS = {
    "argus_edge/devices/doctor.py": "`device setup` runs a remedy on the board that proposed it, after it was shown",
    "argus_edge/devices/remote_files.py": "scripts of this module; what varies are their arguments",
    "argus_edge/devices/ssh.py": "a random word of our own",
}


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """(dotted name, call) of every call in a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


@pytest.fixture(scope="module")
def trees():
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text()) for path in SOURCES}


def test_nothing_is_unpickled(trees):
    for name, tree in trees.items():
        for node in ast.walk(tree):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
            assert not {module.split(".")[0] for module in modules} & FORBIDDEN_MODULES, name
        for called, call in calls(tree):
            words = {keyword.arg: keyword.value for keyword in call.keywords}
            if called == "torch.load":
                assert ast.unparse(words.get("weights_only", ast.Constant(None))) == "True", name
            assert ast.unparse(words.get("allow_pickle", ast.Constant(False))) != "True", name


def test_no_code_comes_with_a_model_unless_the_user_says_so(trees):
    for name, tree in trees.items():
        for _, call in calls(tree):
            for keyword in call.keywords:
                if keyword.arg == "trust_remote_code":
                    assert ast.unparse(keyword.value) != "True", name
        for node in ast.walk(tree):
            if isinstance(node, ast.Dict):
                for key, value in zip(node.keys, node.values, strict=True):
                    if isinstance(key, ast.Constant) and key.value == "trust_remote_code":
                        assert ast.unparse(value) != "True", name


def test_nothing_that_runs_its_text_is_called(trees):
    for name, tree in trees.items():
        found = {called for called, _ in calls(tree)} & FORBIDDEN_CALLS
        assert not found, f"{name}: {found}"


def test_no_shell_is_given_a_text_that_is_put_together(trees):
    for name, tree in trees.items():
        for called, call in calls(tree):
            shell = {keyword.arg: keyword.value for keyword in call.keywords}.get("shell")
            assert shell is None or ast.unparse(shell) == "False", f"{name}: {called}(shell=…)"
        for node in ast.walk(tree):
            if not isinstance(node, ast.List | ast.Tuple):
                continue
            words = [element.value if isinstance(element, ast.Constant) else None for element in node.elts]
            for index, word in enumerate(words[:-1]):
                if word in ("-c", "-ec") and any(
                    one in ("/bin/sh", "sh", "bash", "/bin/bash") for one in words[:index]
                ):
                    constant = isinstance(words[index + 1], str) or ast.unparse(node.elts[index + 1]).isupper()
                    assert constant or name in SHELLS, f"{name}:{node.lineno}"


def test_the_exceptions_are_still_needed(trees):
    for name in SHELLS:
        assert '"/bin/sh", "-c"' in (ROOT / name).read_text(), name


def test_archives_are_never_unpacked_to_a_disk(trees):
    for name, tree in trees.items():
        for called, _ in calls(tree):
            assert called.rpartition(".")[2] not in ("extractall", "extract"), name
