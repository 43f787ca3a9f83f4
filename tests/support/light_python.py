"""A Python with next to nothing in it: probing it is quick, and one planted module stands for a runtime."""

from __future__ import annotations

import sys
import venv
from pathlib import Path


def make_light_python(folder: Path, *, runtime: bool = True) -> Path:
    """Make a virtual environment without pip; with ``runtime``, one in which an "onnxruntime" can be imported."""
    venv.create(folder, symlinks=True, with_pip=False)
    if runtime:
        (site,) = folder.glob("lib/python*/site-packages")
        (site / "onnxruntime.py").write_text(
            "__version__ = '1.0'\ndef get_available_providers():\n    return ['CPUExecutionProvider']\n"
        )
    python = folder / "bin" / Path(sys.executable).name
    return python if python.exists() else folder / "bin" / "python"
