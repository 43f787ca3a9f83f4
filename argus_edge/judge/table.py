"""Tables of judge scores: one row an instance, with log-probabilities, the judge's score, the human's, the task."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argus_edge.artifacts import read_file
from argus_edge.errors import InputError
from argus_edge.judge.scale import MAX_LEVELS, Scale

Array = NDArray[Any]

__all__ = ["FLOOR", "JudgeTable", "Problem", "join_tables", "name_lines", "read_table"]

# Where a rating token is not among those that a server returns: the published floor, ln 1e-5.
FLOOR = math.log(1e-5)
_ID, _JUDGE, _SCORE = "sample_id", "judge", "judge_score"
_MAX_CELL = 1 << 20


def name_lines(lines: Sequence[int] | Array, limit: int = 10) -> str:
    """Return ``"line 4"`` or ``"lines 4, 9, 12 and 30 more"``."""
    shown = ", ".join(str(int(line)) for line in lines[:limit])
    rest = len(lines) - limit
    return f"line{'s' if len(lines) > 1 else ''} {shown}" + (f" and {rest} more" if rest > 0 else "")


@dataclass(frozen=True)
class Problem:
    """Something wrong with some rows that does not stop the work."""

    text: str
    lines: tuple[int, ...]
    where: str

    def __str__(self) -> str:
        count = len(self.lines)
        return f"{self.where}: {count} row{'s' if count > 1 else ''} {self.text} ({name_lines(self.lines)})"


@dataclass(frozen=True)
class JudgeTable:
    """Rows of one judge, or of several joined.

    Attributes
    ----------
    path
        Where it was read from.
    judges
        Names, J of them.
    lines
        Line of each row in its (first) file, shape (n,).
    features
        Log-probabilities of the labels, one judge after the other, shape (n, J·K); NaN where missing, −infinity
        replaced by the floor.
    judge_scores
        The written scores, shape (n, J); NaN where none could be read.
    labels
        Human scores, shape (n,); NaN where there is none.
    label_column
        Their column, or ``None`` where there is none.
    columns
        All cells as text, by column, shape (n,) each.
    """

    path: str
    judges: list[str]
    scale: Scale
    lines: Array
    features: Array
    judge_scores: Array
    labels: Array
    label_column: str | None
    columns: dict[str, Array]
    floor: float = FLOOR
    problems: list[Problem] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def readable(self) -> Array:
        """Rows with all their log-probabilities, shape (n,)."""
        return np.asarray(np.isfinite(self.features).all(axis=1))

    @property
    def labelled(self) -> Array:
        """Rows with a human score, shape (n,)."""
        return np.isfinite(self.labels)

    @property
    def expected_score(self) -> Array:
        """Mean rating under the judge's distribution, averaged over judges, shape (n,); NaN where unreadable."""
        probabilities = self.probabilities
        return (probabilities @ self.scale.labels).mean(axis=1)

    @property
    def probabilities(self) -> Array:
        """Each judge's distribution over the labels, normalised, shape (n, J, K)."""
        logs = self.features.reshape(len(self), len(self.judges), self.scale.levels)
        shifted = np.exp(logs - logs.max(axis=2, keepdims=True))
        return shifted / shifted.sum(axis=2, keepdims=True)

    def column(self, name: str) -> Array:
        """Return a column's cells.

        Raises
        ------
        InputError
            There is no such column.
        """
        if name not in self.columns:
            raise InputError(
                f"There is no column {name!r}.", where=self.path, next_step=f"columns: {', '.join(self.columns)[:400]}"
            )
        return self.columns[name]

    def with_columns(self, names: Collection[str | None]) -> JudgeTable:
        """Return the table with those of its columns only: what is fitted many times need not carry the rest along."""
        return replace(self, columns={name: cells for name, cells in self.columns.items() if name in names})

    def take(self, rows: Array) -> JudgeTable:
        """Return some of the rows (indices)."""
        return replace(
            self,
            lines=self.lines[rows],
            features=self.features[rows],
            judge_scores=self.judge_scores[rows],
            labels=self.labels[rows],
            columns={name: cells[rows] for name, cells in self.columns.items()},
        )


