"""Fitting a method to a table's labelled rows, and giving any table's rows their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argus_edge.errors import InputError, MissingDependencyError
from argus_edge.judge.conformal import min_rows
from argus_edge.judge.groups import DIFFICULTY, Grouping, difficulty_rows
from argus_edge.judge.methods import METHODS
from argus_edge.judge.methods.base import ConformalMethod, Rows
from argus_edge.judge.scale import Intervals
from argus_edge.judge.table import JudgeTable

Array = NDArray[Any]

__all__ = ["Fitted", "fit_method", "require_packages", "usable_rows"]

FEWEST_ROWS = 10


def require_packages(methods: list[str]) -> None:
    """Say which package of the extra is missing, before a table is read.

    Raises
    ------
    MissingDependencyError
        Fitting needs scikit-learn and scipy, some methods MAPIE or crepes.
    """
    needed = {"sklearn": "scikit-learn", "scipy": "scipy"}
    packages = [METHODS[name].package for name in methods if name in METHODS]
    needed |= {package: package for package in packages if package}
    for module, package in needed.items():
        if find_spec(module) is None:
            raise MissingDependencyError(package, "judge", needed_for="calibrating a judge")


@dataclass(frozen=True)
class Fitted:
    """A fitted method with its groups."""

    grouping: Grouping
    method: ConformalMethod

    def intervals(self, table: JudgeTable) -> tuple[Intervals, Array]:
        """Return intervals and group numbers of all rows; rows without features have an unbounded interval.

        Returns
        -------
        tuple
            Intervals, and group numbers (−1: unknown), shape (n,).
        """
        groups = self.grouping.assign(table)
        lower, upper = np.full(len(table), -np.inf), np.full(len(table), np.inf)
        readable = np.flatnonzero(table.readable)
        if len(readable):
            # A row of an unknown group is predicted with the rest: its threshold is infinite.
            found = self.method.predict(Rows(table.features[readable], groups[readable]))
            bounded = ~found.unbounded
            lower[readable[bounded]], upper[readable[bounded]] = found.lower[bounded], found.upper[bounded]
        return Intervals.build(lower, upper, table.scale), groups

    def reason(self, group: int) -> str | None:
        """Say why a group's intervals are infinite, or ``None`` where they are not."""
        if group < 0:
            return f"its {self.grouping.by} was not among the calibrated rows"
        if np.isfinite(self.method.thresholds[group]).all():
            return None
        rows, alpha = int(self.method.group_rows[group]), self.method.alpha
        return (
            f"{rows} calibration rows in group {self.grouping.names[group]!r}; "
            f"coverage {1 - alpha:g} needs at least {min_rows(alpha)}"
        )


def usable_rows(table: JudgeTable) -> Array:
    """Return the numbers of rows with a label and all features.

    Raises
    ------
    InputError
        No column of human scores, or too few such rows to fit anything.
    """
    if table.label_column is None:
        raise InputError(
            "The table has no column of human scores.",
            where=table.path,
            next_step=f"--labels COLUMN; columns: {', '.join(table.columns)[:400]}",
        )
    rows = np.flatnonzero(table.readable & table.labelled)
    if len(rows) < FEWEST_ROWS:
        raise InputError(
            f"{len(rows)} rows have a human score and all log-probabilities; at least {FEWEST_ROWS} are needed.",
            where=table.path,
            next_step="label more rows",
        )
    return rows


def fit_method(table: JudgeTable, name: str, alpha: float, by: str | None, seed: int) -> Fitted:
    """Fit a method.

    Parameters
    ----------
    table
        All rows labelled and readable.
    name
        In :data:`METHODS`.
    by
        ``None``, a column, or ``"difficulty"``: then a fifth of the rows teaches difficulty and nothing else.

    Raises
    ------
    InputError
        No such column, or almost as many groups as rows.
    """
    if by == DIFFICULTY:
        rng = np.random.default_rng([seed, 1])
        teach, rest = difficulty_rows(len(table), rng)
        teachers = table.take(teach)
        grouping = Grouping.of_difficulty(teachers.features, teachers.labels, seed)
        table = table.take(rest)
    elif by is not None:
        grouping = Grouping.of_column(table, by)
        if len(table) < 2 * len(grouping.names):
            raise InputError(
                f"Column {by!r} has {len(grouping.names)} values in {len(table)} rows: too few rows a group to learn "
                "from and to calibrate.",
                where=table.path,
                next_step="choose a column with few values, such as the task, or --by none",
            )
    else:
        grouping = Grouping(None, ["all"])
    kind: type[ConformalMethod] = METHODS[name]
    method = kind(table.scale, alpha, len(grouping.names))
    groups = grouping.assign(table)
    return Fitted(grouping, method.fit(Rows(table.features, groups), table.labels, seed))
