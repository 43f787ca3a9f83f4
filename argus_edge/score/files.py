"""`score` as a function of files: reports found, weights and budget read, the score computed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import yaml

from argus_edge.artifacts import read_file
from argus_edge.errors import InputError, UsageError
from argus_edge.gate.budget import read_budget
from argus_edge.reports import find_reports, of_kind
from argus_edge.schema.bench import BenchReport
from argus_edge.schema.evaluation import EvalReport
from argus_edge.schema.judge import JudgeCalibration
from argus_edge.schema.score import ScoreReport, Term
from argus_edge.score.assemble import EQUAL_WEIGHTS, Reading, check_weights, score_reports, weights_for


def read_weights(path: Path | str) -> dict[Term, float]:
    """Return the weights of a YAML file.

    Raises
    ------
    InputError
        It is not a mapping of the four terms to numbers.
    """
    try:
        document = yaml.safe_load(
            read_file(path, limit=1 << 16, next_step="check the path; profiles/weights/ has some to copy")
        )
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise InputError("The weights are not YAML.", where=str(path)) from error
    numbers = isinstance(document, dict) and all(
        isinstance(value, (int, float)) and not isinstance(value, bool) for value in document.values()
    )
    if not numbers:
        raise InputError(
            "The weights must be a mapping of capability, consistency, robustness and efficiency to numbers.",
            where=str(path),
        )
    return check_weights(document, where=str(path))


def score_files(
    paths: Iterable[str | Path],
    *,
    efficiency_weight: float | None = None,
    weights_file: str | Path | None = None,
    budget: str | Path | None = None,
    reading: Reading = "by-task",
    replicates: int = 1000,
    seed: int = 0,
) -> ScoreReport:
    """Merge the bench and eval reports and judge calibrations of files and folders into the ARGUS score.

    Parameters
    ----------
    paths
        Report files, or folders that are searched for them.
    efficiency_weight
        wE; the rest is shared equally. Not together with ``weights_file``.
    budget
        Efficiency is measured against this budget's limits instead of the cohort's best.

    See :func:`argus_edge.score.assemble.score_reports` for the rest.
    """
    if efficiency_weight is not None and weights_file is not None:
        raise UsageError("Give either --efficiency-weight or --score-weights, not both.")
    weights = EQUAL_WEIGHTS
    if efficiency_weight is not None:
        weights = weights_for(efficiency_weight)
    elif weights_file is not None:
        weights = read_weights(weights_file)
    references = None
    if budget is not None:
        references = read_budget(budget).references()
        if not references:
            raise InputError(
                "The budget has no limit that efficiency can be measured against.",
                where=str(budget),
                next_step="add latency_p50, peak_memory, macs or throughput",
            )
    found = find_reports(paths, (BenchReport, EvalReport, JudgeCalibration))
    return score_reports(
        of_kind(found, EvalReport),
        of_kind(found, BenchReport),
        of_kind(found, JudgeCalibration),
        weights=weights,
        references=references,
        reading=reading,
        replicates=replicates,
        seed=seed,
    )