def read_table(
    path: Path | str,
    *,
    scale: Scale | None = None,
    labels: str | None = None,
    judge: str | None = None,
    floor: float = FLOOR,
    lenient_labels: bool = False,
    default_judge: bool = False,
) -> JudgeTable:
    """Read a CSV file of judge scores.

    Parameters
    ----------
    path
        Columns ``logprob_1`` … ``logprob_K``; optionally ``judge_score``, ``sample_id``, ``judge``, a column of human
        scores, and any others.
    scale
        The scale expected; otherwise K is what the columns say.
    labels
        Column of the human scores; ``"human"`` also finds ``human_score``. ``None``: ``human_score`` or ``human`` if
        there.
    judge
        The judge's name, where there is no column ``judge``; otherwise the file's name.
    floor
        What −infinity becomes.
    lenient_labels
        Leave human scores unread, for rows that only get intervals.
    default_judge
        ``judge`` only fills in for a missing column ``judge``, and does not contradict one.

    Raises
    ------
    InputError
        The file cannot be read, has no rows or no log-probabilities, cells are no numbers, human scores are not on
        the scale; the line numbers are named.
    """
    where = str(path)
    header, rows, lines = _cells(path)
    columns = {name: np.array([row[index] for row in rows], dtype=object) for index, name in enumerate(header)}
    found = _levels(header, where)
    if scale is not None and scale.levels != found.levels:
        raise InputError(
            f"The file has log-probabilities for a scale {found}, not {scale}.",
            where=where,
            next_step="choose the file of that scale, or another --scale",
        )
    problems: list[Problem] = []
    features = np.column_stack([_numbers(columns, f"logprob_{k}", lines, where) for k in found.labels])
    features = _checked_features(features, lines, where, floor, problems)
    scores = np.full(len(rows), np.nan)
    if _SCORE in columns:
        scores = _checked_scores(_numbers(columns, _SCORE, lines, where), found, lines, where, problems)
    label_column = None if lenient_labels else _label_column(columns, labels, where)
    human = np.full(len(rows), np.nan)
    if label_column is not None:
        human = _numbers(columns, label_column, lines, where)
        off = np.isfinite(human) & ~np.isin(human, found.labels) | np.isinf(human)
        if off.any():
            values = ", ".join(sorted({columns[label_column][i].strip()[:20] for i in np.flatnonzero(off)})[:5])
            raise InputError(
                f"Column {label_column!r}: {int(off.sum())} human score(s) not on the scale {found}: {values}.",
                where=f"{where}, {name_lines(lines[off])}",
                next_step="correct or empty these cells; ratings are the integers of the scale",
            )
    if _ID in columns:
        seen: set[str] = set()
        repeated = [line for key, line in zip(columns[_ID], lines, strict=True) if key in seen or seen.add(key)]  # type: ignore[func-returns-value]
        if repeated:
            problems.append(Problem("repeat a sample_id", tuple(map(int, repeated)), where))
    return JudgeTable(
        path=where,
        judges=[_judge_name(columns, judge, path, where, default=default_judge)],
        scale=found,
        lines=lines,
        features=features,
        judge_scores=scores[:, None],
        labels=human,
        label_column=label_column,
        columns=columns,
        floor=floor,
        problems=problems,
    )


