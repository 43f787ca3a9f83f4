"""Asks imagecorruptions for the PSNRs that tests/evaluate/perturb compares with.

usage: python make_fixture.py --reference-python /path/to/python
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import tempfile
from pathlib import Path

from PIL import Image

HERE = Path(__file__).parent
TESTS = HERE.parents[1] / "tests" / "evaluate" / "perturb"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--reference-python", required=True)
    options = parser.parse_args()
    spec = importlib.util.spec_from_file_location("picture", TESTS / "conftest.py")
    assert spec is not None
    assert spec.loader is not None
    picture = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(picture)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "picture.png"), Path(folder, "psnr.json")
        Image.fromarray(picture.draw_picture(120, 160)).save(source)
        script = HERE / "reference_corruptions.py"
        subprocess.run([options.reference_python, script, target, "24", source], check=True)
        figures = json.loads(target.read_text())
    lines = [f'"{key}": {json.dumps([round(x, 3) for x in run["psnr"]])}' for key, run in figures.items()]
    (TESTS / "fixtures").mkdir(exist_ok=True)
    (TESTS / "fixtures" / "psnr.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
