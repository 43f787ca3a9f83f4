"""The sample photographs as two datasets, so that a model's consistency has two to be measured on.

python halves.py FOLDER
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from argus_edge.evaluate.datasets import sample_folder


def main() -> None:
    """Write every other photograph to FOLDER/sample, the rest to FOLDER/mine, each with its captions and questions."""
    source = sample_folder()
    rows = [json.loads(line) for line in (source / "data.jsonl").read_text(encoding="utf-8").splitlines()]
    names = list(dict.fromkeys(row["image"] for row in rows))
    for half, photographs in (("sample", names[::2]), ("mine", names[1::2])):
        target = Path(sys.argv[1], half)
        target.mkdir(parents=True, exist_ok=True)
        for name in photographs:
            shutil.copyfile(source / name, target / name)
        lines = [json.dumps(row) for row in rows if row["image"] in photographs]
        (target / "data.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{sys.argv[1]}: {len(names)} photographs in two halves")


if __name__ == "__main__":
    main()