def _cells(path: Path | str) -> tuple[list[str], list[list[str]], Array]:
    """Return the header, the rows and each row's line."""
    where = str(path)
    try:
        text = read_file(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("The file is not UTF-8 text.", where=where, next_step="export it as UTF-8 CSV") from error
    csv.field_size_limit(_MAX_CELL)
    reader = csv.reader(io.StringIO(text, newline=""))
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        header = [name.strip() for name in next(reader, [])]
        for row in reader:
            if not row or not any(cell.strip() for cell in row):
                continue
            if len(row) != len(header):
                raise InputError(
                    f"The row has {len(row)} cells, the header {len(header)}.", where=f"{where}, line {reader.line_num}"
                )
            rows.append(row)
            lines.append(reader.line_num)
    except csv.Error as error:
        raise InputError(f"Not a CSV file: {error}.", where=f"{where}, line {reader.line_num}") from error
    if len(set(header)) != len(header):
        twice = sorted({name for name in header if header.count(name) > 1})
        raise InputError(f"The header names a column twice: {', '.join(twice)[:200]}.", where=where)
    if not rows:
        raise InputError("The table has no rows.", where=where)
    return header, rows, np.array(lines)


def _levels(header: list[str], where: str) -> Scale:
    """Return the scale that the columns logprob_1 … logprob_K say."""
    # Only the plain spelling: logprob_02 and other digits that int() reads are columns like any other.
    found = sorted(int(name[8:]) for name in header if re.fullmatch(r"logprob_(0|[1-9][0-9]{0,5})", name))
    if found != list(range(1, len(found) + 1)) or not 2 <= len(found) <= MAX_LEVELS:
        names = ", ".join(f"logprob_{k}" for k in found[:20]) or "none"
        apart = next((mark for mark in (";", "\t") if len(header) == 1 and mark in header[0]), None)
        raise InputError(
            f"Columns logprob_1 … logprob_K are needed, one for each rating; found: {names}.",
            where=where,
            next_step=f"the cells are separated by {apart!r}: save the file with commas"
            if apart
            else "`argus-edge judge run` writes them",
        )
    return Scale(len(found))


def _numbers(columns: dict[str, Array], name: str, lines: Array, where: str) -> Array:
    """Return a column as numbers, NaN where empty."""
    cells = columns[name]
    try:
        return np.where(cells == "", "nan", cells).astype(float)
    except ValueError:  # which cell it was
        pass
    values = np.empty(len(lines))
    for index, cell in enumerate(cells):
        text = cell.strip()
        try:
            values[index] = float(text) if text else math.nan
        except ValueError as error:
            raise InputError(
                f"Column {name!r}: {text[:40]!r} is not a number.", where=f"{where}, line {lines[index]}"
            ) from error
    return values


def _checked_features(features: Array, lines: Array, where: str, floor: float, problems: list[Problem]) -> Array:
    """Name missing values, replace −infinity by the floor, and refuse what is no log-probability."""
    above = (features > 1e-6).any(axis=1)
    if above.any():
        raise InputError(
            "Log-probabilities are at most 0; some are above.",
            where=f"{where}, {name_lines(lines[above])}",
            next_step="store natural logarithms of probabilities, not logits or probabilities",
        )
    missing = np.isnan(features).any(axis=1)
    if missing.any():
        problems.append(Problem("without all log-probabilities: not used", tuple(map(int, lines[missing])), where))
    minus = np.isneginf(features)
    if minus.any():
        text = f"with a log-probability of -inf: put at {floor:.4g}"
        problems.append(Problem(text, tuple(map(int, lines[minus.any(axis=1)])), where))
    return np.where(minus, floor, features)


def _checked_scores(scores: Array, scale: Scale, lines: Array, where: str, problems: list[Problem]) -> Array:
    """Name judge scores of −1 or missing, and those off the scale; both count as unreadable."""
    unread = np.isnan(scores) | (scores == -1)
    off = ~unread & ((scores < 1) | (scores > scale.levels))
    for rows, text in (
        (unread, "without a readable judge score (-1): left out of the point figures"),
        (off, f"with a judge score off the scale {scale}: left out of the point figures"),
    ):
        if rows.any():
            problems.append(Problem(text, tuple(map(int, lines[rows])), where))
    return np.where(unread | off, np.nan, scores)


def _label_column(columns: dict[str, Array], wanted: str | None, where: str) -> str | None:
    candidates = [wanted, f"{wanted}_score"] if wanted else ["human_score", "human"]
    for name in candidates:
        if name in columns:
            return name
    if wanted:
        raise InputError(
            f"There is no column of human scores {wanted!r}.",
            where=where,
            next_step=f"--labels COLUMN; columns: {', '.join(columns)[:400]}",
        )
    return None


def _judge_name(columns: dict[str, Array], given: str | None, path: Path | str, where: str, *, default: bool) -> str:
    if _JUDGE not in columns:
        return (given or Path(path).name.removesuffix(".csv"))[:512]
    names = sorted(set(columns[_JUDGE]))
    if len(names) > 1:
        raise InputError(
            f"The file mixes {len(names)} judges: {', '.join(names)[:200]}.", where=where, next_step="one file a judge"
        )
    if given and given != names[0] and not default:
        raise InputError(f"The file is of the judge {names[0]!r}, not {given!r}.", where=where)
    return names[0][:512]


def join_tables(tables: list[JudgeTable]) -> JudgeTable:
    """Put several judges' rows of the same instances side by side, by ``sample_id``.

    Raises
    ------
    InputError
        No or repeated ids, other scales, no instance in common, or human scores that disagree.
    """
    first = tables[0]
    if len(tables) == 1:
        return first
    places: list[dict[str, int]] = []
    for table in tables:
        ids = table.column(_ID)
        places.append({key: row for row, key in enumerate(ids)})
        if len(places[-1]) != len(ids):
            raise InputError("The same sample_id appears twice, so judges cannot be joined.", where=table.path)
        if table.scale != first.scale:
            raise InputError(f"The scale is {table.scale}, in {first.path} {first.scale}.", where=table.path)
    names = [name for table in tables for name in table.judges]
    if len(set(names)) != len(names):
        raise InputError(f"The same judge is given twice: {', '.join(names)[:200]}.", where=tables[-1].path)
    common = [key for key in first.column(_ID) if all(key in place for place in places)]
    if not common:
        raise InputError("The files have no sample_id in common.", where=", ".join(table.path for table in tables))
    parts = [table.take(np.array([place[key] for key in common])) for table, place in zip(tables, places, strict=True)]
    problems = [problem for table in tables for problem in table.problems]
    kept = set(common)
    for table in tables:
        lines = [int(line) for key, line in zip(table.column(_ID), table.lines, strict=True) if key not in kept]
        if lines:
            problems.append(Problem("with a sample_id that not all judges have: not used", tuple(lines), table.path))
    labels = parts[0].labels.copy()
    for part in parts[1:]:
        both = np.isfinite(labels) & np.isfinite(part.labels) & (labels != part.labels)
        if both.any():
            raise InputError(
                f"{int(both.sum())} human scores differ from those in {first.path}.",
                where=f"{part.path}, {name_lines(part.lines[both])}",
            )
        labels = np.where(np.isfinite(labels), labels, part.labels)
    return replace(
        parts[0],
        path=", ".join(table.path for table in tables),
        judges=names,
        features=np.hstack([part.features for part in parts]),
        judge_scores=np.hstack([part.judge_scores for part in parts]),
        labels=labels,
        problems=problems,
    )
