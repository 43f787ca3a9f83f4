"""Who may import whom. The rules keep the agent shippable, the command line fast, and the parts apart."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HEAVY = (
    "numpy",
    "torch",
    "transformers",
    "onnx",
    "onnxruntime",
    "scipy",
    "sklearn",
    "pandas",
    "plotly",
    "ray",
    "pydantic",
    "paramiko",
)
MAPPED = {"agents": "argus_edge.agents", "exporters": "argus_edge.exporters", "profiles": "argus_edge.profiles"}


def modules(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield (import name, file) of every module of the project."""
    for top in ("argus_edge", *MAPPED):
        for file in sorted((root / top).rglob("*.py")):
            parts = list(file.relative_to(root).with_suffix("").parts)
            parts[0] = MAPPED.get(parts[0], parts[0])
            if parts[-1] == "__init__":
                parts.pop()
            yield ".".join(parts), file


def imports(name: str, file: Path, *, top_level_only: bool = False) -> set[str]:
    """Return the absolute names that a module imports."""
    tree = ast.parse(file.read_text())
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    found: set[str] = set()
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parent = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parent, base] if base else parent)
            found |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return found


def within(imported: str, *prefixes: str) -> bool:
    return any(imported == prefix or imported.startswith(prefix + ".") for prefix in prefixes)


def test_the_agent_imports_the_standard_library_only(repo_root: Path) -> None:
    for name, file in modules(repo_root):
        if within(name, "argus_edge.agents"):
            for imported in imports(name, file, top_level_only=True):
                top = imported.split(".")[0]
                assert top in sys.stdlib_module_names or within(imported, "argus_edge.agents"), (
                    f"{name} imports {imported}"
                )


def test_the_schema_imports_pydantic_and_the_wire_format_only(repo_root: Path) -> None:
    allowed = ("pydantic", "argus_edge.schema", "argus_edge.agents.wire", "argus_edge.agents", "argus_edge._version")
    for name, file in modules(repo_root):
        if within(name, "argus_edge.schema"):
            for imported in imports(name, file):
                top = imported.split(".")[0]
                assert top in sys.stdlib_module_names or within(imported, *allowed), f"{name} imports {imported}"


def test_nothing_imports_the_command_line(repo_root: Path) -> None:
    for name, file in modules(repo_root):
        # `python -m argus_edge` is the command line under another name.
        if not within(name, "argus_edge.cli", "argus_edge.__main__"):
            assert not any(within(imported, "argus_edge.cli") for imported in imports(name, file)), name


def test_command_modules_import_heavy_packages_only_when_called(repo_root: Path) -> None:
    for name, file in modules(repo_root):
        if within(name, "argus_edge.cli"):
            for imported in imports(name, file, top_level_only=True):
                assert not within(imported, *HEAVY), f"{name} imports {imported} at its top"


def test_help_imports_no_heavy_package() -> None:
    code = (
        "import sys\nfrom argus_edge.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stderr.strip().endswith("[]"), run.stderr


def commands() -> list[str]:
    from argus_edge.cli.main import COMMANDS

    return list(COMMANDS)


@pytest.mark.parametrize("command", commands())
def test_every_command_in_the_table_has_help(command: str) -> None:
    from click.testing import CliRunner

    from argus_edge.cli.main import cli

    result = CliRunner().invoke(cli, [command, "--help"])
    assert result.exit_code == 0, result.output
    assert "Usage:" in result.output


def test_no_file_outgrows_its_reason(repo_root: Path) -> None:
    long = {name: n for name, file in modules(repo_root) if (n := len(file.read_text().splitlines())) > 500}
    assert not long, long
