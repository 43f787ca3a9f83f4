"""Asks pycocoevalcap for the answers that the tests compare with; needs Java and a Python that has it installed.

usage: python make_fixtures.py --reference-python /path/to/python
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

from sentences import caption_set, sentences

HERE = Path(__file__).parent
FIXTURES = HERE.parents[1] / "tests" / "evaluate" / "metrics" / "fixtures"


def ask(python: str, script: str, question: object, *options: str) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in.json"), Path(folder, "out.json")
        source.write_text(json.dumps(question), encoding="utf-8")
        subprocess.run([python, HERE / script, source, target, *options], check=True)
        return json.loads(target.read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--reference-python", required=True)
    python = parser.parse_args().reference_python
    FIXTURES.mkdir(parents=True, exist_ok=True)
    probes = (HERE / "probes.txt").read_text(encoding="utf-8").splitlines()
    texts = sentences(300, seed=1) + [f"x {probe} y" for probe in probes]
    tokens = ask(python, "reference_tokens.py", texts, "--apart")["tokens"]
    lines = [json.dumps(pair, ensure_ascii=False) for pair in zip(texts, tokens, strict=True)]
    (FIXTURES / "ptb_tokens.json").write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    references, candidates = caption_set(60, seed=2)
    scores = ask(python, "reference_captions.py", {"references": references, "candidates": candidates})
    kept = {name: scores[name] for name in ("bleu", "rouge_l", "cider", "rouges", "ciders")}
    document = {"references": references, "candidates": candidates, **kept}
    (FIXTURES / "captions.json").write_text(json.dumps(document, ensure_ascii=False, indent=0), encoding="utf-8")


if __name__ == "__main__":
    main()
