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

from argus_edge.artifacts import host_errors, write_text
from argus_edge.judge.asking.base import Answer, Judge
from argus_edge.judge.asking.items import Item, fill_prompt
from argus_edge.judge.asking.position import find_score, rating_logprobs
from argus_edge.judge.scale import Scale
from argus_edge.text import safe_cell

__all__ = ["ask_all", "finish", "read_answer", "responses_text", "run_summary", "table_text"]

UNREADABLE = -1


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


def _fingerprint(judge: str, template: str, scale: Scale, items: Sequence[Item]) -> str:
    parts = [judge, template, str(scale), *(f"{i.id}\0{i.question}\0{i.answer}\0{i.images}" for i in items)]
    return hashlib.sha256("\x1e".join(parts).encode()).hexdigest()


def ask_all(
    judge: Judge,
    items: Sequence[Item],
    template: str,
    scale: Scale,
    out: Path,
    say: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Ask about every item, keeping a journal beside ``out`` from which an interrupted run goes on.

    Returns
    -------
    list of dict
        For each item what :func:`read_answer` gives, with the judge's text under ``text``.
    """
    journal = out.with_name(out.name + ".journal.jsonl")
    fingerprint = _fingerprint(judge.name, template, scale, items)
    done = _resume(journal, fingerprint)
    if done:
        say(f"going on from {journal}: {len(done)} of {len(items)} items are answered")
    started, asked = time.monotonic(), 0
    with host_errors(journal):
        journal.parent.mkdir(parents=True, exist_ok=True)
        with journal.open("w", encoding="utf-8") as file:
            # Written anew on resumption too: the last line of a run that was cut off may be half a line.
            file.write(json.dumps({"fingerprint": fingerprint}) + "\n")
            file.writelines(json.dumps({"id": key, "row": row}) + "\n" for key, row in done.items())
            file.flush()
            for number, item in enumerate(items):
                if item.id in done:
                    continue
                answer = judge.ask(fill_prompt(template, item, scale.levels), item.images)
                row = {**read_answer(answer, scale), "text": answer.text}
                done[item.id] = row
                file.write(json.dumps({"id": item.id, "row": row}) + "\n")
                file.flush()
                asked += 1
                if asked in (1, 10) or asked % 100 == 0:
                    rest = (time.monotonic() - started) / asked * (len(items) - len(done))
                    say(f"{number + 1} of {len(items)} items, about {rest:.0f} s to go")
    return [done[item.id] for item in items]


def _resume(journal: Path, fingerprint: str) -> dict[str, dict[str, Any]]:
    """Return the rows of an earlier run of the same judge, prompt and items."""
    if not journal.is_file():
        return {}
    done: dict[str, dict[str, Any]] = {}
    for index, line in enumerate(journal.read_text(encoding="utf-8").splitlines()):
        try:
            entry = json.loads(line)
            if index == 0:
                if entry.get("fingerprint") != fingerprint:
                    return {}
            else:
                done[str(entry["id"])] = dict(entry["row"])
        except (ValueError, KeyError, TypeError, AttributeError):
            # The last line of a run that was cut off.
            break
    return done


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
