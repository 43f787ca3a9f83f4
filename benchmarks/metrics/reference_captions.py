"""Runs pycocoevalcap on a file of captions; called by captions.py with the Python that has it installed.

usage: python reference_captions.py captions.json result.json
"""

import contextlib
import json
import sys
import time

from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge
from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer


def main(source, target):
    with open(source, encoding="utf-8") as file:
        data = json.load(file)
    seconds = {}

    def timed(name, function, *arguments):
        start = time.perf_counter()
        result = function(*arguments)
        seconds[name] = time.perf_counter() - start
        return result

    raw_references = {i: [{"caption": text} for text in texts] for i, texts in enumerate(data["references"])}
    raw_candidates = {i: [{"caption": text}] for i, text in enumerate(data["candidates"])}
    with contextlib.redirect_stdout(sys.stderr):
        references = timed("tokenize references", PTBTokenizer().tokenize, raw_references)
        candidates = timed("tokenize candidates", PTBTokenizer().tokenize, raw_candidates)
        bleu, _ = timed("bleu", Bleu(4).compute_score, references, candidates)
        rouge, rouges = timed("rouge", Rouge().compute_score, references, candidates)
        cider, ciders = timed("cider", Cider().compute_score, references, candidates)
    result = {
        "bleu": [float(value) for value in bleu],
        "rouge_l": float(rouge),
        "cider": float(cider),
        "rouges": rouges.tolist(),
        "ciders": ciders.tolist(),
        "references": [references[i] for i in range(len(raw_references))],
        "candidates": [candidates[i][0] for i in range(len(raw_candidates))],
        "seconds": seconds,
    }
    with open(target, "w", encoding="utf-8") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main(*sys.argv[1:3])
