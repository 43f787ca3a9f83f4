"""`judge run`: asks a judge about every item and writes a table of scores; what was asked is not asked again."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from argus_edge.artifacts import host_errors, sha256_file, write_text
from argus_edge.judge.asking.base import Answer, ItemRefusedError, Judge
from argus_edge.judge.asking.items import Item, fill_prompt
from argus_edge.judge.asking.position import find_score, rating_logprobs
from argus_edge.judge.scale import Scale
from argus_edge.text import safe_cell

__all__ = ["ask_all", "finish", "read_answer", "responses_text", "run_summary", "table_text"]

UNREADABLE = -1
# So many refusals and not one answer: it is the judge, not the items.
_REFUSALS = 3


def read_answer(answer: Answer, scale: Scale) -> dict[str, Any]:
    """Turn a judge's answer into the cells of a row.

    Returns
    -------
    dict
        ``judge_score`` (−1 where there is none), ``logprobs`` (K values; ``None`` where none can be read),
        ``found_by`` and ``note``.
    """
    found = find_score(answer.tokens, scale.levels)
    if found.index is None or found.score is None:
        return {"judge_score": UNREADABLE, "logprobs": None, "found_by": "", "note": found.how}
    logs = rating_logprobs(answer.alternatives[found.index], scale.levels)
    notes = []
    absent = [str(label) for label, value in zip(scale.labels, logs, strict=True) if math.isinf(value)]
    if absent:
        notes.append(f"not among the tokens reported: {', '.join(absent)}")
    if any(math.isnan(value) for value in logs):
        return {"judge_score": found.score, "logprobs": None, "found_by": found.how, "note": "log-probability is NaN"}
    return {"judge_score": found.score, "logprobs": logs, "found_by": found.how, "note": "; ".join(notes)}


def _key(judge: str, template: str, scale: Scale, item: Item) -> str:
    """Name an answer by all that it depends on."""
    images = [sha256_file(image) for image in item.images]
    parts = [judge, template, str(scale), item.id, item.question, item.answer, images]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def ask_all(
    judge: Judge,
    items: Sequence[Item],
    template: str,
    scale: Scale,
    out: Path,
    say: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Ask about every item, keeping a journal beside ``out`` from which an interrupted run goes on.

    An item that the judge cannot be asked about is recorded as unreadable, with the reason, and the others are asked.

    Returns
    -------
    list of dict
        For each item what :func:`read_answer` gives, with the judge's text under ``text``.

    Raises
    ------
    ArgusError
        The judge fails, or takes none of the items.
    """
    journal = out.with_name(out.name + ".journal.jsonl")
    with host_errors(journal):
        keys = [_key(judge.name, template, scale, item) for item in items]
        kept, whole = _resume(journal)
    done = {key: kept[key] for key in keys if key in kept}
    refused: dict[str, dict[str, Any]] = {}
    if done:
        say(f"going on from {journal}: {len(done)} of {len(items)} items are answered")
    started, asked = time.monotonic(), 0
    with host_errors(journal):
        journal.parent.mkdir(parents=True, exist_ok=True)
        with journal.open("a", encoding="utf-8") as file:
            # Answers are only ever added, so that a kill loses none; the last line of one may be half a line.
            file.write("" if whole else "\n")
            for number, (key, item) in enumerate(zip(keys, items, strict=True)):
                if key in done:
                    continue
                try:
                    answer = judge.ask(fill_prompt(template, item, scale.levels), item.images)
                except ItemRefusedError as error:
                    refused[key] = _refusal(error)
                    if not done and len(refused) == min(_REFUSALS, len(items)):
                        raise
                    say(f"item {item.id[:60]}: {error.what[:200]}")
                    continue
                row = {**read_answer(answer, scale), "text": answer.text}
                done[key] = row
                file.write(json.dumps({"key": key, "row": row}) + "\n")
                file.flush()
                asked += 1
                if asked in (1, 10) or asked % 100 == 0:
                    rest = (time.monotonic() - started) / asked * (len(items) - len(done))
                    say(f"{number + 1} of {len(items)} items, about {rest:.0f} s to go")
    return [done.get(key) or refused[key] for key in keys]


def _refusal(error: ItemRefusedError) -> dict[str, Any]:
    note = " ".join(f"not judged: {error.what}".split())[:300]
    return {"judge_score": UNREADABLE, "logprobs": None, "found_by": "", "note": note, "text": ""}


def _resume(journal: Path) -> tuple[dict[str, dict[str, Any]], bool]:
    """Return the answers of earlier runs by their key, and whether the journal ends with a whole line."""
    if not journal.is_file():
        return {}, True
    text = journal.read_text(encoding="utf-8", errors="replace")
    kept: dict[str, dict[str, Any]] = {}
    for line in text.split("\n"):
        try:
            entry = json.loads(line)
            kept[str(entry["key"])] = dict(entry["row"])
        except (ValueError, KeyError, TypeError):
            continue  # the last line of a run that was cut off
    return kept, text.endswith("\n") or not text


def table_text(judge: str, items: Sequence[Item], rows: Sequence[dict[str, Any]], scale: Scale) -> str:
    """Return the table as CSV: ids, log-probabilities, scores, and the items' other fields."""
    extra = list(dict.fromkeys(name for item in items for name in item.extra))
    logs = [f"logprob_{label}" for label in scale.labels]
    fixed = ["sample_id", "task", "judge", *logs, "judge_score", "human_score", "found_by", "note"]
    extra = [name for name in extra if name not in fixed]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([*fixed, *map(safe_cell, extra)])
    for item, row in zip(items, rows, strict=True):
        values = ["" if row["logprobs"] is None else f"{value:.6f}" for value in row["logprobs"] or [0.0] * len(logs)]
        writer.writerow(
            [
                safe_cell(item.id),
                safe_cell(item.task),
                safe_cell(judge),
                *values,
                row["judge_score"],
                item.human,
                row["found_by"],
                safe_cell(row["note"]),
                *(safe_cell(str(item.extra.get(name, ""))) for name in extra),
            ]
        )
    return buffer.getvalue()


def finish(out: Path, text: str) -> None:
    """Write the table whole and remove the journal, whose answers it holds."""
    write_text(out, text)
    out.with_name(out.name + ".journal.jsonl").unlink(missing_ok=True)


def responses_text(items: Sequence[Item], rows: Sequence[dict[str, Any]]) -> str:
    """Return the judge's answers as JSON Lines; −infinity is the string "-Infinity"."""
    lines = []
    for item, row in zip(items, rows, strict=True):
        logs = row["logprobs"]
        shown = None if logs is None else [value if math.isfinite(value) else "-Infinity" for value in logs]
        lines.append(json.dumps({"id": item.id, **row, "logprobs": shown}, ensure_ascii=False))
    return "\n".join(lines) + "\n"


def run_summary(judge: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return how many scores were read, and how."""
    how: dict[str, int] = {}
    for row in rows:
        how[row["found_by"] or row["note"]] = how.get(row["found_by"] or row["note"], 0) + 1
    unread = sum(row["logprobs"] is None for row in rows)
    parts = ", ".join(f"{count} {name}" for name, count in sorted(how.items(), key=lambda pair: -pair[1])[:6])
    sentence = f"{len(rows)} answers, {unread} without a readable score ({parts})"
    return {"judge": judge, "items": len(rows), "unreadable": unread, "found_by": how, "sentence": sentence}
