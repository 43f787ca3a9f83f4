"""The tokeniser against Stanford's PTB tokeniser as pycocoevalcap calls it, on made-up captions.

usage: python tokens.py --reference-python /path/to/python [--sentences 100000] [--seed 0] [--out tokens.md]

Every difference is listed. Stanford's program gets all captions as one text; a single letter with a period at a
caption's end loses the period if the next caption begins with a word that starts sentences. Ours takes each caption by
itself, so that its tokens do not depend on the order of captions: such differences are counted, and named.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import tempfile
import time
from pathlib import Path

from sentences import sentences

from argus_edge.evaluate.metrics import TOKENIZER, tokenize

REFERENCE = Path(__file__).with_name("reference_tokens.py")


def ask(python: str, texts: list[str], *options: str) -> tuple[list[str], float]:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "captions.json"), Path(folder, "tokens.json")
        source.write_text(json.dumps(texts), encoding="utf-8")
        subprocess.run([python, REFERENCE, source, target, *options], check=True, capture_output=True)
        answer = json.loads(target.read_text(encoding="utf-8"))
    return answer["tokens"], answer["seconds"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--reference-python", required=True)
    parser.add_argument("--sentences", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    texts = sentences(options.sentences, options.seed)
    theirs, seconds = ask(options.reference_python, texts)
    start = time.perf_counter()
    ours = [" ".join(tokenize(text)) for text in texts]
    own_seconds = time.perf_counter() - start
    different = [row for row, (one, other) in enumerate(zip(theirs, ours, strict=True)) if one != other]
    alone, _ = ask(options.reference_python, [texts[row] for row in different] or ["x"], "--apart")
    report = [
        "# The tokeniser against Stanford's",
        "",
        f"{TOKENIZER}: {options.sentences} sentences made by sentences.py (seed {options.seed}), "
        f"{len(different)} different: **{100 - 100 * len(different) / len(texts):.4f} % the same**. "
        f"{own_seconds:.1f} s against {seconds:.1f} s with Java "
        f"({platform.machine()}, Python {platform.python_version()}).",
        "",
        *(
            f"- `{texts[row]}`: Stanford `{theirs[row]}`, ours `{ours[row]}`"
            + (" (the next caption's doing: by itself Stanford gives ours)" if apart == ours[row] else "")
            for row, apart in zip(different, alone, strict=False)
        ),
        "",
    ]
    options.out.write_text("\n".join(report), encoding="utf-8")
    print("\n".join(report))


if __name__ == "__main__":
    main()
