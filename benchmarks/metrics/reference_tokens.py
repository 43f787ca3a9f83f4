"""Runs pycocoevalcap's tokeniser (Stanford's, Java) on a JSON list of captions; needs a Python that has it installed.

usage: python reference_tokens.py captions.json tokens.json [--apart]

--apart puts a neutral line between captions, so that none is taken for the beginning of the sentence before it.
"""

import json
import sys
import time

from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer


def main(source, target, *options):
    with open(source, encoding="utf-8") as file:
        captions = json.load(file)
    apart = "--apart" in options
    lines = [line for text in captions for line in ((text, "x") if apart else (text,))]
    start = time.perf_counter()
    tokens = PTBTokenizer().tokenize({i: [{"caption": line}] for i, line in enumerate(lines)})
    seconds = time.perf_counter() - start
    found = [tokens[i][0] for i in range(0, len(lines), 2 if apart else 1)]
    with open(target, "w", encoding="utf-8") as file:
        json.dump({"seconds": seconds, "tokens": found}, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
